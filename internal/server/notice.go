package server

import (
	"bytes"
	"log/slog"
	"slices"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// NoticeHeader is the header of an answer that says what of its request had no effect.
const NoticeHeader = "X-Spillway-Notice"

// noTools is the notice of a request whose tools are not in its prompt.
const noTools = "the model's chat template shows no tools; the model does not know of those in the request"

// EncodeRequest is Encode of a request's messages. A chat template may leave the request's tools out: if the prompt is
// the same without them, the answer and the log say so. encode may be called twice.
func (x *Exchange) EncodeRequest(h *pool.Held, r spillway.Request, text int64, encode func(spillway.Request) ([]int32, error)) ([]int32, error) {
	if r.Now.IsZero() {
		r.Now = time.Now() // the same for both
	}
	return x.Encode(h, text, func() ([]int32, error) {
		ids, err := encode(r)
		if err != nil || r.Raw || !bytes.ContainsRune(r.Tools, '{') || h.ShowsTools() { // a list may be empty
			return ids, err
		}
		r.Tools = nil
		if bare, err := encode(r); err != nil || !slices.Equal(ids, bare) {
			h.SawTools()
			return ids, nil
		}
		x.w.Header().Set(NoticeHeader, noTools)
		x.Note(slog.Bool("tools_shown", false))
		return ids, nil
	})
}
