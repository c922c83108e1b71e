package main

import (
	"errors"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	driveTime     = 600 * time.Millisecond
	driveBuffer   = 12 << 20 // the largest request
	measureBuffer = 128 << 20
	measureLeast  = 1 << 20
)

// measure returns what drive and memory give now. No model runs meanwhile, so that its room of the
// budget, free bytes, is there for the buffer; where that is little, less is measured.
func measure(c *spillway.Checkpoint, free int64, threads int) (speeds plan.Machine, err error) {
	n := int(min(free*3/4, measureBuffer)) &^ (measureLeast - 1)
	if n < measureLeast {
		return plan.Machine{}, nil
	}
	buf, err := mem.New(budget.New(free), budget.Staging, n, "measurements")
	if err != nil {
		return plan.Machine{}, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	b := buf.Bytes()
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1 // else the system backs it with one page of zeros
	}
	speeds.Memory = machine.ReadBandwidth(b, threads)
	files := c.Catalog().Files
	largest := files[0].File
	for _, f := range files {
		if f.File.Size() > largest.Size() {
			largest = f.File
		}
	}
	profile, err := vfs.MeasureDrive(largest, b[:min(n, driveBuffer)], driveTime)
	if err != nil {
		return plan.Machine{}, err
	}
	speeds.Drive = profile.Best.BytesPerSecond
	return speeds, nil
}
