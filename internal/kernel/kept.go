package kernel

import "sync"

// kept holds values between uses, as sync.Pool does, but through garbage collections too: where the heap's limit is
// near, collections come with every step, and making the values anew would bring the next one.
type kept[T any] struct {
	make func() *T
	mu   sync.Mutex
	free []*T
}

func (k *kept[T]) get() *T {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.free)
	if n == 0 {
		return k.make()
	}
	x := k.free[n-1]
	k.free = k.free[:n-1]
	return x
}

func (k *kept[T]) put(x *T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, x)
}
