package calls

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar/cfg"
)

// closers are texts that bring an answer nearer to its end.
func closers(o Options) []string {
	out := []string{`"`, "'", "}", "]", ")", `"}`}
	f := formOf(o.Dialect())
	for _, template := range []string{f.pair, f.call} {
		_, after, _ := strings.Cut(strings.Replace(template, "$args", "$value", 1), "$value")
		out = append(out, after)
	}
	if c := channelsOf(dialect.ToolName(o.Dialect())); c != nil {
		for _, form := range []string{c.think, c.note, c.final, c.begun, "$text" + strings.ReplaceAll(f.call, "$name", "now")} {
			_, after, _ := strings.Cut(form, "$text")
			out = append(out, after)
		}
	}
	out = append(append(out, f.end), dialect.ReasoningMarks(o.Tool, o.Reasoning).End...)
	switch {
	case strings.Contains(f.call, "call:"):
		out = append(out, "<escape>", `<|"|>`)
	case strings.Contains(f.call, m3):
		out = append(out, m3+"</text>", m3+"</city>", m3+"</by>", m3+"</note>", m3+"</long>", m3+"</item>", m3+"</any>", m3+"</b>")
	}
	return slices.DeleteFunc(out, func(text string) bool { return text == "" || strings.Contains(text, "$") })
}

// A walk is a text of a grammar that grows at random.
type walk struct {
	t      *testing.T
	m      *cfg.Machine
	at     cfg.Config
	r      *rand.Rand
	tokens bool // marks may be tokens
	ends   []string
	out    []byte
}

// write writes a text until it may end; behind soft bytes it goes for the end.
func write(t *testing.T, o Options, g *cfg.Grammar, r *rand.Rand, soft int) string {
	t.Helper()
	return (&walk{t: t, m: g.NewMachine(), r: r, ends: closers(o)}).write(soft)
}

// writeTokens is write where marks are tokens.
func writeTokens(t *testing.T, o Options, g *cfg.Grammar, r *rand.Rand, soft int) string {
	t.Helper()
	return (&walk{t: t, m: g.NewMachine(), r: r, ends: closers(o), tokens: true}).write(soft)
}

func (w *walk) write(soft int) string {
	w.t.Helper()
	w.at = w.m.Start()
	for len(w.out) < soft+6000 {
		w.m.Begin()
		long := len(w.out) > soft
		if w.m.MayEnd(w.at) && (long || w.r.IntN(4) == 0) {
			return string(w.out)
		}
		if (long && w.r.IntN(4) > 0 || w.r.IntN(12) == 0) && w.close() {
			continue
		}
		if !w.step(long) {
			if w.m.MayEnd(w.at) {
				return string(w.out)
			}
			break
		}
	}
	w.t.Fatalf("no end behind %q", w.out)
	return ""
}

// close takes a text that ends another.
func (w *walk) close() bool {
	for _, i := range w.r.Perm(len(w.ends)) {
		at, text := w.at, w.ends[i]
		for i := 0; i < len(text) && at != cfg.Dead; {
			if n, id := mark(text[i:]); w.tokens && n > 0 && w.m.StepToken(at, id) != cfg.Dead {
				at, i = w.m.StepToken(at, id), i+n
				continue
			}
			at, i = w.m.Step(at, text[i]), i+1
		}
		if at != cfg.Dead {
			w.out, w.at = append(w.out, text...), at
			return true
		}
	}
	return false
}

// mark is the mark at the beginning of a text as a token.
func mark(text string) (length int, id int32) {
	o := Options{Token: markToken}
	return o.tokenAt(text)
}

func markToken(text string) (int32, bool) {
	i := slices.Index(marks, text)
	return int32(1000 + i), i >= 0 //nolint:gosec // few
}

func (w *walk) step(long bool) bool {
	const usual = " \n<>/{}[]\"'\\|:,=abtnf013ptr"
	if !w.tokens {
		for range 4 { // soon found in free text
			b := usual[w.r.IntN(len(usual))]
			if to := w.m.Step(w.at, b); to != cfg.Dead {
				w.out, w.at = append(w.out, b), to
				return true
			}
		}
	}
	var next []byte
	for b := range 256 {
		if w.m.Step(w.at, byte(b)) != cfg.Dead {
			next = append(next, byte(b))
		}
	}
	tokens := w.m.Allowed(nil, w.at)
	if len(tokens) > 0 && (len(next) == 0 || w.r.IntN(3) == 0) {
		id := tokens[w.r.IntN(len(tokens))]
		w.out, w.at = append(w.out, marks[id-1000]...), w.m.StepToken(w.at, id)
		return true
	}
	if len(next) == 0 {
		return false
	}
	b := choose(w.r, next, long)
	w.out, w.at = append(w.out, b), w.m.Step(w.at, b)
	return true
}

// choose takes letters and bytes of the structure for likelier where the text should end.
func choose(r *rand.Rand, next []byte, long bool) byte {
	const ending = "}])>\"'\n/<|eonclrtfasugmpibdhk_=-"
	var likely []byte
	for _, b := range next {
		if long && strings.IndexByte(ending, b) >= 0 {
			likely = append(likely, b)
		}
	}
	if len(likely) > 0 && r.IntN(5) > 0 {
		next = likely
	}
	return next[r.IntN(len(next))]
}
