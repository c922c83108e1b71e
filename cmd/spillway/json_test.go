package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// keys lists the paths of a JSON object's keys, in the order of the text.
func keys(t *testing.T, text string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var out []string
	var walk func(prefix string)
	walk = func(prefix string) {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		switch token {
		case json.Delim('['):
			for d.More() {
				walk(prefix + "[]")
			}
			d.Token()
		case json.Delim('{'):
			for d.More() {
				key, _ := d.Token()
				path := strings.TrimPrefix(prefix+"."+key.(string), ".")
				if !slices.Contains(out, path) {
					out = append(out, path)
				}
				walk(path)
			}
			d.Token()
		}
	}
	walk("")
	return out
}

// The keys are what scripts parse: they stay.
func TestJSONKeys(t *testing.T) {
	for command, want := range map[string]string{
		"run --json --max-tokens 2 --memory 128MiB hello": "text prompt_ids ids finish_reason " +
			"model model.name model.family model.parameters model.weight_bytes model.source model.chat_template " +
			"memory memory.budget memory.ledger_peak memory.rss_peak memory.cgroup_peak memory.least " +
			"speed speed.load_seconds speed.prefill_tokens speed.prefill_seconds speed.decode_tokens speed.decode_seconds " +
			"io io.required_bytes io.read_bytes io.hit_bytes io.drive_bytes_per_second " +
			"cache cache.type cache.lossy " +
			"roofline roofline.limit roofline.fraction roofline.drive_fraction roofline.policy_fraction",
		"plan --json --memory 128MiB storyteller": "budget least resident pools pools.weights pools.kv pools.activation pools.staging pools.runtime " +
			"cache cache.type cache.lossy pinned_bytes streamed_bytes_per_sweep predicted predicted.decode_tokens_per_second predicted.prefill_tokens_per_second predicted.limit",
		"bench --json -p 4 -n 2 -r 1 --memory 128MiB storyteller": "rows rows[].test rows[].batch rows[].depth " +
			"rows[].tokens_per_second rows[].tokens_per_second.median rows[].tokens_per_second.min rows[].tokens_per_second.max " +
			"rows[].roofline rows[].roofline.limit rows[].roofline.fraction rows[].roofline.drive_fraction rows[].roofline.policy_fraction " +
			"rows[].io rows[].io.required_bytes rows[].io.read_bytes rows[].io.hit_bytes cache cache.type cache.lossy " +
			"limits limits.threads limits.isa limits.drive_bytes_per_second limits.memory_bytes_per_second " +
			"limits.float_operations_per_second limits.integer_operations_per_second",
		"verify --json storyteller": "files files[].path files[].size files[].sha256 tensors tensors[].name tensors[].type tensors[].bytes tensors[].sha256",
		"version --json":            "version revision modified go platform",
	} {
		s, out := testSession(t, nil)
		if code := s.main(strings.Fields(command)); code != exitFine {
			t.Errorf("%s: exit code %d: %s", command, code, out)
			continue
		}
		if got := strings.Join(keys(t, out.String()), " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", command, got, want)
		}
		if strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: not one line: %s", command, out)
		}
	}
}

func TestExitCodes(t *testing.T) {
	bad := writeFile(t, t.TempDir()+"/bad.gguf", "GGUF but no more")
	empty := writeFile(t, t.TempDir()+"/empty", "")
	for command, want := range map[string]int{
		"version":                          exitFine,
		"--help":                           exitFine,
		"run --help":                       exitFine,
		"version --nothing":                exitUsage,
		"run --top-p 2 hello":              exitUsage,
		"run hello --max-tokens 0":         exitUsage,
		"run hello --context 0":            exitUsage,
		"run hello --context 1":            exitUsage,
		"plan storyteller --context 0":     exitUsage,
		"plan storyteller --threads 20000": exitUsage,
		"synth toy --type f16 --out /none/there --layers 0":   exitUsage,
		"synth toy --type f16 --out /none/there --context 0":  exitUsage,
		"bench storyteller -p 9223372036854775807":            exitUsage,
		"bench storyteller -n 99999999":                       exitUsage,
		"bench storyteller -d 99999999":                       exitUsage,
		"probe storyteller --ids 1 --greedy 99999999 --out x": exitUsage,
		"probe storyteller --ids 1,,2 --out x":                exitUsage,
		"probe storyteller --ids 1 --prompt x --out x":        exitUsage,
		"plan storyteller --kv q4_0":                          exitUsage,
		"plan storyteller --kv f16 --exact":                   exitUsage,
		"plan storyteller --kv f32 --exact":                   exitFine,
		"inspect storyteller --kv f32":                        exitUsage,
		"run --prompt-file " + empty:                          exitUsage,
		"run --memory 1KiB hello":                             exitMemory,
		"plan storyteller --memory 1k":                        exitMemory,
		"verify " + bad:                                       exitFile,
		"run " + bad + " hello":                               exitFile,
		"inspect " + t.TempDir():                              exitFile,
		"run --prompt-file /none/there":                       exitFailed,
		"inspect no/such":                                     exitFailed,
		"version --config /none/there":                        exitFailed,
		"run hi --chat-template none.jinja":                   exitFailed,
		"run hi --chat-template none":                         exitUsage,
		"run hi --max-tokens -1":                              exitUsage,
		"run hi --regex (":                                    exitUsage,
		"run hi --regex (?<=a)b":                              exitFile,
		`run hi --regex (a)\1`:                                exitFile,
		"plan storyteller --memory 64":                        exitUsage,
		"plan storyteller --memory 64B":                       exitMemory,
		"run hi --max-tokens 99999999":                        exitUsage,
		"plan storyteller --context 99999999":                 exitUsage,
		"plan storyteller --threads 0":                        exitUsage,
		"probe storyteller --ids-file /none/there --out x":    exitFailed,
	} {
		s, out := testSession(t, nil)
		if got := s.main(strings.Fields(command)); got != want {
			t.Errorf("%s: exit code %d, want %d: %s", command, got, want, out)
		}
		if want != exitFine && strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: not one line: %q", command, out)
		}
	}
}

// Every command has a help text with an example.
func TestHelp(t *testing.T) {
	for _, name := range []string{"run", "chat", "plan", "inspect", "verify", "probe", "bench", "render", "synth", "version"} {
		s, out := testSession(t, nil)
		if code := s.main([]string{name, "--help"}); code != exitFine || !strings.Contains(out.String(), "spillway "+name) ||
			!strings.Contains(out.String(), "Example") {
			t.Errorf("%s --help: exit code %d: %s", name, code, out)
		}
	}
}

// A cache that rounds more than f16 is named in the report, and no other.
func TestLossyCacheIsNamed(t *testing.T) {
	for kv, lossy := range map[string]bool{"f32": false, "f16": false, "bf16": true, "fp8": true} {
		for args, want := range map[string]string{
			"--json": fmt.Sprintf(`"cache":{"type":"%s","lossy":%t}`, kv, lossy),
			"":       "the key-value cache is lossy: " + kv,
		} {
			s, out := testSession(t, nil)
			if code := s.main(strings.Fields("run --max-tokens 2 --memory 128MiB hello --kv " + kv + " " + args)); code != exitFine {
				t.Fatalf("%s: exit code %d: %s", kv, code, out)
			}
			if strings.Contains(out.String(), want) != (lossy || args == "--json") {
				t.Errorf("%s %s: %s", kv, args, out)
			}
		}
	}
}
