//go:build unix && !linux && !darwin

package vfs

import (
	"errors"
	"os"
)

func bypassCache(*os.File) error { return errors.ErrUnsupported }
