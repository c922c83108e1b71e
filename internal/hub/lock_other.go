//go:build !unix

package hub

import "os"

// lock does nothing where files have no advisory locks; Windows refuses a second writer's rename by itself.
func lock(*os.File) error { return nil }
