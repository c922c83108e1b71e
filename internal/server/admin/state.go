package admin

import (
	"runtime"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
)

// State is what the server holds and does at one moment. Sizes are in bytes; counters are since a model was loaded.
type State struct {
	Version     string      `json:"version"`
	Uptime      float64     `json:"uptime_seconds"`
	Memory      Memory      `json:"memory"`
	Connections Connections `json:"connections"`
	Models      []Model     `json:"models"`
}

// Connections are those of clients.
type Connections struct {
	Open      int   `json:"open"`
	Limit     int   `json:"limit"`
	Reclaimed int64 `json:"reclaimed"` // that had to make room, for want of a complete request, while others waited
}

// Memory is the ledger, and what the operating system counts beside it.
type Memory struct {
	Limit  int64           `json:"limit"`
	Used   int64           `json:"used"`
	Peak   int64           `json:"peak"`
	Pools  map[string]Pool `json:"pools"`
	RSS    int64           `json:"rss"`
	Group  *int64          `json:"cgroup_peak"` // of the memory group that is ours alone; null without one
	Drift  *int64          `json:"drift"`       // the system's count less the ledger's; null if nobody tells
	Thread int             `json:"threads"`
}

// Pool is one pool of the ledger.
type Pool struct {
	Used int64 `json:"used"`
	Peak int64 `json:"peak"`
}

// Model is a model of the pool.
type Model struct {
	Name     string     `json:"name"`
	Family   string     `json:"family"`
	Type     string     `json:"type"`
	Bytes    int64      `json:"bytes"`
	Loaded   bool       `json:"loaded"`
	Users    int        `json:"users"`
	Expires  *time.Time `json:"expires"`
	Broken   *string    `json:"broken"`  // why it cannot be relied on; null: it can
	Failed   int64      `json:"failed"`  // tries to read its weights
	Weights  *Weights   `json:"weights"` // of a loaded model, like what follows
	KV       *KV        `json:"kv"`
	Requests *Requests  `json:"requests"`
	Drive    *Drive     `json:"drive"`
	Rates    *Rates     `json:"rates"`
	Forms    *Forms     `json:"structured_output"`
}

// Weights says where a model's weights are.
type Weights struct {
	Pinned   int64 `json:"pinned"`
	Streamed int64 `json:"streamed_per_sweep"`
	Slots    int   `json:"expert_slots"` // each holds an expert
	Resident bool  `json:"resident"`
}

// KV is the key-value cache.
type KV struct {
	Blocks        int   `json:"blocks"`
	Used          int   `json:"used"`
	Idle          int   `json:"idle"`
	BlockTokens   int   `json:"block_tokens"`
	PrefixQueried int64 `json:"prefix_queried_tokens"`
	PrefixHit     int64 `json:"prefix_hit_tokens"`
	Evictions     int64 `json:"evictions"`
	Context       int   `json:"context"`
}

// Requests are those of one model.
type Requests struct {
	Running      int              `json:"running"`
	Waiting      int              `json:"waiting"`
	Preempted    int64            `json:"preempted"`
	Finished     map[string]int64 `json:"finished"`
	PromptTokens int64            `json:"prompt_tokens"`
	AnswerTokens int64            `json:"answer_tokens"`
	Steps        int64            `json:"steps"`
	StepTime     float64          `json:"step_seconds"`
	AnswerSteps  int64            `json:"decode_steps"` // those without rows of prompts
	AnswerTime   float64          `json:"decode_step_seconds"`
	SweepWaits   int64            `json:"sweep_waits"`
	SweepWaited  float64          `json:"sweep_waited_seconds"`
}

// Forms are what structured output took.
type Forms struct {
	Compiled    int64   `json:"compiled"`
	Hits        int64   `json:"cache_hits"`
	Refused     int64   `json:"refused"`
	CompileTime float64 `json:"compile_seconds"`
	Masks       int64   `json:"masks"`
	MaskTime    float64 `json:"mask_seconds"`
	Forced      int64   `json:"forced_tokens"`
}

