// Package spillway runs large language models inside a memory budget that the operating system
// confirms. Weights, key-value cache and scratch space are leased from one ledger; what does not fit
// is streamed from the drive. The same request gives the same bits at every budget, thread count and
// batch.
//
//	rt, err := spillway.New(spillway.Options{Memory: 4 << 30})
//	m, err := rt.Open(ctx, "model.gguf", spillway.ModelOptions{Context: 4096})
//	answer, err := m.Generate(ctx, spillway.Request{Prompt: "Why is the sky blue?"}, func(text string) { fmt.Print(text) })
//
// A Runtime owns the budget and the compute threads; several models share it. Open reads a model's
// description (Load), plans and leases the memory (Start), and refuses with a *TooSmallError what
// does not fit. Generate may be called from many goroutines: up to ModelOptions.Sequences requests
// share passes over the weights, the others wait. What is opened must be closed, in the reverse
// order: conversations, models, checkpoints, the runtime.
//
// A small model is part of the package, so that OpenEmbedded works on a fresh machine.
package spillway
