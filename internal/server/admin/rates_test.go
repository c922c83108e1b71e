package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/openai"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
)

// What a meter has seen within the last minute counts, and the look before that where there was none.
func TestMeter(t *testing.T) {
	var m meter
	start := time.Now()
	at := func(seconds float64, required int64, loads int) look {
		return look{at: start.Add(time.Duration(seconds * float64(time.Second))), required: required, loads: loads}
	}
	for i, c := range []struct {
		now  look
		want float64 // seconds that the rates begin at; -1: they do not
	}{
		{at(0, 5, 1), -1}, {at(0.5, 5, 1), 0}, {at(20, 5, 1), 0}, {at(59, 5, 1), 0}, {at(80, 5, 1), 20}, {at(200, 5, 1), 80}, {at(500, 5, 1), 200},
		{at(510, 6, 1), -1}, {at(520, 6, 1), 510}, // another plan
		{at(530, 6, 2), -1}, {at(540, 6, 2), 530}, // another load
	} {
		begin, ok := m.since(c.now)
		if got := begin.at.Sub(start).Seconds(); ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("look %d: since %v, %v, want %v", i, got, ok, c.want)
		}
	}
	for range 10_000 {
		m.since(at(545, 6, 2))
	}
	if len(m.seen) > 5 {
		t.Errorf("%d looks are kept", len(m.seen))
	}
}

