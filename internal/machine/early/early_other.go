//go:build !linux

// Package early does nothing here: page cache is not counted as the process's memory.
package early
