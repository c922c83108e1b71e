package admin

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// text is an answer in Prometheus' text format: the samples of one name stand together, whatever the order in
// which they come.
type text struct {
	names    []string
	families map[string]*bytes.Buffer
}

func newText() *text { return &text{families: map[string]*bytes.Buffer{}} }

// label is a name and its value.
type label struct{ name, value string }

// family is where the samples of a name go.
func (t *text) family(name, kind, help string) *bytes.Buffer {
	b := t.families[name]
	if b == nil {
		b = &bytes.Buffer{}
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		t.families[name] = b
		t.names = append(t.names, name)
	}
	return b
}

func (t *text) gauge(name, help string, v float64, labels ...label) {
	sample(t.family(name, "gauge", help), name, v, labels)
}

func (t *text) counter(name, help string, v float64, labels ...label) {
	sample(t.family(name, "counter", help), name, v, labels)
}

func (t *text) histogram(name, help string, h *histogram, labels ...label) {
	b := t.family(name, "histogram", help)
	n := int64(0)
	for i, bound := range append(h.bounds[:len(h.bounds):len(h.bounds)], math.Inf(1)) {
		n += h.counts[i]
		sample(b, name+"_bucket", float64(n), append(labels[:len(labels):len(labels)], label{"le", number(bound)}))
	}
	sample(b, name+"_sum", h.sum, labels)
	sample(b, name+"_count", float64(n), labels)
}

func sample(b *bytes.Buffer, name string, v float64, labels []label) {
	b.WriteString(name)
	for i, l := range labels {
		b.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(b, `%s="%s"`, l.name, escape(l.value))
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	fmt.Fprintf(b, " %s\n", number(v))
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (t *text) bytes() []byte {
	var out bytes.Buffer
	for _, name := range t.names {
		out.Write(t.families[name].Bytes())
	}
	return out.Bytes()
}
