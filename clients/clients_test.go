// Package clients_test drives a running server with the official Go clients of the APIs that it speaks. It is a
// module of its own, so that the clients are no part of Spillway's.
package clients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

const model = "storyteller"

var base string // the server's address

func TestMain(m *testing.M) {
	code, err := serve(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// serve builds the program and runs the tests while it serves the embedded model.
func serve(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "clients-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "spillway")
	build := exec.Command("go", "build", "-o", bin, "./cmd/spillway")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	cmd := exec.Command(bin, "serve", "--port", "0", "--memory", "256MiB")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if base, err = address(stderr); err != nil {
		return 0, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	code := m.Run()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return code, nil
}

// address waits until the server is ready and returns where it listens.
func address(r io.Reader) (string, error) {
	at := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			at, _, _ = strings.Cut(rest, ",")
		}
		if lines.Text() == "ready" && at != "" {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return at, nil
		}
	}
	return "", fmt.Errorf("the server ended before it was ready: %w", lines.Err())
}

func client() openai.Client {
	return openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func ask(t *testing.T) (context.Context, openai.ChatCompletionNewParams) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx, openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Once upon a time")},
		Temperature: openai.Float(0), MaxCompletionTokens: openai.Int(12), Seed: openai.Int(1),
	}
}

func TestOpenAIChat(t *testing.T) {
	c := client()
	ctx, p := ask(t)
	p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(2)
	whole, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	choice := whole.Choices[0]
	if choice.Message.Content == "" || choice.FinishReason != "length" || whole.Usage.CompletionTokens != 12 || len(choice.Logprobs.Content) != 12 || len(choice.Logprobs.Content[0].TopLogprobs) != 2 {
		t.Errorf("%s", whole.RawJSON())
	}
	p.Logprobs, p.TopLogprobs = openai.ChatCompletionNewParams{}.Logprobs, openai.ChatCompletionNewParams{}.TopLogprobs
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(ctx, p)
	sum := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !sum.AddChunk(stream.Current()) {
			t.Fatalf("a chunk that does not fit: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil || sum.Choices[0].Message.Content != choice.Message.Content || sum.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Errorf("%v: the stream says %q, the whole %q", err, sum.Choices[0].Message.Content, choice.Message.Content)
	}
}

func TestOpenAITools(t *testing.T) {
	c := client()
	ctx, p := ask(t)
	p.MaxCompletionTokens = openai.Int(120)
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "add", Parameters: shared.FunctionParameters{
			"type": "object", "required": []string{"a", "b"}, "additionalProperties": false,
			"properties": map[string]any{"a": map[string]any{"type": "integer", "maximum": 99, "minimum": 0}, "b": map[string]any{"enum": []int{1, 2}}},
		},
	})}
	p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
	a, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	calls := a.Choices[0].Message.ToolCalls
	if len(calls) == 0 || calls[0].Function.Name != "add" || a.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%s", a.RawJSON())
	}
	var args struct{ A, B *int }
	if err := json.Unmarshal([]byte(calls[0].Function.Arguments), &args); err != nil || args.A == nil || *args.A > 99 || args.B == nil {
		t.Errorf("%q: %v", calls[0].Function.Arguments, err)
	}
	p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{}
	p.Messages = append(p.Messages, a.Choices[0].Message.ToParam(), openai.ToolMessage("3", calls[0].ID))
	if _, err := c.Chat.Completions.New(ctx, p); err != nil {
		t.Errorf("with the tool's answer: %v", err)
	}
}

func TestOpenAIStructured(t *testing.T) {
	c := client()
	ctx, p := ask(t)
	p.MaxCompletionTokens = openai.Int(100)
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "pet", Strict: openai.Bool(true), Schema: map[string]any{
			"type": "object", "required": []string{"kind", "age"}, "additionalProperties": false,
			"properties": map[string]any{"kind": map[string]any{"enum": []string{"cat", "dog"}}, "age": map[string]any{"type": "integer", "minimum": 1, "maximum": 30}},
		}},
	}}
	a, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	var pet struct {
		Kind string
		Age  int
	}
	if err := json.Unmarshal([]byte(a.Choices[0].Message.Content), &pet); err != nil || pet.Kind != "cat" && pet.Kind != "dog" || pet.Age < 1 || pet.Age > 30 {
		t.Errorf("%q: %v", a.Choices[0].Message.Content, err)
	}
}

