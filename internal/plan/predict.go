package plan

import "math"

// Machine is what the computer can do.
type Machine struct {
	Drive  float64 // bytes/s that it reads
	Memory float64 // bytes/s that it reads
	Flops  float64 // operations/s of the kernels, for predictions
	Cells  []Cell  // of the drive's profile, by rising size, then depth; nil: every request is as fast as the best
	// Operations/s of the processor's multiply-adds: on binary32, and on 16-bit integers.
	FloatPeak, IntegerPeak float64
}

// Cell is the speed of one kind of requests to a drive.
type Cell struct {
	Size           int64 // bytes of a request
	Depth          int   // requests in flight
	BytesPerSecond float64
}

// speed is the drive's for requests of a size with some of them in flight: what it gives now, times the part of its
// best that the profile has for them.
func (m *Machine) speed(size int64, depth float64) float64 {
	best, near := 0.0, math.Inf(1)
	part := 0.0
	for _, c := range m.Cells {
		best = max(best, c.BytesPerSecond)
		// Nearest in steps of doubling; a depth counts less than a size.
		far := math.Abs(math.Log2(float64(c.Size)/float64(max(size, 1)))) + math.Abs(math.Log2(float64(c.Depth)/max(depth, 1)))/2
		if far < near {
			near, part = far, c.BytesPerSecond
		}
	}
	if best == 0 {
		return m.Drive
	}
	return m.Drive * part / best
}

// Costs is how long computing takes on a machine with weights that come from memory, in seconds; 0: not measured.
type Costs struct {
	Row       float64 // the products of one row, without head and experts
	ChunkRow  float64 // those of a row of a long chunk
	HeadRow   float64 // the head, for one row
	Expert    float64 // one expert with one row
	ExpertRow float64 // a row with one of its experts, in a long chunk
}

// Routing is how the experts of a mixture are chosen, as far as a prediction needs it. The zero value is uniform
// routing, which no cache can foresee.
type Routing struct {
	Known bool
	Hits  float64   // share of the experts of an answer's row that are in memory
	Rates []float64 // shares of rows that choose each expert of all layers
}

// touched is the part of the experts that so many rows use.
func (r *Routing) touched(e *Experts, rows int) float64 {
	if len(r.Rates) == 0 {
		return e.touched(rows)
	}
	sum := 0.0
	for _, rate := range r.Rates {
		sum += 1 - math.Pow(1-min(rate, 1), float64(rows))
	}
	return sum / float64(len(r.Rates))
}

// Case is what a prediction is made of.
type Case struct {
	Machine
	Costs
	Routing
	Prompt int // tokens; 0: a long one
}

// Prediction is the speed that a plan will reach. Limit names what bounds the decode: "drive", "memory" or "compute".
type Prediction struct {
	Decode  float64 // tokens/s of one sequence
	Prefill float64 // tokens/s
	Limit   string
}

// Predict says how fast a plan will be. Reads of the trunk overlap with all that computes. So do those of experts in slots for one row, as the
// pager foresees them; else they begin when their layer is known to need them, and overlap with its other experts alone.
func (p *Plan) Predict(c Case) Prediction {
	one, limit := p.pass(&c, 1)
	one += c.HeadRow
	tokens := c.Prompt
	if tokens <= 0 {
		tokens = p.Chunk
	}
	prompt := c.HeadRow + p.attention(&c, tokens)
	for at := 0; at < tokens; at += p.Chunk {
		seconds, _ := p.pass(&c, min(p.Chunk, tokens-at))
		prompt += seconds
	}
	return Prediction{Decode: rate(1, one), Prefill: rate(float64(tokens), prompt), Limit: limit}
}

// attention is how long a prompt's attention computes: its products are as fast as those of weights.
func (p *Plan) attention(c *Case, tokens int) float64 {
	operations, _ := p.model.AttentionWork(0, tokens)
	return rate(operations, c.Flops)
}

// pass is how long rows take from the embedding to the last layer, and what bounds that.
func (p *Plan) pass(c *Case, rows int) (float64, string) {
	n := float64(rows)
	active, compute := float64(p.PinnedBytes+p.StreamedBytes), n*c.ChunkRow
	if rows == 1 {
		compute = c.Row
	}
	if c.Row == 0 {
		compute = rate(n*float64(p.model.FlopsPerToken), c.Flops)
	}
	seconds, limit := slowest(c.Machine, 0, active, compute)
	if c.Row > 0 { // measured with weights that come from memory
		seconds = compute
	}
	read := rate(float64(p.ReadBytes), c.speed(p.requests()))
	if p.Experts == nil {
		return slower(seconds, limit, read)
	}
	x := p.experts(c, rows)
	if x.compute > seconds {
		limit = "memory"
	}
	if rows == 1 && p.Experts.Slots > 0 {
		return slower(seconds+x.compute, limit, read+x.read)
	}
	seconds, limit = slower(seconds, limit, read)
	experts, bound := slower(x.compute, "memory", x.alone())
	if experts > seconds {
		limit = bound
	}
	return seconds + experts, limit
}