// Drive is what a model's weights cost the drive.
type Drive struct {
	Read       int64   `json:"read_bytes"`
	Hit        int64   `json:"hit_bytes"`
	Passed     int64   `json:"used_bytes"`
	Reads      int64   `json:"reads"`
	Busy       float64 `json:"busy_seconds"`
	Wait       float64 `json:"waited_seconds"`
	Sweeps     int64   `json:"sweeps"`
	Experts    int64   `json:"experts"`
	ExpertHits int64   `json:"expert_hits"`
	Guesses    int64   `json:"guesses"` // experts that were read before their layer asked
	GuessHits  int64   `json:"guess_hits"`
	Filled     int64   `json:"filled_bytes"` // read for experts in empty slots before anybody asked
}

// StateOf looks at a server.
func (m *Metrics) StateOf(s *server.Server) State {
	st := State{Version: s.Version(), Uptime: time.Since(s.Began()).Seconds(), Memory: memoryOf(s), Models: []Model{}}
	c := &st.Connections
	c.Open, c.Limit, c.Reclaimed = s.Connections()
	broken := s.Models.Broken()
	for _, x := range s.Models.List() {
		one := modelOf(x)
		if why, ok := broken[x.Name]; ok {
			one.Broken = &why
		}
		if x.Model != nil {
			r := m.meters.rates(x, m.Drive)
			one.Rates = &r
		}
		st.Models = append(st.Models, one)
	}
	return st
}

func memoryOf(s *server.Server) Memory {
	rt := s.Runtime()
	u := rt.Ledger()
	m := Memory{Limit: rt.Memory(), Used: u.Used, Peak: u.Peak, Pools: map[string]Pool{}, Thread: rt.Threads()}
	for p, use := range u.Pools {
		m.Pools[budget.Pool(p).String()] = Pool(use)
	}
	if p, ok := machine.ReadProcess(); ok {
		m.RSS = p.RSS
	}
	if n, ok := machine.CgroupPeak(); ok {
		m.Group = &n
	}
	if n, ok := rt.Drift(); ok {
		m.Drift = &n
	}
	return m
}

func modelOf(s pool.State) Model {
	m := Model{Name: s.Name, Family: s.Family, Type: s.Type, Bytes: s.Bytes, Loaded: s.Loaded, Users: s.Users, Failed: s.Failed}
	if !s.Expires.IsZero() {
		m.Expires = &s.Expires
	}
	if s.Model == nil {
		return m
	}
	p, x, io := s.Model.CurrentPlan(), s.Model.Stats(), s.Model.IO()
	m.Weights = &Weights{Pinned: p.PinnedBytes, Streamed: p.StreamedBytes, Resident: p.Resident}
	if p.Experts != nil {
		m.Weights.Slots = p.Experts.Slots
	}
	m.KV = &KV{
		Blocks: x.Blocks, Used: x.BlocksUsed, Idle: x.BlocksIdle, BlockTokens: x.BlockTokens,
		PrefixQueried: x.PrefixQueried, PrefixHit: x.PrefixHit, Evictions: x.Evictions, Context: s.Limit,
	}
	m.Requests = &Requests{
		Running: x.Running, Waiting: x.Waiting, Preempted: x.Preempted, Finished: x.Finished, PromptTokens: x.PromptTokens,
		AnswerTokens: x.AnswerTokens, Steps: x.Steps, StepTime: x.StepTime.Seconds(), AnswerSteps: x.AnswerSteps, AnswerTime: x.AnswerTime.Seconds(),
		SweepWaits: x.SweepWaits, SweepWaited: x.SweepWaited.Seconds(),
	}
	m.Drive = &Drive{
		Read: io.Read, Hit: io.Hit, Passed: io.Passed, Reads: io.Requests, Busy: io.Busy.Seconds(), Wait: io.Wait.Seconds(),
		Sweeps: io.Sweeps, Experts: io.Experts, ExpertHits: io.ExpertHits, Guesses: io.Guesses, GuessHits: io.GuessesUsed, Filled: io.Filled,
	}
	c := x.Constraints
	m.Forms = &Forms{
		Compiled: c.Compiled, Hits: c.CacheHits, Refused: c.Refused, CompileTime: c.CompileTime.Seconds(), Masks: c.Masks,
		MaskTime: c.MaskTime.Seconds(), Forced: c.Forced,
	}
	return m
}

