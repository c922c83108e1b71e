//go:build !linux

// Package drive measures what a drive gives for one file. It needs Linux.
package drive

import (
	"errors"
	"time"
)

// Point is one way to read and what it gave.
type Point struct {
	Request        int
	Depth          int
	BytesPerSecond float64
}

func (p Point) String() string { return "unknown" }

// Best is only there on Linux.
func Best(string, time.Duration) (Point, error) {
	return Point{}, errors.New("the drive is measured on Linux only")
}
