package repack

import (
	"encoding/binary"
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// order is which group each column of a matrix belongs to (GPTQ's g_idx). With an order the columns of
// a matrix are sorted by their group, equal ones as they were; without, it must say the same.
type order struct {
	t     *Tensor // I32, one group for each column
	cols  int
	group int // columns of a group
}

// bytes is the scratch that sorted needs.
func (o *order) bytes() int { return 8*o.cols + 4*ceil(o.cols, o.group) + 64 }

// sorted returns the place of each column.
func (o *order) sorted(j *job) ([]int32, error) {
	groups := ceil(o.cols, o.group)
	raw, err := j.load(o.t, 0, int64(4*o.cols))
	if err != nil {
		return nil, err
	}
	next := int32s(j.take(4 * groups))
	for g := range next {
		next[g] = int32(g * o.group)
	}
	place := int32s(j.take(4 * o.cols))
	for k := range place {
		g := int(int32(binary.LittleEndian.Uint32(raw[4*k:])))
		if g < 0 || g >= groups || int(next[g]) == min((g+1)*o.group, o.cols) {
			return nil, o.fault("column %d is in group %d; expected are %d groups of %d columns", k, g, groups, o.group)
		}
		place[k] = next[g]
		next[g]++
	}
	return place, nil
}

// fault says what is wrong with the file.
func (o *order) fault(format string, args ...any) error {
	return &container.Error{Where: "tensor " + container.Name(o.t.Name), What: fmt.Sprintf(format, args...)}
}

// check reports an order other than that of the columns.
func (o *order) check(j *job) error {
	return j.visit(rowsOf(o.t, 4, 0, o.cols), func(s, count int, b []byte, pitch int) error {
		for i := range count {
			if g := int(int32(binary.LittleEndian.Uint32(b[i*pitch:]))); g != (s+i)/o.group {
				return o.fault("column %d is in group %d, but the configuration says that columns were not reordered", s+i, g)
			}
		}
		return nil
	})
}

// add adds the order itself as a region of f32 numbers.
func (o *order) add(f *File) int64 {
	return f.add(o.cols, 4, o.bytes(), func(j *job) error {
		place, err := o.sorted(j)
		if err != nil {
			return err
		}
		for k, p := range place {
			if int(p) >= j.r0 && int(p) < j.r1 {
				setF32(j.row(int(p)), float32(k))
			}
		}
		return nil
	})
}
