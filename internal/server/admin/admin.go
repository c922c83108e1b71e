package admin

import (
	"net/http"

	"github.com/spillway/spillway/internal/server"
)

var api = &server.API{Name: "admin", Prefix: "/admin", Error: server.PlainError}

// Mount registers /metrics, which anyone may read who reaches the port, and behind the keys /admin/state and
// /admin/budget.
func Mount(s *server.Server, m *Metrics) {
	s.HandlePublic("GET /metrics", api, func(x *server.Exchange) error {
		t := newText()
		m.StateOf(s).write(t)
		m.write(t)
		x.Writer().Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, err := x.Writer().Write(t.bytes())
		return err
	})
	s.Handle("GET /admin/state", api, func(x *server.Exchange) error { return x.JSON(http.StatusOK, m.StateOf(s)) })
	s.Handle("GET /admin/budget", api, func(x *server.Exchange) error { return x.JSON(http.StatusOK, memoryOf(s)) })
	s.Handle("POST /admin/budget", api, setBudget)
}
