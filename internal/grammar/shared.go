package grammar

import (
	"cmp"
	"slices"
	"sync"
)

// sharedMasks are the masks of parts that grammars have in common, by signature, and runs, by their bytes.
type sharedMasks struct {
	mu    sync.Mutex
	masks map[string]*partMask
	order []string // oldest first
	runs  []keptRuns
	asked map[byteSet]bool // for runs that are not there
	bytes int
	limit int // of bytes; 0: sharedBytes
}

// keptRuns are runs, and their set.
type keptRuns struct {
	set   byteSet
	runs  *runs
	bytes int
}

// manyRuns bounds how many runs are kept.
const manyRuns = 8

// LimitShared bounds the memory of the masks that grammars have in common.
func (v *Vocabulary) LimitShared(bytes int) {
	v.shared.mu.Lock()
	defer v.shared.mu.Unlock()
	v.shared.limit = bytes
}

// sharedBytes bounds the memory of a vocabulary's shared masks, unless LimitShared does.
const sharedBytes = 8 << 20

func (s *sharedMasks) get(key string) *partMask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.masks[key]
}

func (s *sharedMasks) put(key string, m *partMask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.masks == nil {
		s.masks = map[string]*partMask{}
	}
	if s.masks[key] != nil {
		return
	}
	s.masks[key] = m
	s.order = append(s.order, key)
	s.bytes += m.bytes + len(key)
	s.trim()
}

// trim drops the oldest masks, but one, until the rest is within the limit.
func (s *sharedMasks) trim() {
	for s.bytes > cmp.Or(s.limit, sharedBytes) && len(s.order) > 1 {
		oldest := s.order[0]
		s.bytes -= s.masks[oldest].bytes + len(oldest)
		delete(s.masks, oldest)
		s.order = s.order[1:]
	}
}

// mostRuns is how many bytes runs may take, of those of all that is shared.
func (s *sharedMasks) mostRuns() int { return cmp.Or(s.limit, sharedBytes) / 2 }

// runsOf are the runs of a set, or says that they are worth being made, of so many bytes: it was asked for them before.
func (s *sharedMasks) runsOf(set *byteSet, bytes int) (r *runs, worth bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.runs {
		if s.runs[i].set == *set {
			kept := s.runs[i]
			copy(s.runs[1:], s.runs[:i]) // the last used is the first
			s.runs[0] = kept
			return kept.runs, false
		}
	}
	if s.asked[*set] || bytes > s.mostRuns() {
		return nil, bytes <= s.mostRuns()
	}
	if s.asked == nil || len(s.asked) >= manyAsked {
		s.asked = map[byteSet]bool{}
	}
	s.asked[*set] = true
	return nil, false
}

// putRuns keeps runs, in place of others or of masks where there is no room.
func (s *sharedMasks) putRuns(set *byteSet, r *runs, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.runs, func(k keptRuns) bool { return k.set == *set }) {
		return
	}
	delete(s.asked, *set)
	total, n := bytes, 0
	for n < min(len(s.runs), manyRuns-1) && total+s.runs[n].bytes <= s.mostRuns() {
		total += s.runs[n].bytes
		n++
	}
	for _, k := range s.runs[n:] {
		s.bytes -= k.bytes
	}
	s.runs = slices.Insert(s.runs[:n:n], 0, keptRuns{*set, r, bytes})
	s.bytes += bytes
	s.trim()
}