// write puts the state out as metrics.
func (s State) write(t *text) {
	t.gauge("spillway_info", "1, with the version.", 1, label{"version", s.Version})
	t.gauge("spillway_uptime_seconds", "Since the server started.", s.Uptime)
	t.gauge("go_goroutines", "Goroutines that exist.", float64(runtime.NumGoroutine()))
	s.Memory.write(t)
	t.gauge("spillway_connections", "Of clients, now.", float64(s.Connections.Open))
	t.gauge("spillway_connections_limit", "That may be open at a time.", float64(s.Connections.Limit))
	t.counter("spillway_connections_reclaimed_total", "Closed for want of a complete request, while others waited.", float64(s.Connections.Reclaimed))
	for i := range s.Models {
		s.Models[i].write(t)
	}
}

func (m *Memory) write(t *text) {
	t.gauge("spillway_memory_limit_bytes", "The hard cap for the whole process.", float64(m.Limit))
	t.gauge("spillway_ledger_used_bytes", "Leased now.", float64(m.Used))
	t.gauge("spillway_ledger_peak_bytes", "Leased at most.", float64(m.Peak))
	for p := range budget.Pools {
		name := p.String()
		t.gauge("spillway_pool_used_bytes", "Leased now, by pool.", float64(m.Pools[name].Used), label{"pool", name})
		t.gauge("spillway_pool_peak_bytes", "Leased at most, by pool.", float64(m.Pools[name].Peak), label{"pool", name})
	}
	t.gauge("process_resident_memory_bytes", "What the system counts as resident.", float64(m.RSS))
	if m.Group != nil {
		t.gauge("spillway_cgroup_peak_bytes", "The most that our memory group ever held.", float64(*m.Group))
	}
	if m.Drift != nil {
		t.gauge("spillway_ledger_drift_bytes", "The system's count less the ledger's; above 0 something was not planned for.", float64(*m.Drift))
	}
}

