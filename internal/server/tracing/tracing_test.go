package tracing

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type received struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID      string `json:"traceId"`
				SpanID       string `json:"spanId"`
				ParentSpanID string `json:"parentSpanId"`
				Name         string
				Start        string `json:"startTimeUnixNano"`
				Attributes   []struct {
					Key   string
					Value map[string]any
				}
				Status struct {
					Code    int
					Message string
				}
			}
		}
	}
}

func TestSpansArrive(t *testing.T) {
	got := make(chan received, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var x received
		if err := json.NewDecoder(r.Body).Decode(&x); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		got <- x
	}))
	defer server.Close()
	e, err := New(server.URL, "test")
	if err != nil {
		t.Fatal(err)
	}
	s := e.Start("chat", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	s.Set("tokens", 7)
	now := time.Now()
	e.Part(s, "prefill", now, now.Add(time.Second))
	e.End(s, errors.New("broken"))
	e.Close()
	spans := (<-got).ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || spans[0].Name != "prefill" || spans[0].ParentSpanID != spans[1].SpanID {
		t.Fatalf("%+v", spans)
	}
	if c := spans[1]; c.TraceID != "0af7651916cd43dd8448eb211c80319c" || c.ParentSpanID != "b7ad6b7169203331" || c.Status.Code != 2 || c.Attributes[0].Value["intValue"] != "7" {
		t.Errorf("%+v", c)
	}
	if sent, dropped := e.Counts(); sent != 2 || dropped != 0 {
		t.Errorf("%d sent, %d dropped", sent, dropped)
	}
}

// A collector that is not there costs spans and nothing else.
func TestWithoutACollector(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	e, err := New(server.URL, "test")
	if err != nil {
		t.Fatal(err)
	}
	const spans = mostSpans + 200
	for range spans {
		e.End(e.Start("x", "no traceparent"), nil)
	}
	e.Close()
	if sent, dropped := e.Counts(); sent != 0 || dropped != spans {
		t.Errorf("%d sent, %d dropped of %d", sent, dropped, spans)
	}
}

func TestNilAndBadAddresses(t *testing.T) {
	var none *Exporter
	s := none.Start("x", "")
	s.Set("a", 1)
	none.Part(s, "y", time.Now(), time.Now())
	none.End(s, nil)
	none.Close()
	for _, bad := range []string{"", "collector", "ftp://x", "http://"} {
		if _, err := New(bad, "x"); err == nil {
			t.Errorf("%q is taken for an address", bad)
		}
	}
}