func TestRatesOf(t *testing.T) {
	begin := look{at: time.Now(), read: 1000, steps: time.Second, answers: time.Second, answered: 10, required: 100}
	now := begin
	now.at, now.read, now.steps, now.answers, now.answered = begin.at.Add(10*time.Second), 5000, 9*time.Second, 5*time.Second, 30
	show := func(r Rates) string { text, _ := json.Marshal(r); return string(text) }
	for _, c := range []struct {
		best     float64
		required int64
		want     string
	}{
		{1000, 100, `{"seconds":10,"read_bytes_per_second":400,"drive_best_bytes_per_second":1000,"drive_fraction":0.5,"decode_roofline_fraction":0.5}`},
		{1000, 0, `{"seconds":10,"read_bytes_per_second":400,"drive_best_bytes_per_second":1000,"drive_fraction":0.5,"decode_roofline_fraction":null}`},
		{1000, -1, `{"seconds":10,"read_bytes_per_second":400,"drive_best_bytes_per_second":1000,"drive_fraction":0.5,"decode_roofline_fraction":null}`},
		{0, 100, `{"seconds":10,"read_bytes_per_second":400,"drive_best_bytes_per_second":null,"drive_fraction":null,"decode_roofline_fraction":null}`},
	} {
		now.required = c.required
		if got := show(ratesOf(begin, now, c.best)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if got := show(ratesOf(now, now, 1000)); got != `{"seconds":0,"read_bytes_per_second":null,"drive_best_bytes_per_second":1000,"drive_fraction":null,"decode_roofline_fraction":null}` {
		t.Errorf("without time: %s", got)
	}
}

// The metrics of a model that streams are those of its counters, between two looks.
func TestDriveMetrics(t *testing.T) {
	m := NewMetrics(nil)
	var asked []uint64
	const best = 1e9
	m.Drive = func(device uint64) float64 { asked = append(asked, device); return best }
	s, _ := servertest.Streaming(t, servertest.Options{
		Server: server.Options{Observer: m}, Mount: func(s *server.Server) error { openai.Mount(s); Mount(s, m); return nil },
	})
	look := func() Model {
		var st State
		if _, _, text := s.Do("GET", "/admin/state", ""); json.Unmarshal([]byte(text), &st) != nil || len(st.Models) != 1 {
			t.Fatal(text)
		}
		return st.Models[0]
	}
	before := look()
	if r := before.Rates; r.Seconds != 0 || r.Read != nil || r.Roofline != nil || r.Best == nil || *r.Best != best {
		t.Errorf("at first: %+v", r)
	}
	s.Post("/v1/completions", 200, `{"model":"toy","prompt":[5,6,7,8],"max_tokens":6,"temperature":0,"ignore_eos":true}`, &struct{}{})
	after := look()
	d, r := after.Requests, after.Rates
	if d.AnswerSteps-before.Requests.AnswerSteps != 5 || d.StepTime <= d.AnswerTime {
		t.Errorf("%+v", d)
	}
	state, err := s.Models.Find(servertest.Toy)
	if err != nil {
		t.Fatal(err)
	}
	least := float64(5 * state.Model.CurrentPlan().RequiredBytes())
	if r.Read == nil || *r.Read <= 0 || r.Drive == nil || r.Roofline == nil || least == 0 || math.Abs(*r.Roofline/(least/best/d.AnswerTime)-1) > 1e-9 {
		t.Errorf("%+v of %+v", r, d)
	}
	if len(asked) != 1 || asked[0] != state.Drive || asked[0] == 0 {
		t.Errorf("asked for the drives %v, of the model is %d", asked, state.Drive)
	}
	_, _, text := s.Do("GET", "/metrics", "")
	for name, want := range map[string]float64{
		"spillway_drive_best_bytes_per_second": best, "spillway_decode_steps_total": 5, "spillway_decode_step_seconds_total": d.AnswerTime, "spillway_decode_roofline_fraction": *r.Roofline,
	} {
		if got, ok := sampleOf(text, name+`{model_name="toy"}`); !ok || math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"spillway_drive_read_bytes_per_second", "spillway_drive_fraction"} {
		if got, ok := sampleOf(text, name+`{model_name="toy"}`); !ok || got <= 0 {
			t.Errorf("%s is %v (there: %v)", name, got, ok)
		}
	}
}

// sampleOf is a sample in Prometheus' text format.
func sampleOf(text, name string) (v float64, ok bool) {
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(found[1], 64)
	return v, err == nil
}

// What nobody knows is no sample: the embedded model has no drive, and a model that is not loaded does nothing.
func TestUnknownRates(t *testing.T) {
	s := start(t)
	for i := range 2 {
		_, _, text := s.Do("GET", "/metrics", "")
		for _, name := range []string{"spillway_drive_best_bytes_per_second", "spillway_drive_fraction", "spillway_decode_roofline_fraction"} {
			if v, ok := sampleOf(text, name+`{model_name="storyteller"}`); ok {
				t.Errorf("look %d: %s is %v", i, name, v)
			}
		}
	}
	if err := s.Models.Unload(t.Context(), servertest.Model); err != nil {
		t.Fatal(err)
	}
	if _, _, text := s.Do("GET", "/admin/state", ""); !regexp.MustCompile(`"rates":null`).MatchString(text) {
		t.Error(text)
	}
}

// Operators see connections that made room, and models that cannot be relied on.
func TestTroubleIsCounted(t *testing.T) {
	m := NewMetrics(nil)
	s := servertest.Start(t, servertest.Options{
		Server: server.Options{Connections: 3}, Pool: pool.Options{KeepAlive: pool.Forever}, Mount: func(s *server.Server) error { Mount(s, m); return nil },
	})
	h, err := s.Models.Acquire(t.Context(), servertest.Model)
	if err != nil {
		t.Fatal(err)
	}
	check := func(broken, failures float64) {
		t.Helper()
		_, _, text := s.Do("GET", "/metrics", "")
		for name, want := range map[string]float64{
			`spillway_model_broken{model_name="storyteller"}`: broken, `spillway_model_failures_total{model_name="storyteller"}`: failures,
			"spillway_connections": 1, "spillway_connections_limit": 3, "spillway_connections_reclaimed_total": 0,
		} {
			if got, ok := sampleOf(text, name); !ok || got != want {
				t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
			}
		}
		_, _, text = s.Do("GET", "/admin/state", "")
		if broken != 0 != regexp.MustCompile(fmt.Sprintf(`"broken":"the last 3 tries[^"]*","failed":%v`, failures)).MatchString(text) {
			t.Error(text)
		}
	}
	check(0, 0)
	for range 3 {
		h.Failed()
	}
	check(1, 3)
	h.Worked()
	check(0, 3)
	h.Release()
}
