package kernel

import "github.com/spillway/spillway/internal/quant"

// batchOps multiply weights as they are stored with 8 rows of activations. Running sums of a pair of rows of
// weights lie together: 16 for each row of activations.
type batchOps struct {
	add map[quant.Type]batchFunc
	// twice copies the 16-bit values of 8 rows as add wants them.
	twice  func(dst *byte, x *byte, xStride int, n int)
	totals func(sums *float32, pairs int, out *float32, outStride int)
}

// batchFunc adds n groups of pairs of rows of weights to their running sums.
type batchFunc = func(w *byte, rowBytes int, pairs int, n int, x *byte, xStride int, twice *byte, sums *float32)

const (
	batchRows   = 8
	batchGroups = 2                               // of a slice: the activations stay in the first-level cache
	pairSums    = 2 * batchRows                   // entries of a pair of rows of weights
	twiceBytes  = batchRows * groupValues * 2 * 2 // of a group
)

// batchFor returns the loop for the product if it has 8 rows of activations and whole groups.
func (j *product) batchFor(m *matmulOps) batchFunc {
	if m.batch == nil || j.a.Rows != batchRows || j.w.Cols%groupValues != 0 || panelBytes(j.w.Cols) < j.a.Stride/groupValues*twiceBytes {
		return nil
	}
	return m.batch.add[j.w.Type]
}

// overBatch multiplies rows lo to hi of weights with 8 rows of activations.
func overBatch(j *product, s workspace, lo, hi int) {
	stride := j.a.Stride / groupValues
	active.matmul.batch.twice(&s.mem[0], bytePtr(&j.a.groups[0]), stride*actSize, stride)
	for ; lo < hi; lo += panelRows {
		j.batchPanel(s, lo, min(panelRows, hi-lo))
	}
}

// batchPanel multiplies n rows of weights, slice by slice of columns. An odd row is taken as both of a pair.
func (j *product) batchPanel(s workspace, lo, n int) {
	kept := s.sums(j.w.Cols)[:(n+1)/2*pairSums]
	clear(kept)
	ops, stride, group := active.matmul.batch, j.a.Stride/groupValues, j.format.bytes
	for at := 0; at < stride; at += batchGroups {
		x, twice := bytePtr(&j.a.groups[at]), &s.mem[at*twiceBytes]
		m := min(batchGroups, stride-at)
		if n > 1 {
			j.batch(&j.row(lo)[at*group], j.rowBytes, n/2, m, x, stride*actSize, twice, &kept[0][0])
		}
		if n%2 == 1 {
			j.batch(&j.row(lo + n - 1)[at*group], 0, 1, m, x, stride*actSize, twice, &kept[n/2*pairSums][0])
		}
	}
	if n > 1 {
		ops.totals(&kept[0][0], n/2, &j.out[lo], 4*j.outStride)
	}
	if n%2 == 1 {
		spare := &s.tiles.integer.spare
		ops.totals(&kept[n/2*pairSums][0], 1, &spare[0], 4*2)
		for i := range batchRows {
			j.out[i*j.outStride+lo+n-1] = spare[2*i]
		}
	}
}
