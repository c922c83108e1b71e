package spillway

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A model that is closed while it answers ends the answer, and frees nothing that the call still uses.
func TestCloseWhileAnswering(t *testing.T) {
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	m, err := rt.OpenEmbedded(context.Background(), ModelOptions{Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	closed := make(chan error, 1)
	go func() {
		<-started
		closed <- m.Close()
	}()
	first := true
	_, err = m.Generate(context.Background(), Request{Prompt: "Tell me a story", Sampling: &Sampling{}, IgnoreEnd: true, MaxTokens: 400}, func(string) {
		if first {
			first = false
			close(started)
		}
		time.Sleep(2 * time.Millisecond)
	})
	if !errors.Is(err, ErrClosed) {
		t.Errorf("the answer ended with %v, expected ErrClosed", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("closing: %v", err)
	}
	if _, err := m.Generate(context.Background(), Request{Prompt: "again"}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a request after the close: %v", err)
	}
	if _, err := m.Tokens(Request{Prompt: "again"}); !errors.Is(err, ErrClosed) {
		t.Errorf("tokens after the close: %v", err)
	}
}

// A conversation has one request at a time; a second one is refused and harms nothing.
func TestConversationInUse(t *testing.T) {
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	m, err := rt.OpenEmbedded(context.Background(), ModelOptions{Context: 512, Sequences: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := m.NewConversation()
	r := Request{Prompt: "Tell me a story", Sampling: &Sampling{}, MaxTokens: 20, Conversation: c}
	var second, closing error
	if _, err := m.Generate(context.Background(), r, func(string) {
		if second == nil {
			_, second = m.Generate(context.Background(), r, nil)
			closing = c.Close()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if second == nil || closing == nil {
		t.Errorf("a second request gave %v, closing meanwhile %v; both must be refused", second, closing)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// The operating system counts no more than the ledger.
func TestNoDrift(t *testing.T) {
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	if _, ok := rt.Drift(); ok {
		t.Error("there is a drift without a model")
	}
	m, err := rt.OpenEmbedded(context.Background(), ModelOptions{Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 3 {
		if _, err := m.Generate(context.Background(), Request{Prompt: "Tell me a story", Sampling: &Sampling{}}, nil); err != nil {
			t.Fatal(err)
		}
		drift, ok := rt.Drift()
		if !ok {
			t.Skip("skipped: the operating system does not count the process's memory")
		}
		if drift > 0 {
			t.Errorf("%d bytes are outside the ledger of %d", drift, rt.Ledger().Used)
		}
	}
}

// What ends an answer is not decided by the context that was planned for.
func TestContextRefusesAndDoesNotCut(t *testing.T) {
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	m, err := rt.OpenEmbedded(context.Background(), ModelOptions{Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var long *TooLongError
	if _, err := m.Generate(context.Background(), Request{Prompt: "Tell me a story"}, nil); !errors.As(err, &long) {
		t.Errorf("300 tokens in a context of 64: %v", err)
	}
}

func TestNoTextFromAnEmbeddingModel(t *testing.T) {
	m := openTest(t, embeddingModel(t), ModelOptions{Context: 32})
	if _, err := m.Generate(context.Background(), Request{IDs: []int32{1}}, nil); err == nil {
		t.Error("an embedding model answered with text")
	}
}

func embeddingModel(t *testing.T) string { return oracleCase(t, "qwen3-embedding") }
