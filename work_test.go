package spillway

import (
	"testing"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/plan"
)

// The matrices' operations are all there, of the kind that the weights' format has.
func TestWorkOfMatrices(t *testing.T) {
	for format, integer := range map[string]bool{"q8_0": true, "f16": false} {
		path, _ := toy(t, format)
		for _, exact := range []bool{false, true} {
			m := openTest(t, path, ModelOptions{Context: 64, Exact: exact})
			var w plan.Work
			m.AddMatrices(&w, 5, 5)
			if got, want := w.Floats+w.Integers, 5*float64(m.Layout().FlopsPerToken); got != want {
				t.Errorf("%s: %g operations, want %g", format, got, want)
			}
			if (w.Integers > w.Floats) != (integer && !exact) {
				t.Errorf("%s, exact %t: %g operations on integers, %g on floats", format, exact, w.Integers, w.Floats)
			}
			before := w
			m.AddMatrices(&w, 3, 0)
			var head float64
			for _, b := range m.Layout().Bundles {
				if b.Kind == layout.Head {
					head += 2 * float64(b.Matrices[0].Rows) * float64(b.Matrices[0].Cols)
				}
			}
			got, want := w.Floats+w.Integers-before.Floats-before.Integers, 3*(float64(m.Layout().FlopsPerToken)-head)
			if got != want {
				t.Errorf("%s: %g operations without the head, want %g", format, got, want)
			}
		}
	}
}

// What attention reads counts in the cache's type: once for the rows of a prompt, again for each row that is decoded.
func TestWorkOfAttention(t *testing.T) {
	path, _ := toy(t, "q8_0")
	for kv, bytes := range map[string]float64{"f32": 4, "f16": 2, "bf16": 2, "fp8": 1, "q8_0": 34. / 32} {
		m := openTest(t, path, ModelOptions{Context: 64, KV: kv})
		per := float64(m.Layout().KVValuesPerToken) * bytes
		var prompt, rows plan.Work
		m.AddAttention(&prompt, 10, 20, true)
		m.AddAttention(&rows, 10, 20, false)
		if want := 20 * per; float64(prompt.Active) != want {
			t.Errorf("%s: a prompt reads %d bytes, want %g", kv, prompt.Active, want)
		}
		if want := per * (11 + 20) / 2 * 10; float64(rows.Active) != want {
			t.Errorf("%s: rows read %d bytes, want %g", kv, rows.Active, want)
		}
		if prompt.Floats != rows.Floats || prompt.Floats <= 0 {
			t.Errorf("%s: %g operations, row by row %g", kv, prompt.Floats, rows.Floats)
		}
	}
}
