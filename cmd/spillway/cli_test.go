package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spillway/spillway"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"spillway": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: filepath.Join("testdata", "script")})
}

// testSession returns a session with an environment of its own; what it prints goes to out.
func testSession(t *testing.T, env map[string]string) (s *session, out *bytes.Buffer) {
	t.Helper()
	out = &bytes.Buffer{}
	return &session{ctx: t.Context(), stdin: os.Stdin, stdout: out, stderr: out, getenv: func(key string) (string, bool) {
		v, ok := env[key]
		return v, ok
	}}, out
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Flag beats environment beats file beats default.
func TestPrecedence(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), "memory: 1GiB\ncontext: 7\nexact: true\n")
	plain := globals{Memory: "auto"}
	for _, c := range []struct {
		name string
		env  map[string]string
		args string
		want globals
	}{
		{"defaults", nil, "plan m", plain},
		{"file", nil, "plan m --config " + file, globals{Memory: "1GiB", Context: 7, Exact: true, Config: file}},
		{"file by environment", map[string]string{"SPILLWAY_CONFIG": file}, "plan m", globals{Memory: "1GiB", Context: 7, Exact: true}},
		{"environment", map[string]string{"SPILLWAY_MEMORY": "2GiB", "SPILLWAY_JSON": "true", "SPILLWAY_THREADS": "3"}, "plan m",
			globals{Memory: "2GiB", JSON: true, Threads: 3}},
		{"environment beats file", map[string]string{"SPILLWAY_MEMORY": "2GiB", "SPILLWAY_EXACT": "false"}, "plan m --config=" + file,
			globals{Memory: "2GiB", Context: 7, Config: file}},
		{"flag beats both", map[string]string{"SPILLWAY_MEMORY": "2GiB"}, "plan m --memory 3GiB --context=9 --config " + file,
			globals{Memory: "3GiB", Context: 9, Exact: true, Config: file}},
		{"before the command", nil, "-q --memory 3GiB plan m", globals{Memory: "3GiB", Quiet: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := testSession(t, c.env)
			p, err := s.parse(strings.Fields(c.args))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, p.flags); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWrongSettings(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		want string
	}{
		"unknown key":      {"memory: 1GiB\nmemroy: 2GiB\n", nil, `unknown key "memroy"; there are memory, context`},
		"wrong type":       {"context: many\n", nil, "--context: "},
		"list":             {"threads: [1]\n", nil, "threads needs a value"},
		"twice":            {"threads: 1\nthreads: 2\n", nil, "threads"},
		"not YAML":         {"memory: [\n", nil, "configuration file"},
		"wrong in context": {"context: -4\n", nil, "--context is -4"},
		"environment":      {"", map[string]string{"SPILLWAY_THREADS": "two"}, "--threads"},
		"exclusive":        {"quiet: true\nverbose: true\n", nil, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := testSession(t, c.env)
			args := []string{"version", "--config", writeFile(t, filepath.Join(dir, name+".yaml"), c.file)}
			if code := s.main(args); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if got := out.String(); !strings.Contains(got, c.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("printed %q, want one line with %q", got, c.want)
			}
		})
	}
}

// A key of the environment that would be ignored is an error, with the nearest one that is not.
func TestUnknownEnvironment(t *testing.T) {
	for entry, want := range map[string]string{
		"SPILLWAY_MEMROY=1GiB": "did you mean SPILLWAY_MEMORY?", "SPILLWAY_THREAD=1": "did you mean SPILLWAY_THREADS?",
		"SPILLWAY_CPU=avx2": "", "SPILLWAY_QUIET=1": "", "MEMROY=1": "",
	} {
		s, out := testSession(t, nil)
		s.environ = func() []string { return []string{"PATH=/", entry} }
		code := s.main([]string{"version"})
		if wrong := want != ""; wrong != (code == exitUsage) || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d: %s", entry, code, out)
		}
	}
}

// Threads beyond reason are refused before the operating system does it.
func TestMostThreads(t *testing.T) {
	most := spillway.MaxThreads()
	if rt, err := spillway.New(spillway.Options{Memory: 64 << 20, Threads: most + 1}); err == nil {
		t.Errorf("%d threads: %v", most+1, rt.Close())
	}
	if err := (globals{Threads: most}).check(); err != nil {
		t.Error(err)
	}
	if err := (globals{Threads: most + 1}).check(); exitCode(err) != exitUsage {
		t.Error(err)
	}
}

