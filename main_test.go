package spillway

import (
	"testing"

	"go.uber.org/goleak"
)

// Every runtime that a test closes leaves no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
