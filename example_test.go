package spillway_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/spillway/spillway"
)

// greedy takes the likeliest token each time. The embedded model draws at temperature 0.7 otherwise.
var greedy = &spillway.Sampling{}

// A runtime owns the memory; a model that is opened in it answers requests. The embedded model is
// part of the program, so that nothing has to be fetched.
func Example() {
	ctx := context.Background()
	rt, err := spillway.New(spillway.Options{Memory: 1 << 30})
	if err != nil {
		log.Fatal(err)
	}
	m, err := rt.OpenEmbedded(ctx, spillway.ModelOptions{})
	if err != nil {
		log.Fatal(err)
	}

	// The text is shown as it comes.
	show := func(text string) { fmt.Print(text) }
	answer, err := m.Generate(ctx, spillway.Request{Prompt: "Tell me a very short story about a cat.", Sampling: greedy}, show)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n%d tokens, %s\n", len(answer.IDs), answer.FinishReason)

	if err := errors.Join(m.Close(), rt.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// There was a playful cat. The cat was clever. One day, the cat met a writer. "Hello, cat," said the writer. "Hello, writer," said the cat.
	// 48 tokens, stop
}

// A conversation keeps the cache between requests, so that each turn computes only what is new.
func ExampleConversation() {
	ctx := context.Background()
	rt, err := spillway.New(spillway.Options{Memory: 1 << 30})
	if err != nil {
		log.Fatal(err)
	}
	m, err := rt.OpenEmbedded(ctx, spillway.ModelOptions{})
	if err != nil {
		log.Fatal(err)
	}
	talk := m.NewConversation()

	var messages []spillway.Message
	for _, question := range []string{"Tell me a very short story about a cat named Mia.", "What was the name of the cat?"} {
		messages = append(messages, spillway.Message{Role: "user", Content: question})
		answer, err := m.Generate(ctx, spillway.Request{Messages: messages, Sampling: greedy, Conversation: talk}, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.Text)
		fmt.Printf("(%d of %d prompt tokens were in the cache)\n", answer.CachedTokens, len(answer.PromptIDs))
		messages = append(messages, spillway.Message{Role: "assistant", Content: answer.Text})
	}

	if err := errors.Join(talk.Close(), m.Close(), rt.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// There was a dreamy cat named Mia. Mia was brave. One day, Mia met Rufus the witch. "Hello, Mia," said Rufus. "Hello, Rufus," said Mia. Mia and Rufus were happy.
	// (0 of 23 prompt tokens were in the cache)
	// The name of the cat was Mia.
	// (69 of 90 prompt tokens were in the cache)
}

// Too little memory is refused before anything is read, with the amount that would do.
func ExampleTooSmallError() {
	rt, err := spillway.New(spillway.Options{Memory: 2 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	_, err = rt.OpenEmbedded(context.Background(), spillway.ModelOptions{Context: 256})
	var small *spillway.TooSmallError
	if errors.As(err, &small) {
		fmt.Println("refused:", small.Budget>>20, "MiB are too little")
		fmt.Println("the least is more than that:", small.Least > small.Budget)
	}
	// Output:
	// refused: 2 MiB are too little
	// the least is more than that: true
}
