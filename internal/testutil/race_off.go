//go:build !race

package testutil

// Raced says that the race detector is on, which takes memory and time of its own.
const Raced = false
