//go:build !linux

package vfs

import "os"

// dropWritten does nothing: there is no such advice here.
func dropWritten(*os.File) {}

func adviseRandom(*os.File) {}
