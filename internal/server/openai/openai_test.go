package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway/spillway/internal/server/servertest"
)

// A text is a choice of either completions API, whole or as a chunk.
type text struct {
	Choices []struct {
		Index   int
		Text    string
		Message struct{ Role, Content string }
		Delta   struct {
			Role, Content string
		}
		LogProbs struct {
			Content []struct {
				Token   string
				LogProb float64
				Bytes   []byte
				Top     []struct{ LogProb float64 } `json:"top_logprobs"`
			}
			Tokens  []string
			Tok     []*float64           `json:"token_logprobs"`
			Top     []map[string]float64 `json:"top_logprobs"`
			Offsets []int                `json:"text_offset"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	ID, Model, Object string
}

// chat is a body of a chat completion; more is further members.
func chat(content, more string) string {
	c, _ := json.Marshal(content)
	return fmt.Sprintf(`{"model":"storyteller","temperature":0,"max_tokens":12,"messages":[{"role":"user","content":%s}]%s}`, c, more)
}

const chatPath, textPath = "/v1/chat/completions", "/v1/completions"

func TestChat(t *testing.T) {
	s := start(t)
	var one, again text
	s.Post(chatPath, 200, chat("Tell me a story.", ""), &one)
	c := one.Choices[0]
	if c.Message.Role != "assistant" || c.Message.Content == "" || one.Object != "chat.completion" || one.Usage.Total != one.Usage.Prompt+one.Usage.Completion {
		t.Errorf("%+v", one)
	}
	s.Post(chatPath, 200, chat("Tell me a story.", `,"user":"u","unknown":{"a":1}`), &again)
	if c.Message != again.Choices[0].Message || one.ID == again.ID {
		t.Errorf("%+v and %+v", one, again)
	}
	var parts text
	s.Post(chatPath, 200, `{"model":"storyteller","temperature":0,"max_tokens":12,"messages":[{"role":"user","content":[{"type":"text","text":"Tell me "},{"type":"text","text":"a story."}]}]}`, &parts)
	if c.Message != parts.Choices[0].Message {
		t.Errorf("parts: %+v", parts)
	}
}

// stream sends a streaming request and joins its choices' texts.
func stream(t *testing.T, s *servertest.Server, path, body string) (texts map[int]string, chunks []text) {
	t.Helper()
	events := s.Events(path, body)
	if last := events[len(events)-1]; last.Data != "[DONE]" {
		t.Fatalf("the stream ends with %s", last.Data)
	}
	texts = map[int]string{}
	ends := map[int]int{}
	for _, e := range events[:len(events)-1] {
		var c text
		if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
			t.Fatal(err)
		}
		for _, choice := range c.Choices {
			if ends[choice.Index] > 0 {
				t.Errorf("a chunk after the end: %s", e.Data)
			}
			texts[choice.Index] += choice.Text + choice.Delta.Content
			if choice.FinishReason != "" {
				ends[choice.Index]++
			}
		}
		chunks = append(chunks, c)
	}
	if len(ends) != len(texts) {
		t.Errorf("choices %v, of which ended %v", texts, ends)
	}
	return texts, chunks
}

func TestChatStream(t *testing.T) {
	s := start(t)
	var plain text
	s.Post(chatPath, 200, chat("Tell me a story.", `,"n":3,"temperature":1,"seed":5`), &plain)
	texts, chunks := stream(t, s, chatPath, chat("Tell me a story.", `,"n":3,"temperature":1,"seed":5,"stream":true,"stream_options":{"include_usage":true}`))
	for i, c := range plain.Choices {
		if c.Index != i || texts[i] != c.Message.Content {
			t.Errorf("choice %d: %q streamed, %q plain", i, texts[i], c.Message.Content)
		}
	}
	if texts[0] == texts[1] {
		t.Errorf("choices are alike: %v", texts)
	}
	first, last := chunks[0], chunks[len(chunks)-1]
	if first.Choices[0].Delta.Role != "assistant" || len(last.Choices) != 0 || cmp.Diff(last.Usage, plain.Usage) != "" {
		t.Errorf("first %+v, last %+v, plain %+v", first, last, plain.Usage)
	}
}

func TestChatLogProbs(t *testing.T) {
	s := start(t)
	var plain text
	s.Post(chatPath, 200, chat("Tell me a story.", `,"logprobs":true,"top_logprobs":3`), &plain)
	_, chunks := stream(t, s, chatPath, chat("Tell me a story.", `,"logprobs":true,"top_logprobs":3,"stream":true`))
	want := plain.Choices[0].LogProbs.Content
	if len(want) != plain.Usage.Completion {
		t.Errorf("%d probabilities for %d tokens", len(want), plain.Usage.Completion)
	}
	got := want[:0:0]
	for _, c := range chunks {
		got = append(got, c.Choices[0].LogProbs.Content...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	joined := ""
	for _, p := range want {
		if joined += string(p.Bytes); len(p.Top) != 3 || p.Top[0].LogProb != p.LogProb || p.LogProb > 0 {
			t.Errorf("%+v", p)
		}
	}
	if joined != plain.Choices[0].Message.Content {
		t.Errorf("bytes %q, content %q", joined, plain.Choices[0].Message.Content)
	}
}

func TestStop(t *testing.T) {
	s := start(t)
	var whole, cut text
	s.Post(textPath, 200, `{"model":"storyteller","prompt":"Once upon a time","temperature":0,"max_tokens":20}`, &whole)
	full := whole.Choices[0].Text
	stop, _ := json.Marshal(full[5:9])
	body := `{"model":"storyteller","prompt":"Once upon a time","temperature":0,"max_tokens":20,"stop":["never\u0001",` + string(stop) + `]`
	s.Post(textPath, 200, body+"}", &cut)
	want := full[:strings.Index(full, full[5:9])]
	if cut.Choices[0].Text != want || cut.Choices[0].FinishReason != "stop" {
		t.Errorf("%+v, want %q", cut, want)
	}
	if texts, _ := stream(t, s, textPath, body+`,"stream":true}`); texts[0] != want {
		t.Errorf("streamed %v, want %q", texts, want)
	}
}

func TestCompletions(t *testing.T) {
	s := start(t)
	post := func(more string) (r text) {
		t.Helper()
		s.Post(textPath, 200, `{"model":"storyteller","temperature":0,"max_tokens":6,`+more+`}`, &r)
		return r
	}
	one := post(`"prompt":"Once upon a time"`)
	echo := post(`"prompt":"Once upon a time","echo":true,"logprobs":2`)
	if got, want := echo.Choices[0].Text, "Once upon a time"+one.Choices[0].Text; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p := echo.Choices[0].LogProbs
	if n := len(p.Tokens); n == 0 || len(p.Tok) != n || len(p.Top) != n || len(p.Offsets) != n || p.Tok[0] != nil || p.Top[0] != nil {
		t.Errorf("%+v", p)
	}
	for i, token := range p.Tokens[1:] {
		if at := p.Offsets[i+1]; *p.Tok[i+1] > 0 || len(p.Top[i+1]) < 2 || !strings.HasPrefix(echo.Choices[0].Text[at:], token) {
			t.Errorf("token %q at %d: %v", token, at, p.Top[i+1])
		}
	}
	score := post(`"prompt":"Once upon a time","echo":true,"logprobs":0,"max_tokens":0`)
	if c := score.Choices[0]; c.Text != "Once upon a time" || c.FinishReason != "length" || score.Usage.Completion != 0 || len(c.LogProbs.Tok) != score.Usage.Prompt {
		t.Errorf("%+v", score)
	}
	many := post(`"prompt":["Once upon a time","Lily",[5,6,7]]`)
	if len(many.Choices) != 3 || many.Choices[0].Text != one.Choices[0].Text || many.Choices[2].Index != 2 {
		t.Errorf("%+v", many)
	}
	best := post(`"prompt":"Once upon a time","temperature":1,"seed":1,"n":2,"best_of":6`)
	if len(best.Choices) != 2 || best.Usage.Completion < 12 {
		t.Errorf("%+v", best)
	}
}

func TestBeams(t *testing.T) {
	s := start(t)
	search := func() (r text) {
		s.Post(textPath, 200, `{"model":"storyteller","prompt":["Once upon a time","Lily"],"max_tokens":6,"use_beam_search":true,"n":3}`, &r)
		return r
	}
	one, two := search(), search()
	if d := cmp.Diff(one.Choices, two.Choices); d != "" || len(one.Choices) != 6 {
		t.Fatalf("%+v: %s", one, d)
	}
	if one.Choices[0].Text == one.Choices[1].Text || one.Choices[3].Index != 3 || one.Usage.Completion == 0 {
		t.Errorf("%+v", one)
	}
	var c text
	s.Post(chatPath, 200, chat("Tell me a story.", `,"use_beam_search":true,"n":2,"length_penalty":0.5`), &c)
	if len(c.Choices) != 2 || c.Choices[0].Message.Content == "" {
		t.Errorf("%+v", c)
	}
}

func TestTokenize(t *testing.T) {
	s := start(t)
	var out struct {
		Count, Most int
		Tokens      []int
		Strings     []string `json:"token_strs"`
	}
	s.Post("/tokenize", 200, `{"prompt":"Once upon a time","return_token_strs":true}`, &out)
	if out.Count == 0 || len(out.Tokens) != out.Count || len(out.Strings) != out.Count {
		t.Fatalf("%+v", out)
	}
	var bare struct{ Tokens []int }
	s.Post("/v1/tokenize", 200, `{"model":"storyteller","prompt":"Once upon a time","add_special_tokens":false}`, &bare)
	ids, _ := json.Marshal(bare.Tokens)
	var back struct{ Prompt string }
	s.Post("/v1/detokenize", 200, `{"model":"storyteller","tokens":`+string(ids)+`}`, &back)
	if back.Prompt != "Once upon a time" {
		t.Errorf("%q of %s", back.Prompt, ids)
	}
	var chat struct{ Count int }
	var answer text
	s.Post("/tokenize", 200, `{"model":"storyteller","messages":[{"role":"user","content":"Hi"}]}`, &chat)
	s.Post(chatPath, 200, `{"model":"storyteller","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`, &answer)
	if chat.Count != answer.Usage.Prompt {
		t.Errorf("%d tokens, %d in the usage", chat.Count, answer.Usage.Prompt)
	}
}

func TestEmbeddings(t *testing.T) {
	s := start(t)
	var out struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
	}
	s.Post("/v1/embeddings", 200, `{"model":"storyteller","input":["a cat","a dog","a cat"]}`, &out)
	if len(out.Data) != 3 || !slices.Equal(out.Data[0].Embedding, out.Data[2].Embedding) || slices.Equal(out.Data[0].Embedding, out.Data[1].Embedding) {
		t.Fatalf("%+v", out)
	}
	var packed struct{ Data []struct{ Embedding string } }
	s.Post("/v1/embeddings", 200, `{"model":"storyteller","input":"a cat","encoding_format":"base64"}`, &packed)
	raw, err := base64.StdEncoding.DecodeString(packed.Data[0].Embedding)
	if err != nil || len(raw) != 4*len(out.Data[0].Embedding) {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	var short struct {
		Data []struct{ Embedding []float32 }
	}
	s.Post("/v1/embeddings", 200, `{"model":"storyteller","input":"a cat","dimensions":8}`, &short)
	norm := float32(0)
	for _, v := range short.Data[0].Embedding {
		norm += v * v
	}
	if len(short.Data[0].Embedding) != 8 || norm < 0.999 || norm > 1.001 {
		t.Errorf("%v", short)
	}
}

func TestModels(t *testing.T) {
	s := start(t)
	for path, want := range map[string]int{"/v1/models": 200, "/v1/models/storyteller": 200, "/v1/models/none": 404, "/v1/models/none/such": 404} {
		status, _, text := s.Do(http.MethodGet, path, "")
		if status != want || status == 404 && !strings.Contains(text, `"code":"model_not_found"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
