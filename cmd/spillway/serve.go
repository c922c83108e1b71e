package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/hub"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/report"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/admin"
	"github.com/spillway/spillway/internal/server/anthropic"
	"github.com/spillway/spillway/internal/server/ollama"
	"github.com/spillway/spillway/internal/server/openai"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/tracing"
	"github.com/spillway/spillway/internal/server/ui"
)

type serveCommand struct {
	Models       []string      `arg:"" optional:"" name:"[NAME=]MODEL" help:"GGUF files, folders in Hugging Face layout, or known names; NAME is the id that clients use. Default: the embedded Storyteller."`
	Host         string        `help:"Address to listen on; 0.0.0.0 is all. Default: 127.0.0.1." default:"127.0.0.1" placeholder:"HOST"`
	Port         int           `help:"Port; 0 takes a free one. Default: 8080." default:"8080" placeholder:"PORT"`
	MaxSeqs      int           `help:"Requests that run at once for each model; the others wait. Default: up to 32, as they fit." placeholder:"N"`
	MaxWaiting   int           `help:"Requests that wait for each model; one more is refused with 429. Default: 256." default:"256" placeholder:"N"`
	MaxConns     int           `help:"Connections at a time. Default: up to 128, as they fit." placeholder:"N"`
	KeepAlive    string        `help:"How long a model stays loaded without requests: 10m, 0, or forever, which is until another one needs its memory. Default: forever." default:"forever" placeholder:"TIME"`
	ModelWait    time.Duration `help:"How long a request waits for a model that does not fit beside those in use; 0 refuses it at once. Default: 2m." default:"2m" placeholder:"TIME"`
	APIKey       []string      `help:"Key that clients must bring (Authorization: Bearer or x-api-key); may be given several times." name:"api-key" sep:"none" placeholder:"KEY"`
	APIKeyFile   string        `help:"File of such keys, one a line." name:"api-key-file" placeholder:"FILE"`
	TLSCert      string        `help:"Certificate chain in PEM, for HTTPS." name:"tls-cert" placeholder:"FILE"`
	TLSKey       string        `help:"Its private key." name:"tls-key" placeholder:"FILE"`
	CORSOrigin   []string      `help:"Origin whose pages may call the server from browsers; * is all. May be given several times." name:"cors-origin" sep:"none" placeholder:"ORIGIN"`
	AllowedHost  []string      `help:"Name that clients may call the server by, beside its addresses and localhost; * is any. May be given several times." name:"allowed-host" sep:"none" placeholder:"HOST"`
	BodyLimit    string        `help:"Largest request. Default: 32MiB." default:"32MiB" placeholder:"SIZE"`
	DrainTimeout time.Duration `help:"How long requests may go on after SIGTERM or SIGINT. Default: 30s." default:"30s" placeholder:"TIME"`
	WriteTimeout time.Duration `help:"How long a client may take to read a piece of an answer. Default: 30s." default:"30s" placeholder:"TIME"`
	OTLP         string        `help:"Address of an OpenTelemetry collector that takes traces over HTTP, such as http://127.0.0.1:4318." name:"otlp-endpoint" placeholder:"URL"`
	LogFormat    string        `help:"Form of the log on stderr: text or json. Default: text." default:"text" enum:"text,json" placeholder:"FORMAT"`
	predictionFlag
	templateFlag
	dialectFlags
}

func (*serveCommand) Help() string {
	return "Answers the HTTP APIs of OpenAI (/v1/…), Anthropic (/v1/messages) and Ollama (/api/…). /health answers 200 once requests can be taken. " +
		"Of several models those load that are asked for, and idle ones go where memory is short.\n\n" +
		"Example:\n\n  spillway serve model.gguf --memory 4GiB --context 8192\n  curl localhost:8080/v1/models"
}

func (*serveCommand) unused() []string { return []string{"json"} }

