package main

// floatLoad says how 8 weights at pointer r become two registers of floats; it moves r on.
type floatLoad struct {
	name string
	load func(a *asm, lo, hi v, r int)
}

var floatLoads = []floatLoad{
	{"F32", func(a *asm, lo, hi v, r int) { a.ldpNext(lo, hi, r) }},
	{"F16", func(a *asm, lo, hi v, r int) {
		a.ldqNext(lo, r)
		a.u("fcvtl2.4s", hi, lo)
		a.u("fcvtl.4s", lo, lo)
	}},
	{"BF16", func(a *asm, lo, hi v, r int) {
		a.ldqNext(lo, r)
		a.shll16(hi, lo, true)
		a.shll16(lo, lo, false)
	}},
}

const rowsAtOnce = 8

// floatRows writes the running sums of 8 rows of weights as they are stored.
func (a *asm) floatRows(f floatLoad) {
	const params = "w *byte, rowBytes int, rows int, x *float32, k8 int, sums *float32"
	a.fn("floatRows"+f.name+"NEON", "writes the running sums of 8 rows over k8 · 8 values; of fewer rows, the last one stands in for the rest.",
		params, 0, func() {
			a.args(params)
			a.g("MOVD R0, R6")
			for r := 1; r < rowsAtOnce; r++ {
				a.g("CMP $%d, R2", r)
				a.g("CSEL GT, R1, ZR, R15")
				a.g("ADD R15, R%d, R%d", 5+r, 6+r)
			}
			for i := range v(2 * rowsAtOnce) {
				a.zero(i)
			}
			a.loop("R4", func() {
				a.ldpNext(16, 17, 3)
				for r := range rowsAtOnce {
					lo := v(18 + 2*(r%4))
					f.load(a, lo, lo+1, 6+r)
					a.o("fmla.4s", v(2*r), lo, 16)
					a.o("fmla.4s", v(2*r+1), lo+1, 17)
				}
			})
			for r := range rowsAtOnce {
				a.stp(v(2*r), v(2*r+1), 5, 32*r)
			}
		})
}

func (a *asm) decodeRow(f floatLoad) {
	const params = "dst *float32, src *byte, k8 int"
	a.fn("decodeRow"+f.name+"NEON", "decodes k8 · 8 values.", params, 0, func() {
		a.args(params)
		a.loop("R2", func() {
			f.load(a, 0, 1, 1)
			a.stpNext(0, 1, 0)
		})
	})
}

// floatTile continues the running sums of n rows of activations with 4 rows of a panel.
func (a *asm) floatTile(n int) {
	const params = "x *float32, xStride int, w *float32, wStride int, k8 int, sums *float32"
	a.fn("floatTile"+string(rune('0'+n))+"NEON", "continues the running sums, 4 for each row of x, over k8 · 8 values; strides are in bytes.", params, 0, func() {
		a.args(params)
		xs, ws := []int{0, 6, 7}[:n], []int{2, 8, 9, 10}
		for i := 1; i < n; i++ {
			a.g("ADD R1, R%d, R%d", xs[i-1], xs[i])
		}
		for i := 1; i < 4; i++ {
			a.g("ADD R3, R%d, R%d", ws[i-1], ws[i])
		}
		for i := range 4 * n {
			a.ldp(v(2*i), v(2*i+1), 5, 32*i)
		}
		a.loop("R4", func() {
			for r, p := range xs {
				a.ldpNext(v(24+2*r), v(25+2*r), p)
			}
			for i, p := range ws {
				a.ldpNext(30, 31, p)
				for r := range n {
					to := v(2 * (4*r + i))
					a.o("fmla.4s", to, 30, v(24+2*r))
					a.o("fmla.4s", to+1, 31, v(25+2*r))
				}
			}
		})
		for i := range 4 * n {
			a.stp(v(2*i), v(2*i+1), 5, 32*i)
		}
	})
}

func (a *asm) pause() {
	a.fn("pause", "tells the processor that this thread waits for another.", "", 0, func() { a.g("YIELD") })
}

func (a *asm) prefetch() {
	const params = "b *byte, n int"
	a.fn("prefetchNEON", "asks for n bytes, at least one, to be brought to the second-level cache.", params, 0, func() {
		a.args(params)
		a.g("ADD $63, R1, R1")
		a.g("LSR $6, R1, R1")
		a.loop("R1", func() {
			a.g("PRFM (R0), PLDL2KEEP")
			a.g("ADD $64, R0, R0")
		})
	})
}
