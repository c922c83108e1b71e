// Package tracing sends spans to an OpenTelemetry collector: OTLP over HTTP in its JSON form, with W3C's
// traceparent for what came before. It keeps a bounded number of spans and never holds a request up: what cannot
// be sent in time is dropped and counted.
package tracing

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	mostSpans  = 512 // that wait to be sent
	batchSpans = 64
	batchTime  = 2 * time.Second
	sendTime   = 5 * time.Second
)

// An Exporter sends spans until it is closed. A nil Exporter does nothing.
type Exporter struct {
	url     string
	service string
	client  *http.Client
	queue   chan Span
	closing chan struct{}
	closed  chan struct{}
	once    sync.Once
	dropped atomic.Int64
	sent    atomic.Int64
}

// New returns an exporter to a collector's address, such as http://127.0.0.1:4318; /v1/traces is added unless
// the address has a path.
func New(endpoint, service string) (*Exporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%.200q is no address of a collector; http://127.0.0.1:4318 would be", endpoint)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	e := &Exporter{
		url: u.String(), service: service, client: &http.Client{Timeout: sendTime},
		queue: make(chan Span, mostSpans), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	go e.loop()
	return e, nil
}

// Close sends what waits, for a few seconds at most.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	e.once.Do(func() { close(e.closing) })
	<-e.closed
	e.client.CloseIdleConnections()
}

// Counts returns how many spans were sent, and how many were dropped.
func (e *Exporter) Counts() (sent, dropped int64) {
	if e == nil {
		return 0, 0
	}
	return e.sent.Load(), e.dropped.Load()
}

// A Span is one piece of work.
type Span struct {
	Name       string
	Trace      [16]byte
	ID, Parent [8]byte // Parent is 0 for none
	Kind       Kind
	Begin, End time.Time
	Attributes []Attribute
	Error      string // empty: fine
}

// Kind says whose work a span is.
type Kind int

// Kinds of OTLP.
const (
	Internal Kind = 1
	Server   Kind = 2
)

// An Attribute is a key with a string, an int64, a float64 or a bool.
type Attribute struct {
	Key   string
	Value any
}

// Start begins the span of a request; traceparent is its header of that name, or "".
func (e *Exporter) Start(name, traceparent string) *Span {
	if e == nil {
		return nil
	}
	s := &Span{Name: name, Kind: Server, Begin: time.Now()}
	if !s.follow(traceparent) {
		_, _ = rand.Read(s.Trace[:])
	}
	_, _ = rand.Read(s.ID[:])
	return s
}

// follow takes trace and parent from a traceparent: version-trace-parent-flags (W3C Trace Context).
func (s *Span) follow(traceparent string) bool {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return false
	}
	trace, err1 := hex.DecodeString(parts[1])
	parent, err2 := hex.DecodeString(parts[2])
	if err1 != nil || err2 != nil || bytes.Count(trace, []byte{0}) == 16 {
		return false
	}
	copy(s.Trace[:], trace)
	copy(s.Parent[:], parent)
	return true
}

// Set adds an attribute.
func (s *Span) Set(key string, value any) {
	if s != nil {
		s.Attributes = append(s.Attributes, Attribute{key, value})
	}
}

// Part sends a part of a span's work.
func (e *Exporter) Part(s *Span, name string, begin, end time.Time) {
	if e == nil || s == nil || end.Before(begin) || begin.IsZero() {
		return
	}
	part := Span{Name: name, Trace: s.Trace, Parent: s.ID, Kind: Internal, Begin: begin, End: end}
	_, _ = rand.Read(part.ID[:])
	e.put(part)
}

// End ends a span and sends it; err is what went wrong.
func (e *Exporter) End(s *Span, err error) {
	if e == nil || s == nil {
		return
	}
	s.End = time.Now()
	if err != nil {
		s.Error = err.Error()
	}
	e.put(*s)
}

func (e *Exporter) put(s Span) {
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

func (e *Exporter) loop() {
	defer close(e.closed)
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	var batch []Span
	flush := func() {
		if len(batch) > 0 {
			e.send(batch)
			batch = batch[:0]
		}
	}
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) >= batchSpans {
				flush()
			}
		case <-tick.C:
			flush()
		case <-e.closing:
			for len(e.queue) > 0 {
				batch = append(batch, <-e.queue)
			}
			flush()
			return
		}
	}
}

// send posts a batch; one that fails is dropped.
func (e *Exporter) send(batch []Span) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	err := e.post(ctx, batch)
	if err != nil {
		e.dropped.Add(int64(len(batch)))
		return
	}
	e.sent.Add(int64(len(batch)))
}

func (e *Exporter) post(ctx context.Context, batch []Span) error {
	body, err := json.Marshal(request(e.service, batch))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	if resp.Body.Close(); resp.StatusCode >= http.StatusMultipleChoices {
		return errors.New(resp.Status)
	}
	return nil
}

type object = map[string]any

// request is ExportTraceServiceRequest in proto3's JSON.
func request(service string, batch []Span) object {
	spans := make([]object, len(batch))
	for i := range batch {
		spans[i] = batch[i].object()
	}
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": attributes([]Attribute{{"service.name", service}})},
		"scopeSpans": []object{{"scope": object{"name": "spillway"}, "spans": spans}},
	}}}
}

func (s *Span) object() object {
	o := object{
		"traceId": hex.EncodeToString(s.Trace[:]), "spanId": hex.EncodeToString(s.ID[:]), "name": s.Name, "kind": int(s.Kind),
		"startTimeUnixNano": strconv.FormatInt(s.Begin.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(s.End.UnixNano(), 10),
		"attributes": attributes(s.Attributes),
	}
	if s.Parent != [8]byte{} {
		o["parentSpanId"] = hex.EncodeToString(s.Parent[:])
	}
	if s.Error != "" {
		o["status"] = object{"code": 2, "message": s.Error}
	}
	return o
}

func attributes(list []Attribute) []object {
	out := make([]object, 0, len(list))
	for _, a := range list {
		value := object{"stringValue": fmt.Sprint(a.Value)}
		switch v := a.Value.(type) {
		case int:
			value = object{"intValue": strconv.Itoa(v)}
		case int64:
			value = object{"intValue": strconv.FormatInt(v, 10)}
		case float64:
			value = object{"doubleValue": v}
		case bool:
			value = object{"boolValue": v}
		}
		out = append(out, object{"key": a.Key, "value": value})
	}
	return out
}
