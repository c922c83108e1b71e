package report

import (
	"fmt"
	"strings"
)

// Prose is the report for people: a few lines, each ended by a newline.
func (r *Report) Prose() string {
	var b strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	b.WriteString(r.speedLine())
	b.WriteString(r.memoryLine())
	if f := r.Form; f != nil {
		fmt.Fprintf(&b, "held to %s: compiled in %s, %s in %s, %s without a choice\n", f.Kind, Seconds(f.CompileSeconds), plural(int(f.Masks), "mask"),
			Seconds(f.MaskSeconds), plural(int(f.ForcedTokens), "token"))
	}
	if r.IO.ReadBytes > 0 {
		b.WriteString(r.ioLine())
	}
	b.WriteString(r.rooflineLine())
	return b.String()
}

func (r *Report) speedLine() string {
	s := r.Speed
	line := fmt.Sprintf("%d tokens, %s tokens/s", len(r.IDs), Speedy(s.DecodeTokens, s.DecodeSeconds))
	if s.DecodeTokens == 0 {
		line = plural(len(r.IDs), "token")
	}
	line += fmt.Sprintf(" (prompt: %s in %s, %s tokens/s; loading: %s)", plural(s.PrefillTokens, "token"),
		Seconds(s.PrefillSeconds), Speedy(s.PrefillTokens, s.PrefillSeconds), Seconds(s.LoadSeconds))
	switch r.FinishReason {
	case "length":
		line += ", stopped at --max-tokens"
	case "cancelled":
		line += ", interrupted"
	case "error":
		line += ", ended by an error"
	}
	return line + "\n"
}

// sharedGroup is how far beyond twice our resident size a group's count may be until it is clear that
// it counts other processes too.
const sharedGroup = 32 << 20

func (r *Report) memoryLine() string {
	m := r.Memory
	peak, what := m.LedgerPeak, "leased"
	if m.RSSPeak > 0 {
		peak, what = m.RSSPeak, "peak"
	}
	if group := m.CgroupPeak; group != nil && *group <= 2*m.RSSPeak+sharedGroup {
		peak, what = *group, "peak by the kernel's count"
	}
	line := fmt.Sprintf("memory: %s %s", Bytes(peak), what)
	if m.Budget > 0 {
		line += fmt.Sprintf(", cap %s", Bytes(m.Budget))
	}
	if r.Model.WeightBytes > 0 {
		line += fmt.Sprintf(", weights %s", Bytes(r.Model.WeightBytes))
	}
	if m.Least > 0 {
		line += fmt.Sprintf(", least that works %s", Bytes(m.Least))
	}
	return line + "\n"
}

func (r *Report) ioLine() string {
	line := fmt.Sprintf("weights read: %s, used from memory: %s", Bytes(r.IO.ReadBytes), Bytes(r.IO.HitBytes))
	if r.IO.DriveBytesPerSecond > 0 {
		line += fmt.Sprintf(" (the drive gives %s)", Rate(float64(r.IO.DriveBytesPerSecond)))
	}
	if x := r.Experts; x != nil && x.Needed > 0 {
		line += fmt.Sprintf("\nexperts: %.0f %% of %d were in memory when they were needed (%d of %d have room, policy %s)",
			100*float64(x.Hits)/float64(x.Needed), x.Needed, x.Slots, x.All, x.Policy)
		if g := x.Prediction; g != nil {
			line += fmt.Sprintf("; %d of %d that were read ahead were needed", g.Used, g.Read)
			if g.Off {
				line += ", so few that it was given up"
			}
		}
	}
	return line + "\n"
}

// Busy says why a run can be faster than the machine is said to be.
const Busy = "more than 100 %: the machine was busy while it was measured"

var allowance = map[string]string{"drive": "drive", "memory": "memory's bandwidth", "compute": "processor"}

// rooflineLine is empty where nobody has measured, as in a conversation.
func (r *Report) rooflineLine() string {
	f := r.Roofline
	switch {
	case f.Limit == "":
		return ""
	case f.Fraction <= 0 && f.DriveFraction > 0 && r.Experts != nil: // what had to be read is not known
		return fmt.Sprintf("roofline: %.0f %% of what the %s allows with the bytes that were read\n", 100*f.DriveFraction, allowance[f.Limit])
	case f.Fraction <= 0:
		return "roofline: not measured\n"
	}
	line := fmt.Sprintf("roofline: %.0f %% of what the %s allows", 100*f.Fraction, allowance[f.Limit])
	if f.Limit == "drive" {
		line += fmt.Sprintf(" (%.0f %% with the bytes that were read; %.0f %% of those had to be)", 100*f.DriveFraction, 100*f.PolicyFraction)
	}
	if f.Fraction > 1 {
		line += " (" + Busy + ")"
	}
	return line + "\n"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
