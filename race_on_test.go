//go:build race

package spillway

const raced = true
