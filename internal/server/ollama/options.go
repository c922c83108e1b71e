package ollama

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/sample"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// options are the parameters of a request. Those that shape how a model is loaded (num_ctx, num_gpu, num_thread …) were
// settled when the server started; they change no answer, and are ignored.
type options struct {
	NumPredict       *int         `json:"num_predict"`
	Temperature      *float32     `json:"temperature"`
	TopK             *int         `json:"top_k"`
	TopP             *float32     `json:"top_p"`
	MinP             *float32     `json:"min_p"`
	TypicalP         *float32     `json:"typical_p"`
	RepeatPenalty    *float32     `json:"repeat_penalty"`
	RepeatLastN      *int         `json:"repeat_last_n"`
	PresencePenalty  *float32     `json:"presence_penalty"`
	FrequencyPenalty *float32     `json:"frequency_penalty"`
	Mirostat         int          `json:"mirostat"`
	MirostatTau      *float32     `json:"mirostat_tau"`
	MirostatEta      *float32     `json:"mirostat_eta"`
	Seed             *int64       `json:"seed"`
	Stop             wire.Strings `json:"stop"`
}

// request puts the options over the model's defaults.
func (o *options) request(h *pool.Held) (spillway.Request, error) {
	r := spillway.Request{Stop: o.Stop, Read: true, Clip: true, Open: true}
	if o.NumPredict != nil && *o.NumPredict > 0 { // below 0: as long as the context holds
		r.MaxTokens = *o.NumPredict
	}
	if err := server.CheckStops("options.stop", o.Stop); err != nil {
		return r, err
	}
	p := h.Defaults().Sampling
	o.put(&p)
	if o.Mirostat != 0 && o.Mirostat != 2 {
		return r, wire.Errorf("options.mirostat", "is %d; there are 0 (off) and 2", o.Mirostat)
	}
	if o.Mirostat == 0 {
		p.MirostatTau = 0
	} else if p.MirostatTau == 0 {
		p.MirostatTau = mirostatTau
	}
	var wrong *sample.ParamError
	if err := p.Validate(); errors.As(err, &wrong) {
		return r, wire.Errorf("options."+strings.ReplaceAll(wrong.Name, "-", "_"), "is %v; it must be %s", wrong.Value, wrong.Want)
	} else if err != nil {
		return r, err
	}
	r.Sampling = &p
	return r, nil
}

// mirostatTau is what Ollama means where mirostat is on and its aim is not given.
const mirostatTau = 5

func (o *options) put(p *spillway.Sampling) {
	for _, f := range []struct{ to, from *float32 }{
		{&p.Temperature, o.Temperature}, {&p.TopP, o.TopP}, {&p.MinP, o.MinP}, {&p.Typical, o.TypicalP}, {&p.RepeatPenalty, o.RepeatPenalty},
		{&p.PresencePenalty, o.PresencePenalty}, {&p.FrequencyPenalty, o.FrequencyPenalty}, {&p.MirostatTau, o.MirostatTau}, {&p.MirostatEta, o.MirostatEta},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if o.TopK != nil {
		p.TopK = max(*o.TopK, 0)
	}
	if o.RepeatLastN != nil {
		if p.RepeatLastN = max(*o.RepeatLastN, -1); p.RepeatLastN == 0 { // none, not all
			p.RepeatPenalty, p.PresencePenalty, p.FrequencyPenalty = 0, 0, 0
		}
	}
	p.Seed = rand.Uint64() //nolint:gosec // no secret
	if o.Seed != nil {
		p.Seed = uint64(*o.Seed)
	}
}

// keepAlive is how long a model stays loaded: seconds, or a duration such as "5m"; negative is forever.
type keepAlive struct {
	given bool
	time  time.Duration
}

// ReadJSON is part of wire.Reader.
func (k *keepAlive) ReadJSON(v wire.Value) error {
	switch v.Kind() {
	case wire.Null:
		return nil
	case wire.Number:
		n, err := v.Float()
		if err != nil {
			return err
		}
		k.given, k.time = true, time.Duration(min(max(n, -1), 1e9)*float64(time.Second))
	case wire.String:
		text, err := v.Text()
		if err != nil {
			return err
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return wire.Errorf("", "is %.40q; 300, \"5m\", 0 and -1 would do", text)
		}
		k.given, k.time = true, d
	default:
		return v.Expected("a number of seconds or a duration")
	}
	if k.time < 0 {
		k.time = pool.Forever
	}
	return nil
}

// thinking says whether the model is to reason: true, false, or how much.
type thinking struct {
	given, on bool
	level     string
}

// ReadJSON is part of wire.Reader.
func (t *thinking) ReadJSON(v wire.Value) error {
	switch v.Kind() {
	case wire.Null:
		return nil
	case wire.Bool:
		t.given, t.on = true, string(v.Raw()) == "true"
		return nil
	case wire.String:
		var err error
		t.given, t.on = true, true
		t.level, err = v.Text()
		return err
	}
	return v.Expected("a boolean or a level")
}