func TestOpenAIOthers(t *testing.T) {
	c := client()
	ctx, _ := ask(t)
	if list, err := c.Models.List(ctx); err != nil || len(list.Data) != 1 || list.Data[0].ID != model {
		t.Errorf("models: %v, %v", list, err)
	}
	text, err := c.Completions.New(ctx, openai.CompletionNewParams{Model: model, Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once")},
		MaxTokens: openai.Int(4), Echo: openai.Bool(true)})
	if err != nil || !strings.HasPrefix(text.Choices[0].Text, "Once") {
		t.Errorf("completion: %v, %v", text, err)
	}
	e, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}})
	if err != nil || len(e.Data) != 2 || len(e.Data[1].Embedding) == 0 {
		t.Errorf("embeddings: %v", err)
	}
	_, err = c.Models.Get(ctx, "none")
	var failed *openai.Error
	if !errors.As(err, &failed) || failed.StatusCode != 404 || failed.Code != "model_not_found" {
		t.Errorf("an unknown model: %v", err)
	}
}

func TestOpenAIResponses(t *testing.T) {
	c := client()
	ctx, _ := ask(t)
	p := responses.ResponseNewParams{Model: model, MaxOutputTokens: openai.Int(16), Temperature: openai.Float(0),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Once upon a time")}}
	whole, err := c.Responses.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	stream := c.Responses.NewStreaming(ctx, p)
	text, last := "", ""
	for stream.Next() {
		e := stream.Current()
		if last = e.Type; e.Type == "response.output_text.delta" {
			text += e.Delta
		}
	}
	if err := stream.Err(); err != nil || text != whole.OutputText() || last != "response.completed" && last != "response.incomplete" {
		t.Errorf("%v: %q, want %q; the last event is %s", err, text, whole.OutputText(), last)
	}
	next, err := c.Responses.New(ctx, responses.ResponseNewParams{Model: model, MaxOutputTokens: openai.Int(16), PreviousResponseID: openai.String(whole.ID),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Go on.")}})
	if err != nil || next.Usage.InputTokens <= whole.Usage.InputTokens {
		t.Errorf("the response after it: %v", err)
	}
	if again, err := c.Responses.Get(ctx, whole.ID, responses.ResponseGetParams{}); err != nil || again.OutputText() != whole.OutputText() {
		t.Errorf("the stored response: %v", err)
	}
}

func messages(t *testing.T) (context.Context, anthropic.Client, anthropic.MessageNewParams) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx, anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0)), anthropic.MessageNewParams{
		Model: model, MaxTokens: 12, Temperature: anthropic.Float(0), Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Once upon a time"))},
	}
}

func TestAnthropic(t *testing.T) {
	ctx, c, p := messages(t)
	whole, err := c.Messages.New(ctx, p)
	if err != nil || len(whole.Content) != 1 || whole.StopReason != "max_tokens" || whole.Usage.OutputTokens != 12 {
		t.Fatalf("%v: %v", whole, err)
	}
	stream := c.Messages.NewStreaming(ctx, p)
	sum := anthropic.Message{}
	for stream.Next() {
		if err := sum.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil || sum.Content[0].Text != whole.Content[0].Text || sum.StopReason != whole.StopReason {
		t.Errorf("%v: %q, want %q", err, sum.Content[0].Text, whole.Content[0].Text)
	}
	count, err := c.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: p.Model, Messages: p.Messages})
	if err != nil || count.InputTokens != whole.Usage.InputTokens {
		t.Errorf("%v tokens: %v", count, err)
	}
	p.Model = "none"
	_, err = c.Messages.New(ctx, p)
	var failed *anthropic.Error
	if !errors.As(err, &failed) || failed.StatusCode != 404 {
		t.Errorf("an unknown model: %v", err)
	}
}

func TestAnthropicTools(t *testing.T) {
	ctx, c, p := messages(t)
	p.MaxTokens = 120
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "look", InputSchema: anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"city": map[string]any{"enum": []string{"Rome", "Oslo"}}}, Required: []string{"city"},
		ExtraFields: map[string]any{"additionalProperties": false},
	}}}}
	p.ToolChoice = anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
	a, err := c.Messages.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	var use anthropic.ToolUseBlock
	for _, b := range a.Content {
		if b.Type == "tool_use" {
			use = b.AsToolUse()
		}
	}
	var in struct{ City string }
	if err := json.Unmarshal(use.Input, &in); err != nil || in.City != "Rome" && in.City != "Oslo" || a.StopReason != "tool_use" {
		t.Fatalf("%s: %v", a.RawJSON(), err)
	}
	p.ToolChoice = anthropic.ToolChoiceUnionParam{}
	p.Messages = append(p.Messages, a.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(use.ID, "sunny", false)))
	if _, err := c.Messages.New(ctx, p); err != nil {
		t.Errorf("with the tool's answer: %v", err)
	}
}
