package layout_test

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/quant"
)

// twoMatrices is a model of a and b, which are neighbours in the file, and a placement of them.
func twoMatrices() (*layout.Model, *layout.Placement) {
	a := &layout.Matrix{Name: "a", Type: quant.F32, Rows: 8, Cols: 256, Offset: 1000}
	b := &layout.Matrix{Name: "b", Type: quant.F32, Rows: 8, Cols: 256, Offset: 1000 + 8*1024, ID: 1}
	m := &layout.Model{Matrices: []*layout.Matrix{a, b}, Bundles: []layout.Bundle{{Kind: layout.Head, Matrices: []*layout.Matrix{a, b}}}}
	return m, &layout.Placement{
		Align: 512, Page: 4096, Slots: 2, SlotBytes: 8192, Request: 4096, Readers: 2, LookupBytes: 4096,
		Units: []layout.Unit{
			{Pinned: true, Offset: 1000, Bytes: 2048, Parts: []layout.Part{{Matrix: a, Rows: 2}}},
			{Offset: 1000 + 2048, Bytes: 6 * 1024, TileRows: 4, Parts: []layout.Part{{Matrix: a, Row0: 2, Rows: 6}}},
			{Offset: 1000 + 8*1024, Bytes: 8 * 1024, TileRows: 4, Parts: []layout.Part{{Matrix: b, Rows: 8}}},
		},
	}
}

func TestPlacementArithmetic(t *testing.T) {
	m, p := twoMatrices()
	if err := p.Check(m); err != nil {
		t.Fatal(err)
	}
	if pinned, streamed := p.Swept(m); pinned != 2048 || streamed != 14*1024 {
		t.Errorf("%d bytes pinned, %d streamed", pinned, streamed)
	}
	// a: [3048, 7144) and [7144, 9192); b: [9192, 13288) and [13288, 17384).
	if got, want := p.ReadBytes(), int64(7168-2560+9216-6656+13312-8704+17408-12800); got != want {
		t.Errorf("a sweep reads %d bytes, want %d", got, want)
	}
	if p.PinnedMemory() != 4096 || p.StagingMemory() != 2*8192+3*4096 {
		t.Errorf("%d bytes of memory pinned, %d staging", p.PinnedMemory(), p.StagingMemory())
	}
	if held := p.Held(m); held != 1 {
		t.Errorf("%d slots held", held)
	}
}

// A unit that serves a first and a last matrix holds its slot in between.
func TestHeldCountsMergedUnits(t *testing.T) {
	m := layouttest.Shape{Layers: 1, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 256}.Model()
	order := m.Sweep()
	p := &layout.Placement{}
	for _, x := range order[1:] {
		p.Units = append(p.Units, layout.Unit{Parts: []layout.Part{{Matrix: x, Rows: x.Rows}}})
	}
	last := len(p.Units) - 1
	p.Units[last].Parts = append(p.Units[last].Parts, layout.Part{Matrix: order[0], Rows: order[0].Rows})
	if held := p.Held(m); held != 2 {
		t.Errorf("%d slots held, want 2", held)
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(m *layout.Model, p *layout.Placement)
		want  string
	}{
		"alignment":   {func(_ *layout.Model, p *layout.Placement) { p.Align = 3 }, "not a power of two"},
		"no readers":  {func(_ *layout.Model, p *layout.Placement) { p.Readers = 0 }, "0 readers"},
		"no pages":    {func(_ *layout.Model, p *layout.Placement) { p.Page = 0 }, "pages of 0 bytes"},
		"no slots":    {func(_ *layout.Model, p *layout.Placement) { p.Slots = 0 }, "the ring has 0"},
		"small slots": {func(_ *layout.Model, p *layout.Placement) { p.SlotBytes = 4096 }, "for a slot of 4096"},
		"a gap":       {func(_ *layout.Model, p *layout.Placement) { p.Units = p.Units[1:] }, "row 0 of a has no single home"},
		"an end":      {func(_ *layout.Model, p *layout.Placement) { p.Units = p.Units[:2] }, "row 0 of b has no home"},
		"twice":       {func(_ *layout.Model, p *layout.Placement) { p.Units = append(p.Units, p.Units[2]) }, "no single home"},
		"order":       {func(_ *layout.Model, p *layout.Placement) { p.Units[0], p.Units[1] = p.Units[1], p.Units[0] }, "after its first use"},
		"rows":        {func(_ *layout.Model, p *layout.Placement) { p.Units[2].Parts[0].Rows = 9 }, "which has 8"},
		"bytes":       {func(_ *layout.Model, p *layout.Placement) { p.Units[2].Bytes-- }, "do not fill"},
		"tiles":       {func(_ *layout.Model, p *layout.Placement) { p.Units[0].TileRows = 1 }, "cannot be cut"},
		"file":        {func(_ *layout.Model, p *layout.Placement) { p.Units[2].File = 1 }, "out of place"},
		"two uses": {func(m *layout.Model, _ *layout.Placement) {
			m.Bundles = append(m.Bundles, m.Bundles[0])
		}, "comes twice"},
		"number": {func(m *layout.Model, _ *layout.Placement) { m.Matrices[1].ID = 0 }, "is not number 0"},
		"not swept": {func(m *layout.Model, _ *layout.Placement) {
			m.Bundles[0].Matrices = m.Bundles[0].Matrices[:1]
		}, "no sweep uses it"},
	} {
		m, p := twoMatrices()
		c.spoil(m, p)
		if err := p.Check(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