func (m *Model) write(t *text) {
	l := label{"model_name", m.Name}
	t.gauge("spillway_model_loaded", "1 while the model is loaded.", truth(m.Loaded), l)
	t.gauge("spillway_model_broken", "1 while the model's files cannot be relied on; /ready says why.", truth(m.Broken != nil), l)
	t.counter("spillway_model_failures_total", "Tries to read the model's weights that failed.", float64(m.Failed), l)
	t.gauge("spillway_model_bytes", "Of the model's tensors.", float64(m.Bytes), l)
	if m.Weights == nil {
		return
	}
	m.Weights.write(t, l)
	m.KV.write(t, l)
	m.Requests.write(t, l)
	m.Drive.write(t, l)
	m.Rates.write(t, l)
	m.Forms.write(t, l)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (f *Forms) write(t *text, l label) {
	t.counter("spillway_grammars_compiled_total", "Schemas and grammars that were compiled.", float64(f.Compiled), l)
	t.counter("spillway_grammar_cache_hits_total", "Those that had been compiled before.", float64(f.Hits), l)
	t.counter("spillway_grammars_refused_total", "Those that were refused.", float64(f.Refused), l)
	t.counter("spillway_grammar_compile_seconds_total", "That compiling took.", f.CompileTime, l)
	t.counter("spillway_mask_seconds_count", "Masks of the tokens that may come next.", float64(f.Masks), l)
	t.counter("spillway_mask_seconds_sum", "That they took, while the weights were at work.", f.MaskTime, l)
	t.counter("spillway_forced_tokens_total", "Tokens of answers that needed no step to be chosen.", float64(f.Forced), l)
}

func (w *Weights) write(t *text, l label) {
	t.gauge("spillway_weights_pinned_bytes", "Of weights that stay in memory.", float64(w.Pinned), l)
	t.gauge("spillway_weights_streamed_bytes", "Of weights that every sweep reads.", float64(w.Streamed), l)
	t.gauge("spillway_expert_slots", "Experts that memory has room for.", float64(w.Slots), l)
}

func (k *KV) write(t *text, l label) {
	usage := 0.0
	if k.Blocks > 0 {
		usage = float64(k.Used) / float64(k.Blocks)
	}
	t.gauge("vllm:kv_cache_usage_perc", "Share of the key-value cache that requests hold, from 0 to 1.", usage, l)
	t.gauge("spillway_kv_blocks", "Blocks of the key-value cache.", float64(k.Blocks), l)
	t.gauge("spillway_kv_blocks_used", "Blocks that requests hold.", float64(k.Used), l)
	t.gauge("spillway_kv_blocks_idle", "Blocks kept for prefixes to come.", float64(k.Idle), l)
	t.counter("spillway_kv_evictions_total", "Idle blocks that made room.", float64(k.Evictions), l)
	t.counter("vllm:prefix_cache_queries_total", "Tokens of prompts that were looked for in the prefix cache.", float64(k.PrefixQueried), l)
	t.counter("vllm:prefix_cache_hits_total", "Tokens of prompts that were found there.", float64(k.PrefixHit), l)
}

func (r *Requests) write(t *text, l label) {
	t.gauge("vllm:num_requests_running", "Requests in the steps now.", float64(r.Running), l)
	t.gauge("vllm:num_requests_waiting", "Requests that wait for room.", float64(r.Waiting), l)
	t.counter("vllm:num_preemptions_total", "Times that a running request gave way.", float64(r.Preempted), l)
	t.counter("spillway_steps_total", "Steps of the engine.", float64(r.Steps), l)
	t.counter("spillway_step_seconds_total", "That they took.", r.StepTime, l)
	t.counter("spillway_decode_steps_total", "Steps without rows of prompts.", float64(r.AnswerSteps), l)
	t.counter("spillway_decode_step_seconds_total", "That they took.", r.AnswerTime, l)
	t.counter("spillway_sweep_waits_total", "Times that a sweep waited for more requests to share it.", float64(r.SweepWaits), l)
	t.counter("spillway_sweep_waited_seconds_total", "For how long.", r.SweepWaited, l)
}

func (d *Drive) write(t *text, l label) {
	t.counter("spillway_weights_read_bytes_total", "Read from the drive.", float64(d.Read), l)
	t.counter("spillway_weights_used_bytes_total", "Used by sweeps, wherever they were.", float64(d.Passed), l)
	t.counter("spillway_weights_hit_bytes_total", "Of these, found in memory.", float64(d.Hit), l)
	t.counter("spillway_drive_reads_total", "Requests to the drive.", float64(d.Reads), l)
	t.counter("spillway_drive_busy_seconds_total", "With at least one read in flight.", d.Busy, l)
	t.counter("spillway_drive_waited_seconds_total", "That sweeps waited for the drive.", d.Wait, l)
	t.counter("spillway_experts_total", "Experts that sweeps needed.", float64(d.Experts), l)
	t.counter("spillway_expert_hits_total", "Of these, in memory.", float64(d.ExpertHits), l)
	t.counter("spillway_expert_guesses_total", "Experts that were read before their layer asked.", float64(d.Guesses), l)
	t.counter("spillway_expert_guess_hits_total", "Of these, needed.", float64(d.GuessHits), l)
	t.counter("spillway_expert_filled_bytes_total", "Read for experts in empty slots before anybody asked.", float64(d.Filled), l)
}
