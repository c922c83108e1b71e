package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A pasteReader sits between a terminal's keys and the line editor. What is pasted comes between two
// marks (bracketed paste); several lines, or more than fits a line, are kept aside, and the editor gets a
// short name for them that it can move and delete: its lines have no line breaks, and 4,096 characters
// at most.
type pasteReader struct {
	r    io.Reader
	most int // bytes of an input's pastes that are kept; the rest is dropped, and the name says so

	raw     [256]byte
	full    bool   // the last read had as much as it could
	in      []byte // read, not yet looked at
	out     []byte // for the editor
	pasting bool
	dropped int
	paste   []byte
	kept    map[string]string // pastes of this input by name
	size    int               // bytes of those

	interrupted bool // Ctrl-C was among the keys
	cooked      bool // what is read next may have been typed while the terminal was not in raw mode
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	pasteShort = 512 // bytes that are put into the line itself
	keyCtrlC   = 3
	keyCtrlD   = 4
)

func (p *pasteReader) Read(b []byte) (int, error) {
	for len(p.out) == 0 {
		n, err := p.r.Read(p.raw[:])
		p.in, p.full = append(p.in, p.raw[:n]...), n == len(p.raw)
		p.look()
		p.cooked = false
		if err != nil && len(p.out) == 0 {
			p.out, p.in = append(p.out, p.in...), nil // an unfinished mark was keys
			if len(p.out) == 0 {
				return 0, err
			}
		}
	}
	n := copy(b, p.out)
	p.out = append(p.out[:0], p.out[n:]...)
	return n, nil
}

// look moves what was read to the editor or to the paste, up to what may be the beginning of a mark.
func (p *pasteReader) look() {
	for len(p.in) > 0 {
		mark := pasteBegin
		if p.pasting {
			mark = pasteEnd
		}
		i := bytes.Index(p.in, []byte(mark))
		if i < 0 {
			n := len(p.in) - p.unfinished(mark)
			p.take(p.in[:n])
			p.in = append(p.in[:0], p.in[n:]...)
			return
		}
		p.take(p.in[:i])
		p.in = append(p.in[:0], p.in[i+len(mark):]...)
		if p.pasting {
			p.endPaste()
		}
		p.pasting = !p.pasting
	}
}

// unfinished is how many bytes at the end of what was read may begin the mark. A lone escape is a key, unless
// more is pasted or read at once.
func (p *pasteReader) unfinished(mark string) int {
	least := 2
	if p.pasting || p.full {
		least = 1
	}
	for n := min(len(mark)-1, len(p.in)); n >= least; n-- {
		if bytes.HasSuffix(p.in, []byte(mark[:n])) {
			return n
		}
	}
	return 0
}

func (p *pasteReader) take(b []byte) {
	if !p.pasting {
		if p.cooked {
			b = bytes.ReplaceAll(b, []byte{0}, []byte{keyCtrlD}) // so the system keeps it
		}
		p.interrupted = p.interrupted || bytes.IndexByte(b, keyCtrlC) >= 0
		p.out = append(p.out, b...)
		return
	}
	n := min(len(b), max(p.most-p.size-len(p.paste), 0))
	p.paste, p.dropped = append(p.paste, b[:n]...), p.dropped+len(b)-n
}

func (p *pasteReader) endPaste() {
	text := cleanPaste(string(p.paste))
	dropped := p.dropped
	p.paste, p.dropped = nil, 0
	if !strings.Contains(text, "\n") && len(text) <= pasteShort && dropped == 0 {
		p.out = append(p.out, text...)
		return
	}
	name := fmt.Sprintf("[pasted %s #%d]", count(strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, "line"), len(p.kept)+1)
	if dropped > 0 {
		name = fmt.Sprintf("[pasted %d bytes, %d too many dropped #%d]", len(text), dropped, len(p.kept)+1)
	}
	if p.kept == nil {
		p.kept = map[string]string{}
	}
	p.kept[name] = text
	p.size += len(text)
	p.out = append(p.out, name...)
}

// cleanPaste gives line breaks their usual form and leaves out what is no text.
func cleanPaste(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// expand puts the pastes in the place of their names.
func (p *pasteReader) expand(line string) string {
	var pairs []string
	for name, text := range p.kept {
		pairs = append(pairs, name, text)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// forget drops the pastes of an input that has ended.
func (p *pasteReader) forget() { p.kept, p.size, p.interrupted = nil, 0, false }
