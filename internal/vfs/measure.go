package vfs

import (
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes and depths of requests that MeasureDrive tries, and those of ProfileDrive.
var (
	measureSizes  = []int{1 << 20, 4 << 20, 12 << 20}
	measureDepths = []int{1, 4, 16}
	profileSizes  = []int{4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 12 << 20}
	profileDepths = []int{1, 2, 4, 8, 16}
)

// ProfileBuffer is what ProfileDrive needs to try everything.
const ProfileBuffer = 192 << 20

// ProfileDrive is MeasureDrive with more sizes and depths.
func ProfileDrive(f File, buf []byte, limit time.Duration) (Profile, error) {
	return measureDrive(f, buf, limit, profileSizes, profileDepths)
}

// Cell is the speed of one kind of requests.
type Cell struct {
	Size           int // bytes of a request
	Depth          int // requests in flight
	BytesPerSecond float64
}

// Profile is what a drive can do.
type Profile struct {
	Cells []Cell
	Best  Cell
}

// MeasureDrive reads f at random offsets, so that no cache of the drive helps, with several sizes
// and numbers of requests, for about limit in all. Sizes that are larger than buf or the file are
// left out (at least one stays, as large as fits). Every request in flight has its own part of buf,
// which it goes through from end to end: reads that land in the processor's cache again and again are
// faster (by 8 % where it was measured) than those that reach memory, as weights must. So depths that
// do not fit in buf are left out too, and buf should be larger than the caches. What buf holds means
// nothing afterwards. Each of up to 16 requests in flight needs a thread. A file that is not direct
// gives the speed of its cache.
func MeasureDrive(f File, buf []byte, limit time.Duration) (Profile, error) {
	return measureDrive(f, buf, limit, measureSizes, measureDepths)
}

func measureDrive(f File, buf []byte, limit time.Duration, tried, depths []int) (Profile, error) {
	fit := int(min(int64(len(buf)), f.Size())) &^ (f.Align() - 1)
	if fit == 0 {
		return Profile{}, errors.New("measure " + f.Name() + ": the file or the buffer is smaller than a block")
	}
	sizes := slices.DeleteFunc(slices.Clone(tried), func(n int) bool { return n > fit || n%f.Align() != 0 })
	if len(sizes) == 0 {
		sizes = []int{fit}
	}
	var p Profile
	each := limit / time.Duration(len(sizes)*len(depths))
	for _, size := range sizes {
		for _, depth := range depths {
			if depth > 1 && depth*size > len(buf) {
				continue
			}
			speed, err := measureCell(f, buf, size, depth, each)
			if err != nil {
				return Profile{}, err
			}
			p.Cells = append(p.Cells, Cell{size, depth, speed})
		}
	}
	p.Best = slices.MaxFunc(p.Cells, func(a, b Cell) int { return cmp.Compare(a.BytesPerSecond, b.BytesPerSecond) })
	return p, nil
}

// measureCell keeps depth reads of size bytes in flight until the time is over, and waits for the last.
func measureCell(f File, buf []byte, size, depth int, d time.Duration) (float64, error) {
	var (
		wg     sync.WaitGroup
		total  atomic.Int64
		failed atomic.Pointer[error]
	)
	start := time.Now()
	for i := range depth {
		part := buf[i*(len(buf)/depth/size)*size:][:len(buf)/depth/size*size]
		wg.Go(func() {
			for at := 0; failed.Load() == nil; at = (at + size) % len(part) {
				n, err := f.ReadAt(part[at:at+size], randomOffset(f, size))
				total.Add(int64(n))
				if err != nil && !errors.Is(err, io.EOF) {
					failed.CompareAndSwap(nil, &err)
				}
				if time.Since(start) >= d {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(total.Load()) / time.Since(start).Seconds(), nil
}

// randomOffset is a block from which n bytes lie within the file.
func randomOffset(f File, n int) int64 {
	blocks := (f.Size()-int64(n))/int64(f.Align()) + 1
	return rand.Int64N(blocks) * int64(f.Align())
}
