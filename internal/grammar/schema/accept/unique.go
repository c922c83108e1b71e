package accept

import (
	"hash/maphash"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// uniques are the values of an array so far, by their hashes.
type uniques map[uint64][]numbered

type numbered struct {
	value *schema.Value
	index int
}

// add says whether an equal value was there, and where.
func (u *uniques) add(v *schema.Value, hash uint64, index int) (twin int, found bool) {
	if *u == nil {
		*u = uniques{}
	}
	for _, n := range (*u)[hash] {
		if n.value.Equal(v) {
			return n.index, true
		}
	}
	(*u)[hash] = append((*u)[hash], numbered{v, index})
	return 0, false
}

// hashScalar is the same for equal values; it knows no spelling of numbers. The seed keeps texts from being
// written that make all hashes equal.
func (c *Checker) hashScalar(v *schema.Value) uint64 {
	switch v.Kind {
	case schema.Boolean:
		if v.Bool {
			return 1
		}
		return 2
	case schema.Number:
		h := maphash.Bytes(c.seed, v.Number.Num().Bytes()) + uint64(v.Number.Sign())
		return h ^ maphash.Bytes(c.seed, v.Number.Denom().Bytes())<<1
	case schema.String:
		return maphash.String(c.seed, v.Text) + 3
	}
	return 0
}

// hashItem goes on with the hash of an array.
func hashItem(array, item uint64) uint64 { return array*0x9E3779B97F4A7C15 + item + 4 }

// hashMember goes on with the hash of an object, which knows no order.
func (c *Checker) hashMember(object uint64, name string, member uint64) uint64 {
	return object + maphash.String(c.seed, name)*(member|1)
}
