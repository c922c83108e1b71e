package ollama

import (
	"strings"
	"testing"
)

// Answers have the format that was asked for, whole and as a stream.
func TestFormat(t *testing.T) {
	s := start(t)
	const format = `"format":{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false}`
	right := func(text string) bool { return text == `{"a":"x"}` || text == `{"a":"y"}` }
	var chat struct{ Message struct{ Content string } }
	s.Post("/api/chat", 200, `{"model":"storyteller","stream":false,"messages":[{"role":"user","content":"Hi"}],`+format+`}`, &chat)
	if !right(chat.Message.Content) {
		t.Errorf("%+v", chat)
	}
	text := ""
	for _, l := range lines[generateLine](t, s, "/api/generate", `{"model":"storyteller","prompt":"Hi",`+format+`}`) {
		text += l.Response
	}
	if !right(text) {
		t.Errorf("%q", text)
	}
	s.Post("/api/chat", 200, `{"model":"storyteller","stream":false,"messages":[{"role":"user","content":"Hi"}],"format":"json","options":{"num_predict":40}}`, &chat)
	if !strings.HasPrefix(chat.Message.Content, "{") {
		t.Errorf("%+v", chat)
	}
	for field, want := range map[string]string{
		`"format":"yaml"`: "format is", `"format":17`: "format is a number", `"format":{"type":"strnig"}`: `format: json_schema: keyword "type" at #`,
	} {
		var e struct{ Error string }
		s.Post("/api/chat", 400, `{"model":"storyteller","messages":[{"role":"user","content":"Hi"}],`+field+`}`, &e)
		if !strings.Contains(e.Error, want) {
			t.Errorf("%s: %s", field, e.Error)
		}
	}
}
