package spillway

import (
	"strings"

	"github.com/spillway/spillway/internal/tokenizer"
)

// writer turns the tokens of an answer into text.
type writer struct {
	decoder *tokenizer.Decoder // nil if the model has no tokenizer: ids only
	emit    func(string)
	text    strings.Builder
	err     error
}

func (m *Model) newWriter(r Request, emit func(string)) *writer {
	w := &writer{emit: emit}
	if m.tok != nil {
		w.decoder = m.tok.NewDecoder(true)
	}
	return w
}

// push adds a token and reports whether a stop string was found.
func (w *writer) push(id int32) (stop bool) {
	if w.decoder == nil {
		return false
	}
	text, err := w.decoder.Push(id)
	if err != nil {
		w.err = err
		return true
	}
	w.out(text)
	return false
}

func (w *writer) out(text string) {
	w.text.WriteString(text)
	if w.emit != nil && text != "" {
		w.emit(text)
	}
}

func (w *writer) flush() {
	if w.decoder != nil {
		w.out(w.decoder.Flush())
	}
}