// check refuses flags that make no sense.
func (c *serveCommand) check() error {
	switch {
	case c.Port < 0 || c.Port > 65535:
		return usagef("--port is %d; give a number from 0 to 65535", c.Port)
	case c.MaxSeqs < 0 || c.MaxSeqs > 1024:
		return usagef("--max-seqs is %d; give a number from 1 to 1024", c.MaxSeqs)
	case c.MaxWaiting < 1:
		return usagef("--max-waiting is %d; give a positive number", c.MaxWaiting)
	case c.MaxConns < 0:
		return usagef("--max-conns is %d; give a positive number", c.MaxConns)
	case slices.ContainsFunc(c.APIKey, func(key string) bool { return strings.TrimSpace(key) == "" }):
		return usagef("--api-key is empty; give a key, or leave the flag out to let everybody in")
	case c.ModelWait < 0:
		return usagef("--model-wait is %s; give a time such as 2m, or 0", c.ModelWait)
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return usagef("--tls-cert and --tls-key go together")
	case c.DrainTimeout <= 0 || c.WriteTimeout <= 0:
		return usagef("--drain-timeout and --write-timeout must be positive, such as 30s")
	}
	if err := (spillway.Dialects{Tool: c.Dialect, Reasoning: c.Reasoning}).Check(); err != nil {
		return usageError{err}
	}
	return c.checkSites()
}

// checkSites refuses names that no browser's request would ever match.
func (c *serveCommand) checkSites() error {
	for _, h := range c.AllowedHost {
		if h == "" || strings.ContainsAny(h, "/, ") {
			return usagef("--allowed-host is %q; give a name such as models.example, or * for any", h)
		}
	}
	for _, o := range c.CORSOrigin {
		u, err := url.Parse(o)
		if o != "*" && o != "null" && (err != nil || u.Scheme == "" || u.Host == "" || o != strings.ToLower(u.Scheme+"://"+u.Host)) {
			return usagef("--cors-origin is %q; give an origin as browsers do, such as https://models.example, or * for all", o)
		}
	}
	return nil
}

// keepAlive is what --keep-alive says.
func (c *serveCommand) keepAlive() (time.Duration, error) {
	if c.KeepAlive == "forever" || c.KeepAlive == "-1" {
		return pool.Forever, nil
	}
	if n, err := strconv.Atoi(c.KeepAlive); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(c.KeepAlive)
	if err != nil || d < 0 {
		return 0, usagef("--keep-alive is %.40q; give a time such as 10m, 0, or forever", c.KeepAlive)
	}
	return d, nil
}

// specs are the models of the command line.
func (c *serveCommand) specs(s *session) ([]pool.Spec, error) {
	if len(c.Models) == 0 {
		return []pool.Spec{{}}, nil
	}
	var all []pool.Spec
	for _, argument := range c.Models {
		spec := pool.Spec{Alias: argument, Short: hub.Known(argument) && !exists(argument)}
		if name, model, ok := strings.Cut(argument, "="); ok && !exists(argument) {
			if name == "" || model == "" {
				return nil, usagef("%.200q is not NAME=MODEL", argument)
			}
			spec = pool.Spec{Name: name}
			argument = model
		}
		path, err := s.resolve(argument)
		if err != nil {
			return nil, err
		}
		spec.Path = string(path)
		all = append(all, spec)
	}
	return all, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// options are the server's.
func (c *serveCommand) options(s *session) (server.Options, error) {
	limit, err := budget.ParseLimit(c.BodyLimit, machine.Memory{})
	if err != nil {
		return server.Options{}, usagef("--body-limit: %w", err)
	}
	keys := c.APIKey
	if c.APIKeyFile != "" {
		more, err := server.ReadKeys(c.APIKeyFile)
		if err != nil {
			return server.Options{}, fmt.Errorf("--api-key-file: %w", err)
		}
		keys = append(keys, more...)
	}
	return server.Options{
		Keys: keys, CORSOrigins: c.CORSOrigin, Host: c.Host, AllowedHosts: c.AllowedHost, BodyLimit: limit, Connections: c.MaxConns, WriteTimeout: c.WriteTimeout, DrainTimeout: c.DrainTimeout,
		TLSCert: c.TLSCert, TLSKey: c.TLSKey, Version: buildVersion().Version,
		Dialects: spillway.Dialects{Tool: c.Dialect, Reasoning: c.Reasoning}, Log: c.logger(s),
	}, nil
}

// logger is the server's log.
func (c *serveCommand) logger(s *session) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case s.flags.Quiet:
		level = slog.LevelWarn
	case s.flags.Verbose:
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(s.stderr, o))
	}
	return slog.New(slog.NewTextHandler(s.stderr, o))
}

