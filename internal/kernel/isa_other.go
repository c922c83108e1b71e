//go:build !amd64 && !arm64

package kernel

func nativeOps() []*isaOps { return nil }

func pause() {}
