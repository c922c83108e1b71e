// Package ui is the page at /: a chat, and a live picture of the memory. Its files are part of the program; they
// load nothing from elsewhere.
package ui

import (
	"embed"
	"fmt"
	"net/http"
	"path"

	"github.com/spillway/spillway/internal/server"
)

//go:embed files
var files embed.FS

var api = &server.API{Name: "ui", Prefix: "/ui", Error: server.PlainError}

// policy lets the page load its own files and call its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Mount registers / and the files of the page. They hold no secrets, so that no key is asked for.
func Mount(s *server.Server) {
	s.HandlePublic("GET /{$}", api, func(x *server.Exchange) error { return send(x, "index.html") })
	s.HandlePublic("GET /ui/{name}", api, func(x *server.Exchange) error { return send(x, x.Request.PathValue("name")) })
}

// types of the files; the system's table may say something else.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

func send(x *server.Exchange, name string) error {
	data, err := files.ReadFile(path.Join("files", path.Base(name)))
	if err != nil {
		return &server.Error{Status: http.StatusNotFound, Code: server.CodeNotFound, Message: fmt.Sprintf("the page has no file %.80q", name)}
	}
	h := x.Writer().Header()
	h.Set("Content-Type", types[path.Ext(name)])
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	_, err = x.Writer().Write(data)
	return err
}
