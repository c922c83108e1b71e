package grammar

import "sync"

// sharedMasks are the masks of parts that grammars have in common, by signature.
type sharedMasks struct {
	mu    sync.Mutex
	masks map[string]*partMask
	order []string // oldest first
	bytes int
}

// sharedBytes bounds the memory of a vocabulary's shared masks.
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
	for s.bytes > sharedBytes && len(s.order) > 1 {
		oldest := s.order[0]
		s.bytes -= s.masks[oldest].bytes + len(oldest)
		delete(s.masks, oldest)
		s.order = s.order[1:]
	}
}
