// Package drive measures what a drive gives for one file, with a reader of its own: O_DIRECT, a
// few request sizes and depths, the best of them. It shares no code with the program's own reader,
// so that it can judge it.
package drive

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Point is one way to read and what it gave.
type Point struct {
	Request        int // bytes of a request
	Depth          int // requests in flight
	BytesPerSecond float64
}

func (p Point) String() string {
	return fmt.Sprintf("%.2f GB/s (%d MiB requests, %d in flight)", p.BytesPerSecond/1e9, p.Request>>20, p.Depth)
}

// Best reads the file in every way of the profile, each for the given time, and returns the best.
func Best(path string, each time.Duration) (Point, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return Point{}, fmt.Errorf("open %s for direct reads: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return Point{}, err
	}
	var best Point
	for _, request := range []int{1 << 20, 4 << 20, 12 << 20} {
		for _, depth := range []int{4, 16} {
			p, err := measure(fd, stat.Size, request, depth, each)
			if err != nil {
				return Point{}, err
			}
			if p.BytesPerSecond > best.BytesPerSecond {
				best = p
			}
		}
	}
	return best, nil
}

const hugePage = 2 << 20

// measure keeps depth requests in flight until the time is over. They go into huge pages where the kernel gives
// some: a request into small ones is cut into many, and reaches half of a fast drive's speed.
func measure(fd int, size int64, request, depth int, each time.Duration) (Point, error) {
	requests := size / int64(request)
	if requests == 0 {
		return Point{}, errors.New("the file is smaller than one request")
	}
	memory, err := unix.Mmap(-1, 0, depth*request+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return Point{}, err
	}
	defer unix.Munmap(memory)
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // advice: small pages do, too
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // before the clock runs
	}
	var next, total atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, depth)
	start := time.Now()
	for i := range depth {
		buf := memory[i*request:][:request]
		group.Go(func() {
			for time.Since(start) < each {
				at := (next.Add(1) - 1) % requests * int64(request)
				n, err := unix.Pread(fd, buf, at)
				if err == nil && n != len(buf) {
					err = io.ErrUnexpectedEOF
				}
				if err != nil {
					failures <- err
					return
				}
				total.Add(int64(n))
			}
		})
	}
	group.Wait()
	took := time.Since(start).Seconds()
	select {
	case err := <-failures:
		return Point{}, err
	default:
		return Point{request, depth, float64(total.Load()) / took}, nil
	}
}
