package openai

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/spillway/spillway/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *servertest.Server {
	return servertest.Start(t, servertest.Options{Mount: Mount})
}
