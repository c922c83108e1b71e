package spillway

import (
	"strings"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/tokenizer"
)

// writer turns the tokens of an answer into text: whole characters, and nothing that may still become a stop
// string. An answer that is read in a dialect is decoded a second time, with its control tokens spelled out.
type writer struct {
	plain *voice // nil if the model has no tokenizer: ids only
	full  *voice // nil: the plain text is what is read
	reply *reply // nil: the text is not read
	text  strings.Builder
	emit  func(string)
	heard func(Token) // nil: nobody listens to tokens
	keep  bool        // they go to the answer
	tok   *tokenizer.Tokenizer
	err   error
}

func (m *Model) newWriter(r Request, prompt []int32, emit func(string)) (w *writer, err error) {
	w = &writer{emit: emit, heard: r.OnToken, keep: r.LogProbs, tok: m.tok}
	if r.Read {
		if w.reply, err = m.reader(r, prompt); err != nil {
			return nil, err
		}
	}
	if m.tok == nil {
		return w, nil
	}
	w.plain = &voice{decoder: m.tok.NewDecoder(true), stops: chat.NewStopScanner(r.Stop), show: w.show}
	if w.reply != nil && w.reply.parser != nil {
		w.full = &voice{decoder: m.tok.NewDecoder(false), stops: chat.NewStopScanner(r.Stop), show: w.reply.write}
	}
	return w, nil
}

// token hands a token out, before its text.
func (w *writer) token(e engine.Event, a *Answer) {
	if w.heard == nil && !w.keep {
		return
	}
	t := Token{ID: e.ID, Bytes: tokenBytes(w.tok, e.ID), LogProb: e.LogProb, Top: tokenProbs(w.tok, e.Top)}
	if w.keep {
		a.Tokens = append(a.Tokens, t)
	}
	if w.heard != nil {
		w.heard(t)
	}
}

// found is the stop text that ended the answer; empty for none.
func (w *writer) found() string {
	if w.plain == nil {
		return ""
	}
	return w.plain.stops.Found()
}

// push adds a token and reports whether the answer ends with it.
func (w *writer) push(id int32) (stop bool) {
	if w.plain == nil {
		return false
	}
	if w.full != nil {
		if _, w.err = w.full.push(id); w.err != nil {
			return true
		}
	}
	stop, w.err = w.plain.push(id)
	return stop || w.err != nil
}

// flush shows what was held back.
func (w *writer) flush() {
	w.plain.flush()
	w.full.flush()
}

// end completes an answer. It is called however the answer ended.
func (w *writer) end(a *Answer) {
	a.Text = w.text.String()
	if w.reply != nil {
		w.reply.end(a)
	}
}

func (w *writer) show(text string) {
	w.text.WriteString(text)
	if w.emit != nil {
		w.emit(text)
	}
	if w.reply != nil && w.full == nil {
		w.reply.write(text)
	}
}

// A voice is one way to write the tokens of an answer. A nil one is silent.
type voice struct {
	decoder *tokenizer.Decoder
	stops   *chat.StopScanner
	show    func(text string) // is given no empty texts
	stopped bool              // at a stop string; the rest is not shown
}

func (v *voice) push(id int32) (stop bool, err error) {
	piece, err := v.decoder.Push(id)
	if err == nil {
		v.piece(piece)
	}
	return v.stopped, err
}

func (v *voice) piece(piece string) {
	if v.stopped {
		return
	}
	text, stop := v.stops.Push(piece)
	v.stopped = stop
	v.say(text)
}

func (v *voice) flush() {
	if v == nil {
		return
	}
	if v.piece(v.decoder.Flush()); !v.stopped {
		v.say(v.stops.Flush())
	}
}

func (v *voice) say(text string) {
	if text != "" {
		v.show(text)
	}
}