// An empty name is no model, with a prompt behind it.
func TestEmptyModel(t *testing.T) {
	s, out := testSession(t, nil)
	if code := s.main([]string{"run", "", "hi"}); code != exitUsage || !strings.Contains(out.String(), "the model's name is empty") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	in := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	writeFile(t, in("a.gguf"), "x")
	writeFile(t, in("hf", "config.json"), "{}")
	writeFile(t, in("hf", "model.safetensors"), "x")
	writeFile(t, in("both", "model.safetensors"), "x")
	writeFile(t, in("both", "m.gguf"), "x")
	writeFile(t, in("upper", "M.GGUF"), "x")
	writeFile(t, in("weightless", "config.json"), "{}")
	writeFile(t, in("one", "m.gguf"), "x")
	writeFile(t, in("one", "mmproj-m.gguf"), "x")
	writeFile(t, in("shards", "m-00001-of-00002.gguf"), "x")
	writeFile(t, in("shards", "m-00002-of-00002.gguf"), "x")
	writeFile(t, in("two", "m.gguf"), "x")
	writeFile(t, in("two", "n.gguf"), "x")
	writeFile(t, in("none", "readme"), "x")
	repo := filepath.Join(home, ".cache", "huggingface", "hub", "models--org--cached")
	writeFile(t, filepath.Join(repo, "refs", "main"), "abc\n")
	writeFile(t, filepath.Join(repo, "snapshots", "abc", "model.safetensors"), "x")
	writeFile(t, filepath.Join(home, ".lmstudio", "models", "org", "studio", "m.gguf"), "x")
	writeFile(t, filepath.Join(home, ".ollama", "models", "manifests", "registry.ollama.ai", "library", "tiny", "latest"),
		`{"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:0"},`+
			`{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:12"}]}`)
	writeFile(t, filepath.Join(home, ".ollama", "models", "blobs", "sha256-12"), "x")
	s, _ := testSession(t, map[string]string{"HOME": home})
	for name, want := range map[string]string{
		in("a.gguf"):  in("a.gguf"),
		in("hf"):      in("hf"),
		in("both"):    in("both"),
		in("upper"):   in("upper", "M.GGUF"),
		in("one"):     in("one", "m.gguf"),
		in("shards"):  in("shards", "m-00001-of-00002.gguf"),
		"org/cached":  filepath.Join(repo, "snapshots", "abc"),
		"org/studio":  filepath.Join(home, ".lmstudio", "models", "org", "studio", "m.gguf"),
		"tiny":        filepath.Join(home, ".ollama", "models", "blobs", "sha256-12"),
		"tiny:latest": filepath.Join(home, ".ollama", "models", "blobs", "sha256-12"),
		"Storyteller": "",
	} {
		got, err := s.resolve(name)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		in("two"):                "the folder holds several models: m.gguf, n.gguf",
		in("weightless"):         "no model in this folder",
		in("none"):               "no model in this folder",
		in("missing.gguf"):       "names no model|is neither a file",
		"org/unknown":            "is neither a file",
		"../../etc/x":            "is neither a file",
		"tiny:other":             "is neither a file",
		"a/../b":                 "is neither a file",
		"tell me a story":        "is neither a file",
		"nul\x00byte":            "is neither a file",
		strings.Repeat("a", 999): "is neither a file",
	} {
		_, err := s.resolve(name)
		if err == nil || !strings.Contains(err.Error(), want[strings.LastIndex(want, "|")+1:]) {
			t.Errorf("%.40q: error %v, want %q", name, err, want)
		}
	}
}

func TestLooksLikePath(t *testing.T) {
	for s, want := range map[string]bool{
		"model.gguf": true, "a b.GGUF": true, "/x y": true, "./m": true, `c:\m`: true, "org/name": true, "~/m": true,
		"Explain TCP/IP": false, "hello": false, "what is 1/2 + 1/3?": false, "": false,
	} {
		if got := looksLikePath(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