func (c *serveCommand) run(s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	if name, _ := s.flags.policyName(); name == "static" {
		return usagef("--policy static is about the trace of one model; serve takes adaptive, lru and lfu")
	}
	keep, err := c.keepAlive()
	if err != nil {
		return err
	}
	specs, err := c.specs(s)
	if err != nil {
		return err
	}
	options, err := c.options(s)
	if err != nil {
		return err
	}
	var traces *tracing.Exporter
	if c.OTLP != "" {
		if traces, err = tracing.New(c.OTLP, "spillway"); err != nil {
			return usagef("--otlp-endpoint: %w", err)
		}
		defer traces.Close()
	}
	metrics := admin.NewMetrics(traces)
	metrics.Drive = bestOfDrive
	options.Observer = metrics
	ctx, stop := s.interruptible()
	defer stop()
	rt, err := s.runtime()
	if err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, s, rt, specs, options, keep, metrics), rt.Close())
}

// serve makes the server and its models, and runs until ctx ends.
func (c *serveCommand) serve(ctx context.Context, s *session, rt *spillway.Runtime, specs []pool.Spec, o server.Options, keep time.Duration, metrics *admin.Metrics) error {
	srv, err := server.New(rt, o)
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := mount(srv, metrics); err != nil {
		return err
	}
	srv.Models, err = pool.New(ctx, rt, specs, pool.Options{
		KeepAlive: keep, Wait: c.ModelWait, Try: true,
		Model: spillway.ModelOptions{
			Context: s.flags.Context, Sequences: c.MaxSeqs, Queue: c.MaxWaiting, Shared: true, Exact: s.flags.Exact, KV: s.flags.KV, Policy: s.flags.Policy,
			Prediction: c.Prediction,
		},
		Prepare: func(m *spillway.Checkpoint) error { return c.useTemplate(m) },
		Loaded:  func(name string, m *spillway.Model) { tellLoaded(o.Log, name, m) },
	})
	if err != nil {
		return err
	}
	err = c.listen(ctx, s, srv, o)
	return errors.Join(err, srv.Models.Close())
}

// mount registers all APIs. They lease what they need before a model takes what it finds.
func mount(srv *server.Server, metrics *admin.Metrics) error {
	if err := openai.Mount(srv); err != nil {
		return fmt.Errorf("the server's own memory: %w", err)
	}
	anthropic.Mount(srv)
	ollama.Mount(srv)
	admin.Mount(srv, metrics)
	ui.Mount(srv)
	return nil
}

// bestOfDrive is what a drive gave when it was measured last, 0 if that was not lately.
func bestOfDrive(device uint64) float64 {
	if d := cachedProfile(device); d != nil {
		return d.Best.Speed
	}
	return 0
}

// tellLoaded logs what a model was started with.
func tellLoaded(log *slog.Logger, name string, m *spillway.Model) {
	o, p := m.Options(), m.CurrentPlan()
	attrs := []any{
		"model", name, "context", o.Context, "trained_context", m.Layout().Context, "sequences", o.Sequences,
		"resident", p.Resident, "seconds", m.LoadTime().Seconds(),
	}
	if o.Context < m.Layout().Context {
		attrs = append(attrs, "note", fmt.Sprintf("a context of %d of the model's %d tokens fits in the memory", o.Context, m.Layout().Context))
	}
	log.Info("loaded", attrs...)
}

// listen opens the port, loads the first model, and answers until ctx ends.
func (c *serveCommand) listen(ctx context.Context, s *session, srv *server.Server, o server.Options) error {
	l, err := srv.Listen(ctx, net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
	if err != nil {
		return err
	}
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	fmt.Fprintf(s.stderr, "listening on %s://%s, cap %s, models: %s\n", scheme, l.Addr(), report.Bytes(srv.Runtime().Memory()), strings.Join(srv.Models.Names(), ", "))
	if host, ok := l.Addr().(*net.TCPAddr); ok && !host.IP.IsLoopback() && len(o.Keys) == 0 {
		s.tell("everybody who reaches this address may use the server: --api-key asks for a key")
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	loaded := make(chan error, 1)
	go func() {
		err := srv.Models.Load(running, srv.Models.Names()[0])
		if err == nil {
			srv.Ready()
			fmt.Fprintln(s.stderr, "ready")
		} else {
			end(err)
		}
		loaded <- err
	}()
	err = srv.Serve(running, l)
	end(err)
	if failed := <-loaded; ctx.Err() == nil {
		return cmp.Or(failed, err)
	}
	return err
}
