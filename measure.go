package spillway

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	driveTime     = 500 * time.Millisecond
	kernelTime    = 100 * time.Millisecond
	kernelSamples = 5
	measureBuffer = 128 << 20
	measureLeast  = 1 << 20
)

// Measure returns what drive, memory, processor and kernels give now, in half a second or so; 0 for what cannot
// be measured. It is for times when no model runs. The buffer takes less than what the plan gave to
// the model, so that measuring raises no peak; where that is little, less is measured.
func (c *Checkpoint) Measure(p *plan.Plan, exact bool) (speeds plan.Machine, err error) {
	buf, err := c.spare(p)
	if err != nil || buf == nil {
		return plan.Machine{}, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	b := buf.Bytes()
	pool := kernel.NewPool(c.rt.threads)
	defer pool.Close()
	speeds.FloatPeak, speeds.IntegerPeak = kernel.Peak(pool)
	speeds.Flops = c.kernelSpeed(pool, b, exact)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1 // else the system backs it with one page of zeros
	}
	speeds.Memory = machine.ReadBandwidth(b, c.rt.threads)
	if c.embedded {
		return speeds, nil
	}
	profile, err := vfs.MeasureDrive(c.largestFile(), b, driveTime)
	speeds.Drive = profile.Best.BytesPerSecond
	return speeds, err
}

// driveProfileTime is what a whole profile takes.
const driveProfileTime = 3 * time.Second

// DriveProfile measures the drive that the model lies on with many kinds of requests, as far as the memory that the plan
// leaves allows. It is for times when no model runs.
func (c *Checkpoint) DriveProfile(p *plan.Plan) (profile vfs.Profile, err error) {
	buf, err := c.spare(p)
	if err != nil || buf == nil || c.embedded {
		return vfs.Profile{}, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	b := buf.Bytes()
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1 // memory that nobody has written would be found while the clock runs
	}
	return vfs.ProfileDrive(c.largestFile(), b, driveProfileTime)
}

// Drive tells the model's drive from others: that of its largest file. It is 0 for the embedded model.
func (c *Checkpoint) Drive() uint64 {
	if c.embedded || len(c.cat.Files) == 0 {
		return 0
	}
	return c.largestFile().ID().Dev
}

func (c *Checkpoint) largestFile() vfs.File {
	files := c.cat.Files
	i := 0
	for k := range files {
		if files[k].File.Size() > files[i].File.Size() {
			i = k
		}
	}
	return files[i].File
}

// kernelSpeed is the operations per second of a product that stays in the caches, with weights of the
// model's most common type; 0 if b is too small. b holds zeros.
func (c *Checkpoint) kernelSpeed(pool *kernel.Pool, b []byte, exact bool) float64 {
	const rows, cols, outputs = 64, 2048, 256
	w := kernel.Weights{Type: commonType(c.Layout()), Rows: outputs, Cols: cols}
	integer := kernel.Integer(w.Type, exact)
	take := func(n int) []byte {
		n = mem.Round(n)
		if n > len(b) {
			return nil
		}
		part := b[:n]
		b = b[n:]
		return part
	}
	w.Data = take(outputs * w.Type.RowBytes(cols))
	acts := take(kernel.ActsBytes(rows, cols, integer))
	scratch := take(kernel.ScratchBytes(c.rt.threads, cols))
	out := take(rows * outputs * 4)
	if w.Data == nil || acts == nil || scratch == nil || out == nil || !exact && !kernel.Supported(w.Type) {
		return 0
	}
	w.Data = w.Data[:outputs*w.Type.RowBytes(cols)]
	a := kernel.MakeActs(acts, rows, cols, integer)
	for r := range rows {
		a.SetRow(r, make([]float32, cols))
	}
	best := 0.0
	for range kernelSamples { // one that something else has slowed down says nothing
		runs, start := 0, time.Now()
		for time.Since(start) < kernelTime/kernelSamples {
			kernel.MatMul(pool, scratch, w, &a, mem.AsFloat32s(out), outputs, exact)
			runs++
		}
		best = max(best, float64(runs)*2*rows*cols*outputs/time.Since(start).Seconds())
	}
	return best
}

// commonType is the type that most bytes have of what a row uses.
func commonType(l *layout.Model) quant.Type {
	sums := map[quant.Type]int64{}
	for _, m := range l.Sweep() {
		sums[m.Type] += m.Bytes()
	}
	for i := range l.Experts {
		for k := range l.Experts[i].Stacks {
			s := &l.Experts[i].Stacks[k]
			sums[s.Type] += int64(l.Experts[i].Used) * s.Bytes()
		}
	}
	best := quant.F32
	for _, t := range slices.Sorted(maps.Keys(sums)) {
		if sums[t] > sums[best] {
			best = t
		}
	}
	return best
}
