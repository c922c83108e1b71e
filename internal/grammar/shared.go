package grammar

import (
	"cmp"
	"sync"
)

// sharedMasks are the masks of parts that grammars have in common, by signature.
type sharedMasks struct {
	mu    sync.Mutex
	masks map[string]*partMask
	order []string // oldest first
	bytes int
	limit int // of bytes; 0: sharedBytes
}

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
	for s.bytes > cmp.Or(s.limit, sharedBytes) && len(s.order) > 1 {
		oldest := s.order[0]
		s.bytes -= s.masks[oldest].bytes + len(oldest)
		delete(s.masks, oldest)
		s.order = s.order[1:]
	}
}
