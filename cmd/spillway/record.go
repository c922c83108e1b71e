package main

// traceRecord is a run whose purpose is its trace.
type traceRecord struct {
	Model  string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name, of a mixture of experts."`
	Prompt string `arg:"" optional:"" help:"The prompt; - or a pipe gives it on stdin."`

	Out        string `required:"" help:"File to write." placeholder:"FILE" type:"path"`
	System     string `help:"System message." placeholder:"TEXT"`
	Raw        bool   `help:"The prompt is the whole text: no chat template."`
	PromptFile string `help:"Read the prompt from a file." placeholder:"FILE" type:"path"`
	samplingFlags
}

func (*traceRecord) Help() string {
	return "The answer goes to stdout and the report to stderr, as with run, which does the same with --trace FILE. The trace does not depend on " +
		"--memory, --policy or --threads.\n\nExample:\n\n  spillway trace record olmoe.gguf \"Why is the sky blue?\" --max-tokens 500 --out sky.trace"
}

func (c *traceRecord) run(s *session) error {
	r := runCommand{
		Model: c.Model, Prompt: c.Prompt, System: c.System, Raw: c.Raw, PromptFile: c.PromptFile, Trace: c.Out, samplingFlags: c.samplingFlags,
	}
	if c.Prompt == "" && c.PromptFile == "" {
		r.Prompt = "-"
		if isTerminal(s.stdin) {
			return usagef("there is no prompt; give one, or - to type it")
		}
	}
	return r.run(s)
}
