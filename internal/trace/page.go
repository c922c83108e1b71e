package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/report"
)

// Page writes a report as one HTML page that needs nothing else: what was traced, hit curves of the
// outcomes with Belady's optimum, heat by layer and expert, reuse distances. Outcomes are as Replay gives them.
func (t *Trace) Page(w io.Writer, name string, outcomes []Outcome) error {
	p := &page{}
	p.put(pageHead)
	p.f("<title>%s</title></head><body>\n<h1>%s</h1>\n", escape(name), escape(name))
	p.facts(t)
	p.curves(t, outcomes)
	p.heat(t, false)
	p.heat(t, true)
	p.reuse(t)
	p.table(t, outcomes)
	p.put("</body></html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// page is plain text: html/template would add more to the program than all of this package.
type page struct{ strings.Builder }

func (p *page) put(s string)                 { p.WriteString(s) }
func (p *page) f(format string, args ...any) { fmt.Fprintf(p, format, args...) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;", "\x00", "\ufffd")

func escape(s string) string { return escaper.Replace(strings.ToValidUTF8(s, "\ufffd")) }

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>
<style>
:root{color-scheme:light dark;--ink:#1c2733;--dim:#66717d;--line:#d5dae0;--back:#fff;--hot:#a3300b;
--c0:#1c2733;--c1:#c2410c;--c2:#1d6fb8;--c3:#2e7d43;--c4:#8a4fa8;--c5:#8a6d00}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--dim:#98a3ae;--line:#39434d;--back:#14191f;--hot:#ff8a5c;
--c0:#e4e8ec;--c1:#ff8a5c;--c2:#6db3f2;--c3:#6fca86;--c4:#cf9be8;--c5:#e0c04a}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:900px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
svg{width:100%;height:auto}text{font-size:11px;fill:var(--dim)}.axis{stroke:var(--line);fill:none}
.curve{fill:none;stroke-width:2}.bar{fill:var(--c2)}.cell{fill:var(--hot)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.15em .8em;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}p{color:var(--dim)}
</style>
`

// facts says what was traced.
func (p *page) facts(t *Trace) {
	h := t.Header
	var demands int64
	for _, s := range t.steps {
		demands += int64(len(s.Experts))
	}
	p.put("<table>\n")
	row := func(key, format string, args ...any) {
		p.f("<tr><th>%s</th><td>%s</td></tr>\n", key, escape(fmt.Sprintf(format, args...)))
	}
	if h.Model.Name != "" {
		row("model", "%s", strings.TrimSpace(h.Model.Name+" "+h.Model.Family))
	}
	row("experts", "%d in each of %d layers, %d used by a row", h.Experts, h.Layers, h.Used)
	if n := t.SlotBytes(); n > 0 {
		row("size", "up to %s each, %s in all", report.Bytes(n), report.Bytes(t.AllBytes()))
	}
	row("trace", "%d steps, %d rows, %d demands of experts", t.Steps, t.Rows, demands)
	p.put("</table>\n")
}

// plot is a frame with axes; x and y of values lie in 0 … 1.
type plot struct{ left, top, width, height float64 }

func (c plot) x(v float64) float64 { return c.left + v*c.width }
func (c plot) y(v float64) float64 { return c.top + (1-v)*c.height }

// grid draws lines at quarters, with their labels.
func (p *page) grid(c plot, label func(v float64) (x, y string)) {
	for i := range 5 {
		v := float64(i) / 4
		x, y := label(v)
		p.f(`<path class="axis" d="M%.0f %.1fh%.0f"/><text x="%.0f" y="%.1f" text-anchor="end">%s</text>`, c.left, c.y(v), c.width, c.left-6, c.y(v)+4, y)
		p.f(`<text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n", c.x(v), c.top+c.height+16, x)
	}
}

// curves draws the hit rate of each policy over the number of slots.
func (p *page) curves(t *Trace, outcomes []Outcome) {
	all := float64(t.Header.Layers * t.Header.Experts)
	c := plot{48, 10, 700, 320}
	p.put("<h2>Hits</h2>\n<p>Demands that find their expert in memory, over the share of all experts that memory has room for.</p>\n")
	p.put(`<svg viewBox="0 0 860 360" role="img" aria-label="hit rate by policy and slots">` + "\n")
	p.grid(c, func(v float64) (string, string) { return percent(v), percent(v) })
	curve := func(i int, name string, of []Outcome, rate func(Outcome) float64) {
		var d strings.Builder
		d.WriteString("M")
		for _, o := range of {
			fmt.Fprintf(&d, "%.1f %.1f ", c.x(min(float64(o.Slots)/all, 1)), c.y(rate(o)))
		}
		p.f(`<path class="curve" style="stroke:var(--c%d)" d="%s"><title>%s</title></path>`, i%6, strings.TrimSpace(d.String()), escape(name))
		p.f(`<path class="curve" style="stroke:var(--c%d)" d="M770 %dh18"/><text x="794" y="%d">%s</text>`+"\n", i%6, 24+20*i, 28+20*i, escape(name))
	}
	byPolicy := groups(outcomes)
	if len(byPolicy) > 0 {
		curve(0, Belady, byPolicy[0], Outcome.OptimalHitRate)
	}
	for i, g := range byPolicy {
		curve(i+1, g[0].Policy, g, Outcome.HitRate)
	}
	p.put("</svg>\n")
}

// Belady is the name of the optimum beside those of policies.
const Belady = "belady"

// groups sorts outcomes by policy, each by rising slots.
func groups(outcomes []Outcome) (out [][]Outcome) {
	for _, o := range outcomes {
		i := slices.IndexFunc(out, func(g []Outcome) bool { return g[0].Policy == o.Policy })
		if i < 0 {
			out, i = append(out, nil), len(out)
		}
		out[i] = append(out[i], o)
	}
	for _, g := range out {
		slices.SortStableFunc(g, func(a, b Outcome) int { return a.Slots - b.Slots })
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// shades is how many steps of heat can be told apart.
const shades = 16

// heat draws how often each expert was needed: a row for each layer, a column for each expert, or ranked, the
// busiest of each layer first.
func (p *page) heat(t *Trace, ranked bool) {
	layers, experts := t.Header.Layers, t.Header.Experts
	high := max(4, min(24, 480/layers))
	if ranked {
		p.put("<p>The same with the busiest expert of each layer on the left.</p>\n")
	} else {
		p.put("<h2>Heat</h2>\n<p>How many steps need each expert: layers from above, experts from the left. Full colour is the busiest of all.</p>\n")
	}
	p.f(`<svg viewBox="0 0 860 %d" role="img" aria-label="heat by layer and expert" shape-rendering="crispEdges">`+"\n", 8+layers*high)
	p.f(`<g transform="translate(48 4) scale(%.4f %d)">`+"\n", 800/float64(experts), high)
	for shade, path := range heatPaths(t.Heat(), layers, experts, ranked) {
		if path.Len() > 0 {
			p.f(`<path class="cell" fill-opacity="%.3f" d="%s"/>`+"\n", float64(shade)/shades, path.String())
		}
	}
	p.put("</g>\n")
	for l := 0; l < layers; l += (layers + 11) / 12 {
		p.f(`<text x="42" y="%d" text-anchor="end">%d</text>`, 8+l*high+high/2, l)
	}
	p.put("</svg>\n")
}

// heatPaths are the cells of each shade, 0 for none.
func heatPaths(heat []int64, layers, experts int, ranked bool) []strings.Builder {
	most := max(slices.Max(heat), 1)
	paths := make([]strings.Builder, shades+1)
	for l := range layers {
		row := slices.Clone(heat[l*experts:][:experts])
		if ranked {
			slices.SortFunc(row, func(a, b int64) int { return int(b - a) })
		}
		for e, n := range row {
			if shade := (n*shades + most - 1) / most; shade > 0 {
				fmt.Fprintf(&paths[shade], "M%d %dh1v1h-1", e, l)
			}
		}
	}
	return paths
}

// reuse draws how many other experts of a layer are needed between two uses of one.
func (p *page) reuse(t *Trace) {
	r := t.Reuse()
	bins := min(64, len(r.Distance))
	sums := make([]int64, bins)
	total := r.First
	for d, n := range r.Distance {
		sums[d*bins/len(r.Distance)] += n
		total += n
	}
	most := max(slices.Max(sums), 1)
	c := plot{48, 10, 800, 200}
	p.f("<h2>Reuse distance</h2>\n<p>How many other experts of the layer were needed since an expert's last use. %d of %d demands were the first of their expert.</p>\n", r.First, total)
	p.put(`<svg viewBox="0 0 860 240" role="img" aria-label="reuse distances">` + "\n")
	p.grid(c, func(v float64) (string, string) {
		return fmt.Sprintf("%.0f", v*float64(t.Header.Experts)), fmt.Sprintf("%.1f %%", 100*v*ratio(most, max(total, 1)))
	})
	for i, n := range sums {
		x, h := c.x(float64(i)/float64(bins)), ratio(n, most)*c.height
		p.f(`<path class="bar" d="M%.1f %.1fv%.1fh%.1fv%.1fz"/>`, x, c.top+c.height, -h, c.width/float64(bins)*0.8, h)
	}
	p.put("\n</svg>\n")
}

// table has the figures behind the curves.
func (p *page) table(t *Trace, outcomes []Outcome) {
	p.put("<h2>Figures</h2>\n<table><tr><th>policy</th><th>slots</th><th>of all</th>")
	known := t.SlotBytes() > 0
	if known {
		p.put("<th>memory</th>")
	}
	p.put("<th>hits</th><th>in answers</th><th>Belady</th><th>policy fraction</th>")
	if known {
		p.put("<th>read</th>")
	}
	p.put("</tr>\n")
	for _, g := range groups(outcomes) {
		for _, o := range g {
			p.f("<tr><td>%s</td><td>%d</td><td>%s</td>", escape(o.Policy), o.Slots, percent(ratio(int64(o.Slots), int64(t.Header.Layers*t.Header.Experts))))
			if known {
				p.f("<td>%s</td>", report.Bytes(int64(o.Slots)*t.SlotBytes()))
			}
			p.f("<td>%.1f %%</td><td>%.1f %%</td><td>%.1f %%</td><td>%.2f</td>", 100*o.HitRate(), 100*o.AnswerHitRate(), 100*o.OptimalHitRate(), o.PolicyFraction())
			if known {
				p.f("<td>%s</td>", report.Bytes(o.ReadBytes))
			}
			p.put("</tr>\n")
		}
	}
	p.put("</table>\n")
}
