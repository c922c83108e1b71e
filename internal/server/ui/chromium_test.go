package ui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/admin"
	"github.com/spillway/spillway/internal/server/openai"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
)

// TestInChromium opens the page in a real browser: the memory of the model is shown, and a screenshot is not empty.
func TestInChromium(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("skipped: no chromium")
	}
	m := admin.NewMetrics(nil)
	s := servertest.Start(t, servertest.Options{Server: server.Options{Observer: m, Version: "1.2"}, Pool: pool.Options{KeepAlive: pool.Forever},
		Mount: func(s *server.Server) error { openai.Mount(s); admin.Mount(s, m); Mount(s); return nil }})
	picture := filepath.Join(t.TempDir(), "page.png")
	open := func(how string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--window-size=1200,800",
			"--virtual-time-budget=3000", how, s.URL).Output()
		if err != nil {
			t.Skipf("skipped: chromium does not run here: %v", err)
		}
		return string(out)
	}
	page := open("--dump-dom")
	for _, want := range []string{"storyteller · qwen3 Q8_0", "weights pinned", "requests running, waiting", "version 1.2", `<option value="storyteller">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	open("--screenshot=" + picture)
	if info, err := os.Stat(picture); err != nil || info.Size() < 10_000 {
		t.Errorf("no screenshot: %v", err)
	}
}
