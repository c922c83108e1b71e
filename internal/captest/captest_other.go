//go:build !linux

package captest

import (
	"context"
	"errors"
	"runtime"
)

var errNoGroups = errors.New("no cgroup: " + runtime.GOOS + " has no memory control groups")

func available() error                           { return errNoGroups }
func (r Run) do(context.Context) (Result, error) { return Result{}, errNoGroups }
func evict([]string) error                       { return errNoGroups }
func cached(string) (int64, error)               { return 0, errNoGroups }