// slower is the time of computing and of reading beside each other, and what bounds it.
func slower(compute float64, limit string, read float64) (float64, string) {
	if read > compute {
		return read, "drive"
	}
	return compute, limit
}

// expertTimes are seconds for the experts of a pass in all layers.
type expertTimes struct {
	compute, read float64
	last          float64 // of compute, for what arrives last in each layer
}

// alone is how long reading takes if nothing is foreseen: what comes last in a layer computes when nothing is left to read.
func (x expertTimes) alone() float64 {
	if x.read == 0 {
		return 0
	}
	return x.read + x.last
}

func (p *Plan) experts(c *Case, rows int) expertTimes {
	e := p.Experts
	each := float64(e.Bytes) / float64(e.Layers*e.Count)
	used := c.touched(e, rows) * float64(e.Count) // of a layer
	missed := used * e.missed(c.Routing, rows)
	compute := used * c.Expert
	if rows > 1 {
		compute = max(float64(rows*e.Used)*c.ExpertRow, compute)
	}
	last := compute / used
	compute = max(compute, rate(used*each, c.Memory))
	request, depth := e.requests(p, missed)
	n := float64(e.Layers)
	return expertTimes{n * compute, n * rate(missed*each, c.speed(request, depth)), n * last}
}

func rate(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// slowest is the time that work needs on a machine, in seconds, and what bounds it, where computing alone takes so
// long. Unknown speeds (0) bound nothing.
func slowest(m Machine, read, active, compute float64) (float64, string) {
	seconds, limit := compute, "compute"
	if t := rate(active, m.Memory); t > seconds {
		seconds, limit = t, "memory"
	}
	if t := rate(read, m.Drive); t > seconds {
		seconds, limit = t, "drive"
	}
	return seconds, limit
}

// Work is what a run did, for its roofline.
type Work struct {
	Required int64   // least bytes that any policy reads from the drive at this budget; -1 if that is not known
	Read     int64   // bytes read from the drive
	Active   int64   // bytes of weights and cache that the compute passed, wherever they were: read and hit
	Floats   float64 // multiplications and additions on binary32
	Integers float64 // and on 16-bit integers
	Seconds  float64 // taken
}

// compute is the time that the operations need at the processor's peak.
func (w *Work) compute(m Machine) float64 {
	return rate(w.Floats, m.FloatPeak) + rate(w.Integers, m.IntegerPeak)
}

// Roofline is how near a run came to what the machine allows, as CLI.md defines it. Fractions that cannot be known are
// 0.
type Roofline struct {
	Limit          string
	Fraction       float64 // time that the least work needs ÷ time taken
	DriveFraction  float64 // the same with the bytes that were read
	PolicyFraction float64 // required bytes ÷ bytes read; 1 if nothing had to be read
}

// RooflineOf computes the roofline of a run.
func RooflineOf(w Work, m Machine) Roofline {
	done, limit := slowest(m, float64(w.Read), float64(w.Active), w.compute(m))
	if w.Required < 0 {
		return Roofline{Limit: limit, DriveFraction: rate(done, w.Seconds)}
	}
	least, limit := slowest(m, float64(w.Required), float64(w.Active), w.compute(m))
	r := Roofline{Limit: limit, Fraction: rate(least, w.Seconds), DriveFraction: rate(done, w.Seconds), PolicyFraction: 1}
	if w.Read > w.Required {
		r.PolicyFraction = float64(w.Required) / float64(w.Read)
	}
	return r
}

// RequiredBytes is the least that any policy reads from the drive in one sweep of a dense model with
// so many active bytes: what the budget above the least cannot hold.
func RequiredBytes(active, budget, least int64) int64 { return max(active-max(budget-least, 0), 0) }

// RequiredBytes is that of the plan.
func (p *Plan) RequiredBytes() int64 {
	return RequiredBytes(p.PinnedBytes+p.StreamedBytes, p.Budget, p.Least)
}

// ExpertWork is the Required of a run with experts that has read so many bytes: with slots for all, what was read
// had to be, once (an expert whose memory others took for a while is read again); else only the run's own trace can tell.
func (p *Plan) ExpertWork(read int64) int64 {
	if x := p.Placement; p.Experts.Resident() {
		return min(read, x.PinnedMemory()+p.ReadBytes+x.Experts.Memory())
	}
	return -1
}

// requests are the mean size of the reads of the trunk, and how many are in flight.
func (p *Plan) requests() (size int64, depth float64) {
	n := int64(0)
	for i := range p.Placement.Units {
		if u := &p.Placement.Units[i]; !u.Pinned {
			n += int64(u.Tiles())
		}
	}
	return p.ReadBytes / max(n, 1), float64(p.Placement.Readers)
}
