package spillway

import (
	"strings"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/tokenizer"
)

// writer turns the tokens of an answer into text: whole characters, and nothing that may still
// become a stop string.
type writer struct {
	decoder *tokenizer.Decoder // nil if the model has no tokenizer: ids only
	stops   *chat.StopScanner
	emit    func(string)
	text    strings.Builder
	err     error
}

func (m *Model) newWriter(r Request, emit func(string)) *writer {
	w := &writer{emit: emit, stops: chat.NewStopScanner(r.Stop)}
	if m.tok != nil {
		w.decoder = m.tok.NewDecoder(true)
	}
	return w
}

// push adds a token and reports whether the answer ends with it.
func (w *writer) push(id int32) (stop bool) {
	if w.decoder == nil {
		return false
	}
	piece, err := w.decoder.Push(id)
	if err != nil {
		w.err = err
		return true
	}
	return w.piece(piece)
}

func (w *writer) piece(piece string) (stop bool) {
	text, stop := w.stops.Push(piece)
	w.show(text)
	return stop
}

// flush shows what was held back.
func (w *writer) flush() {
	if w.decoder != nil && !w.piece(w.decoder.Flush()) {
		w.show(w.stops.Flush())
	}
}

func (w *writer) show(text string) {
	w.text.WriteString(text)
	if w.emit != nil && text != "" {
		w.emit(text)
	}
}
