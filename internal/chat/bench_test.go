package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// BenchmarkRender renders a conversation of 40 turns with a real template.
func BenchmarkRender(b *testing.B) {
	for _, name := range []string{"Qwen-Qwen3-0.6B", "meta-llama-Llama-3.1-8B-Instruct"} {
		b.Run(name, func(b *testing.B) {
			source, err := os.ReadFile(filepath.Join(testutil.Shared(b, "chat"), "templates", name+".jinja"))
			if err != nil {
				b.Skip(err)
			}
			tmpl := newTemplate(name, string(source))
			var in Input
			for range 20 {
				in.Messages = append(in.Messages, Text("user", strings.Repeat("What is this? ", 20)), Text("assistant", strings.Repeat("It is that. ", 100)))
			}
			in.AddGenerationPrompt = true
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tmpl.Render(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
