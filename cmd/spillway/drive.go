package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/report"
	"github.com/spillway/spillway/internal/vfs"
)

// driveProfile is what a drive can do, as `spillway bench --drive --json` prints it and the cache keeps it.
type driveProfile struct {
	Device   string      `json:"device"` // tells it from other drives of this computer
	Measured time.Time   `json:"measured"`
	Direct   bool        `json:"direct"` // past the page cache
	Cells    []driveCell `json:"cells"`
	Best     driveCell   `json:"best"`
}

type driveCell struct {
	Request int     `json:"request_bytes"`
	Depth   int     `json:"depth"` // requests in flight
	Speed   float64 `json:"bytes_per_second"`
}

func newDriveProfile(device uint64, direct bool, p vfs.Profile) *driveProfile {
	d := &driveProfile{Device: deviceName(device), Measured: time.Now().UTC().Truncate(time.Second), Direct: direct}
	for _, c := range p.Cells {
		d.Cells = append(d.Cells, driveCell{c.Size, c.Depth, c.BytesPerSecond})
	}
	d.Best = driveCell{p.Best.Size, p.Best.Depth, p.Best.BytesPerSecond}
	return d
}

func deviceName(device uint64) string { return fmt.Sprintf("%x", device) }

// cells are those of a plan.
func (d *driveProfile) cells() (all []plan.Cell) {
	if d == nil {
		return nil
	}
	for _, c := range d.Cells {
		all = append(all, plan.Cell{Size: int64(c.Request), Depth: c.Depth, BytesPerSecond: c.Speed})
	}
	return all
}

// age is how long ago it was measured, for people.
func (d *driveProfile) age() string {
	switch age := time.Since(d.Measured); {
	case age < time.Minute:
		return "now"
	case age < 2*time.Hour:
		return fmt.Sprintf("%.0f minutes ago", age.Minutes())
	case age < 48*time.Hour:
		return fmt.Sprintf("%.0f hours ago", age.Hours())
	default:
		return fmt.Sprintf("%.0f days ago", age.Hours()/24)
	}
}

// profileAge is how long a profile is believed.
const profileAge = 7 * 24 * time.Hour

// driveCache is the file that keeps the profile of a drive.
func driveCache(device uint64) (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "spillway", "drives", deviceName(device)+".json"), err
}

// cachedProfile returns the profile of a drive if there is one that is not too old, else nil.
func cachedProfile(device uint64) *driveProfile {
	path, err := driveCache(device)
	if err != nil {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var d driveProfile
	if json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&d) != nil || d.Device != deviceName(device) || !d.sound() {
		return nil
	}
	if age := time.Since(d.Measured); age > profileAge || age < -time.Minute {
		return nil
	}
	return &d
}

// sound reports whether what a file says can be.
func (d *driveProfile) sound() bool {
	return len(d.Cells) > 0 && !slices.ContainsFunc(d.Cells, func(c driveCell) bool { return c.Request < 1 || c.Depth < 1 || !(c.Speed > 0) })
}

// keep caches a profile. A cache that cannot be written is no error: the next command measures again.
func (d *driveProfile) keep(s *session, device uint64) {
	path, err := driveCache(device)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(d)
	}
	if err == nil {
		err = writeWhole(path, append(text, '\n'))
	}
	if err != nil && s.flags.Verbose {
		fmt.Fprintf(s.stderr, "the drive's profile is not kept: %s\n", oneLine(err.Error()))
	}
}

// runDrive is bench --drive: the table of a drive.
func (c *benchCommand) runDrive(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	path := c.Model
	if path == "" {
		path = "."
	}
	device, err := vfs.Device(path)
	if err != nil {
		return err
	}
	d := cachedProfile(device)
	if d == nil || c.Refresh {
		if d, err = s.measureDriveOf(path); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s.interrupted(ctx, err)
		}
		d.keep(s, device)
	}
	if s.flags.JSON {
		return s.printJSON(d)
	}
	_, err = io.WriteString(s.stdout, d.table(path))
	return err
}

