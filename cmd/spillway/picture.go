package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spillway/spillway/internal/report"
)

func (c *inspectCommand) print(w io.Writer, i *inspection) error {
	var b strings.Builder
	i.summary(&b)
	picture(&b, "where the bytes are", i.Shares)
	picture(&b, "number formats", i.Types)
	if len(i.Metadata) > 0 {
		b.WriteString("\nmetadata\n")
		table(&b, func(t io.Writer) {
			for _, e := range i.Metadata {
				fmt.Fprintf(t, "  %s\t%s\t%s\n", visible(e.Key, 60), e.Kind, visible(e.Value, 100))
			}
		})
	}
	if c.Tensors {
		b.WriteString("\ntensors\n")
		table(&b, func(t io.Writer) {
			for _, x := range i.Tensors {
				fmt.Fprintf(t, "  %s\t%s\t%s\t%s\tfile %d at %d\n", visible(x.Name, 80), x.Type, dims(x.Shape), report.Bytes(x.Bytes), x.File, x.Offset)
			}
		})
	}
	if c.Bundles {
		b.WriteString("\nbundles\n")
		table(&b, func(t io.Writer) {
			for _, x := range i.Bundles {
				many := ""
				if x.Experts > 0 {
					many = fmt.Sprintf("\t%d of them, %d used", x.Experts, x.Used)
				}
				fmt.Fprintf(t, "  %s\t%s\t%s\t%d matrices%s\n", x.Name, x.Kind, report.Bytes(x.Bytes), len(x.Matrices), many)
			}
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (i *inspection) summary(b *strings.Builder) {
	version := ""
	if i.Version > 0 {
		version = fmt.Sprintf(" version %d", i.Version)
	}
	if i.Packed != nil {
		version += ", packed"
	}
	fmt.Fprintf(b, "%s: %s%s, %s, %s, %s\n", visible(i.Path, 200), i.Format, version, count(len(i.Files), "file"),
		count(len(i.Tensors), "tensor"), report.Bytes(i.Bytes))
	if m := i.Model; m != nil {
		fmt.Fprintf(b, "%s, %s parameters, %d layers, hidden %d, vocabulary %d, context %d tokens\n",
			m.Family, report.Count(m.Parameters), m.Layers, m.Hidden, m.Vocab, m.Context)
	} else {
		fmt.Fprintf(b, "cannot be run: %s\n", visible(i.Problem, 300))
	}
	fmt.Fprintf(b, "identity %s\n", i.Identity)
}

// picture draws a bar for each share of their sum, which is the file's size but where a scheme of
// quantization has fewer bytes in the file than in memory.
func picture(b *strings.Builder, title string, shares []share) {
	total := int64(0)
	for _, x := range shares {
		total += x.Bytes
	}
	if total <= 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	const width = 32
	for _, x := range shares {
		part := float64(x.Bytes) / float64(total)
		fmt.Fprintf(b, "  %-18s %s %10s %5.1f %%\n", visible(x.Name, 18), report.Bar(part, width), report.Bytes(x.Bytes), 100*part)
	}
}

func table(b *strings.Builder, rows func(io.Writer)) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	rows(t)
	t.Flush() // a strings.Builder takes everything
}

// visible makes what a file says harmless for a terminal, and not too long.
func visible(s string, most int) string {
	short, more := s, ""
	if r := []rune(s); len(r) > most {
		short, more = string(r[:most]), "…"
	}
	if strings.ContainsFunc(short, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		short = strconv.Quote(short)
	}
	return short + more
}

func dims(shape []int) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, " × ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
