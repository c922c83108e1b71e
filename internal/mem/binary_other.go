//go:build !linux

package mem

import "errors"

// TrimBinary is for Linux alone: other systems do not count a program's pages against a group.
func TrimBinary() error { return errors.ErrUnsupported }
