package regular

import "testing"

func BenchmarkRegexp(b *testing.B) {
	for _, c := range []struct{ name, pattern string }{
		{"identifier", `^[a-zA-Z_][a-zA-Z0-9_]*$`},
		{"length", `^.{1,255}$`},
		{"letters", `^[\p{L}\p{N} ]{1,64}$`},
		{"mail", `^[\w.+-]+@[\w-]+(\.[\w-]+)+$`},
		{"version", `^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`},
		{"ahead", `^(?=.*[a-z])(?=.*\d)(?=.*[A-Z]).{8,32}$`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var d, e *DFA
			steps := 0
			for b.Loop() {
				builder := NewBuilder(Limits{})
				var err error
				if d, err = builder.Regexp(c.pattern, true); err != nil {
					b.Fatal(err)
				}
				if e, err = builder.JSONString(d, Canonical); err != nil {
					b.Fatal(err)
				}
				steps = builder.steps
			}
			b.ReportMetric(float64(d.States()), "states")
			b.ReportMetric(float64(e.States()), "json-states")
			b.ReportMetric(float64(e.Bytes()), "bytes")
			b.ReportMetric(float64(steps), "steps")
		})
	}
}
