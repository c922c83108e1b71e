package dialect

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain sees that every parser is closed: one that is not keeps its coroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