// measureDriveOf profiles the drive of a file or folder.
func (s *session) measureDriveOf(path string) (d *driveProfile, err error) {
	f, done, err := driveFile(path)
	if err != nil {
		return nil, err
	}
	if why := f.Why(); why != "" {
		s.tell(why)
	}
	d, err = s.measureDrive(f)
	return d, errors.Join(err, done())
}

const (
	profileTime  = 4 * time.Second
	profileLeast = 4 << 20   // of a buffer
	profileFile  = 256 << 20 // of a file that is made to be read, and the least of others
)

// measureDrive profiles a drive with as much memory as the cap allows, up to what all kinds of requests need.
func (s *session) measureDrive(f vfs.File) (d *driveProfile, err error) {
	var full *budget.NoRoomError
	n := vfs.ProfileBuffer
	memory, free, err := s.borrow(n, "measuring a drive")
	for ; errors.As(err, &full) && n > profileLeast; memory, free, err = s.borrow(n, "measuring a drive") {
		n /= 2
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // else the kernel finds it while the clock runs
	}
	p, err := vfs.ProfileDrive(f, memory, profileTime)
	return newDriveProfile(f.ID().Dev, f.Direct(), p), err
}

// driveFile is a file on the drive of path to read: path itself, the largest file of a folder, or, where those are
// small, one that is made for it. done closes it, and removes the one that was made.
func driveFile(path string) (f vfs.File, done func() error, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
	} else if path, info, err = largestIn(dir); err != nil {
		return nil, nil, err
	}
	made := info == nil || info.Size() < profileFile
	if made {
		if path, err = makeDriveFile(dir); err != nil {
			return nil, nil, fmt.Errorf("a file to measure the drive of %s: %w", visible(dir, 200), err)
		}
	}
	remove := func() error {
		if made {
			return os.Remove(path)
		}
		return nil
	}
	if f, err = vfs.OS().Open(path); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return f, func() error { return errors.Join(f.Close(), remove()) }, nil
}

// largestIn returns the largest regular file of a folder; a nil info if there is none.
func largestIn(dir string) (path string, info fs.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() && (info == nil || i.Size() > info.Size()) {
			path, info = filepath.Join(dir, e.Name()), i
		}
	}
	return path, info, err
}

// makeDriveFile writes a file that no drive can make smaller.
func makeDriveFile(dir string) (path string, err error) {
	if free, ok := machine.FreeDisk(dir); ok && free < 2*profileFile {
		return "", fmt.Errorf("only %s are free", report.Bytes(free))
	}
	f, err := os.CreateTemp(dir, ".spillway-*")
	if err != nil {
		return "", err
	}
	sink, noise, piece := vfs.NewSink(f), rand.NewChaCha8([32]byte{}), make([]byte, 64<<10)
	for n := 0; n < profileFile && err == nil; n += len(piece) {
		noise.Read(piece)
		_, err = sink.Write(piece)
	}
	sink.Flush()
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// table has a row for each size of requests, and a column for each number of them in flight.
func (d *driveProfile) table(path string) string {
	var depths []int
	for _, c := range d.Cells {
		if !slices.Contains(depths, c.Depth) {
			depths = append(depths, c.Depth)
		}
	}
	slices.Sort(depths)
	var b strings.Builder
	fmt.Fprintf(&b, "the drive of %s (device %s), measured %s\n%-12s", visible(path, 200), d.Device, d.age(), "request")
	for _, n := range depths {
		fmt.Fprintf(&b, " %12s", fmt.Sprintf("%d in flight", n))
	}
	size := 0
	for _, c := range d.Cells {
		if c.Request != size {
			size = c.Request
			fmt.Fprintf(&b, "\n%-12s", report.Bytes(int64(size)))
		}
		fmt.Fprintf(&b, " %12s", report.Rate(c.Speed))
	}
	fmt.Fprintf(&b, "\nbest: %s, by requests of %s, %d in flight\n", report.Rate(d.Best.Speed), report.Bytes(int64(d.Best.Request)), d.Best.Depth)
	return b.String()
}
