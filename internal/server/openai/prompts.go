package openai

import (
	"fmt"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
	"github.com/spillway/spillway/internal/tokenizer"
)

// A prompt is a text or its ids.
type prompt struct {
	text string
	ids  []int32
}

// mostPrompts bounds the prompts of one request.
const mostPrompts = 2048

// readPrompts reads a text, a list of texts, a list of ids, or a list of lists of ids.
func readPrompts(v wire.Value, field string) ([]prompt, error) {
	var all []prompt
	var err error
	switch v.Kind() {
	case wire.Null:
		err = wire.Errorf("", "is missing: give a text, ids of tokens, or a list of either")
	case wire.String:
		var text string
		text, err = v.Text()
		all = []prompt{{text: text}}
	case wire.Array:
		all, err = promptList(v)
	default:
		err = v.Expected("a string or a list")
	}
	switch {
	case err != nil:
	case len(all) == 0:
		err = wire.Errorf("", "is empty: give one at least")
	case len(all) > mostPrompts:
		err = wire.Errorf("", "has %d prompts; at most %d are possible", len(all), mostPrompts)
	}
	return all, wire.Within(field, err)
}

func promptList(v wire.Value) (all []prompt, err error) {
	var ids []int32
	err = v.Each(func(_ int, e wire.Value) error {
		switch e.Kind() {
		case wire.Number:
			var id int32
			err := e.Into(&id)
			ids = append(ids, id)
			return err
		case wire.String:
			text, err := e.Text()
			all = append(all, prompt{text: text})
			return err
		case wire.Array:
			p := prompt{ids: []int32{}}
			err := e.Into(&p.ids)
			all = append(all, p)
			return err
		}
		return e.Expected("a string, a token id or a list of ids")
	})
	if err == nil && len(ids) > 0 {
		if len(all) > 0 {
			return nil, wire.Errorf("", "mixes ids of tokens with other things")
		}
		all = []prompt{{ids: ids}}
	}
	return all, err
}

// at is the path of one of several; of is 1 where it stands alone.
func at(field string, i, of int) string {
	if of == 1 {
		return field
	}
	return fmt.Sprintf("%s[%d]", field, i)
}

// encode puts a prompt into a request and prepares it, without leasing its answers.
func (h held) encode(x *server.Exchange, r *spillway.Request, p prompt, special bool) error {
	switch {
	case p.ids != nil:
		for _, id := range p.ids {
			if id < 0 || int(id) >= h.Layout().Vocab {
				return wire.Errorf("", "has the id %d; the model's tokens are 0 to %d", id, h.Layout().Vocab-1)
			}
		}
		r.IDs = p.ids
	case special:
		r.Prompt, r.Raw, r.ParseSpecial = p.text, true, true
	default:
		tok, err := h.Tokenizer()
		if err != nil {
			return err
		}
		return x.PrepareBy(h.Held, r, textBytes([]byte(p.text)), 0, func(spillway.Request) ([]int32, error) {
			return tok.Encode(nil, p.text, tokenizer.Options{ParseSpecial: true})
		})
	}
	return x.Prepare(h.Held, r, textBytes([]byte(p.text)), 0)
}
