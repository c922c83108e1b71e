package plan

// Machine is what the computer can do.
type Machine struct {
	Drive  float64 // bytes/s that it reads
	Memory float64 // bytes/s that it reads
	Flops  float64 // operations/s of the kernels, for predictions
	// Operations/s of the processor's multiply-adds: on binary32, and on 16-bit integers.
	FloatPeak, IntegerPeak float64
}

// Prediction is the speed that a plan can reach. Limit names what bounds the decode: "drive",
// "memory" or "compute".
type Prediction struct {
	Decode  float64 // tokens/s of one sequence
	Prefill float64 // tokens/s
	Limit   string
}

// Predict says how fast a plan will be if reading and computing overlap fully.
func (p *Plan) Predict(m Machine) Prediction {
	sweep := func(rows int) (float64, string) {
		active := float64(p.PinnedBytes + p.StreamedBytes)
		if p.Experts != nil {
			active += p.Experts.touched(rows) * float64(p.Experts.Bytes)
		}
		return slowest(m, float64(p.ReadBytes)+p.Experts.reads(rows), active, rate(float64(rows)*float64(p.model.FlopsPerToken), m.Flops))
	}
	one, limit := sweep(1)
	chunk, _ := sweep(p.Chunk)
	return Prediction{Decode: rate(1, one), Prefill: rate(float64(p.Chunk), chunk), Limit: limit}
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
// had to be; else only the run's own trace can tell.
func (p *Plan) ExpertWork(read int64) int64 {
	if p.Experts.Resident() {
		return read
	}
	return -1
}
