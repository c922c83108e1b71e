//go:build !linux

package grammar

import "time"

var start = time.Now()

func processorTime() time.Duration { return time.Since(start) }
