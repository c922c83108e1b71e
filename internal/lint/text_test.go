package lint

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileBytes = 1 << 20
	maxDataBytes = 10 << 20 // in all, source apart
	// maxEmbeddedBytes bounds the one exception: the model that is part of the program.
	maxEmbeddedBytes = 4 << 20
)

// embeddedModel matches the path of the model that the binary carries.
var embeddedModel = regexp.MustCompile(`(^|/)storyteller[^/]*\.gguf$`)

// isSource reports whether a file is written to be read, or generated from such a file, not data.
func isSource(name string) bool { return slices.Contains([]string{".go", ".s", ".md"}, path.Ext(name)) }

// sizeFindings judges sizes by path.
func sizeFindings(sizes map[string]int64) []finding {
	var out []finding
	var total int64
	for name, n := range sizes {
		if !isSource(name) {
			total += n
		}
		limit := int64(maxFileBytes)
		if embeddedModel.MatchString(name) {
			limit = maxEmbeddedBytes
		}
		if n > limit {
			out = append(out, finding{name, fmt.Sprintf("%d bytes in the repository, more than %d", n, limit)})
		}
	}
	if total > maxDataBytes {
		out = append(out, finding{".", fmt.Sprintf("%d bytes of data in the repository in all, more than %d", total, maxDataBytes)})
	}
	return out
}

func TestSizes(t *testing.T) {
	root, files := repoFiles(t)
	sizes := map[string]int64{}
	for _, name := range files {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = info.Size()
	}
	report(t, sizeFindings(sizes))
}

func TestSizesSelf(t *testing.T) {
	wantFindings(t, sizeFindings(map[string]int64{"a/storyteller-q8_0.gguf": 4 << 20, "b": 1 << 20}))
	wantFindings(t, sizeFindings(map[string]int64{"testdata/x.gguf": 1<<20 + 1}), "testdata/x.gguf")
	many := map[string]int64{}
	for i := range 11 {
		many[fmt.Sprint(i)] = 1 << 20
	}
	wantFindings(t, sizeFindings(many), "in all")
}

// hosts are the hosts of package registries, put together here so that this file names none.
var hosts = []string{
	"proxy." + "golang.org", "sum." + "golang.org", "py" + "pi.org", "files.python" + "hosted.org",
	"registry." + "npmjs.org", "index." + "crates.io", "static." + "crates.io", "deb." + "debian.org",
	"repo." + "maven.apache.org", "repo1." + "maven.org",
}

// machinePaths match folders of the machine on which somebody works.
var machinePaths = regexp.MustCompile(`(^|[^\w./-])/(wo` + `rk|ro` + `ot)/`)

// localNames are what this very machine would leave in a text: its home, where the repository
// lies, the host of its module proxy.
func localNames(root string) []string {
	var out []string
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		out = append(out, strings.TrimSuffix(home, "/")+"/")
	}
	if parent := filepath.Dir(root); filepath.Dir(parent) != parent {
		out = append(out, root+"/")
	}
	if text, err := exec.Command("go", "env", "GOPROXY").Output(); err == nil {
		for entry := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == ',' || r == '|' || r == '\n' }) {
			if u, err := url.Parse(entry); err == nil && u.Hostname() != "" {
				out = append(out, u.Hostname())
			}
		}
	}
	return out
}

// textFindings judges the words of one text.
func textFindings(name, text string, local []string) []finding {
	var out []finding
	for i, line := range strings.Split(text, "\n") {
		bad := func(what string) { out = append(out, finding{fmt.Sprintf("%s:%d", name, i+1), what}) }
		if machinePaths.MatchString(line) {
			bad("names a path of one machine")
		}
		for _, host := range hosts {
			if strings.Contains(line, host) {
				bad("names the host of a registry")
			}
		}
		for _, word := range local {
			if strings.Contains(line, word) {
				bad(fmt.Sprintf("names %q, which is of this machine", word))
			}
		}
	}
	return out
}

// readText returns a file's text, or false for binary data.
func readText(t *testing.T, path string) (string, bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0
}

func TestTexts(t *testing.T) {
	root, files := repoFiles(t)
	local := localNames(root)
	for _, name := range files {
		if text, ok := readText(t, filepath.Join(root, name)); ok {
			report(t, textFindings(name, text, local))
		}
	}
}

func TestTextsSelf(t *testing.T) {
	home := "/ro" + "ot/go"
	wantFindings(t, textFindings("a", "cd "+home+"\nsee /sys/fs/cgroup"+home+"\nhttps://proxy."+"golang.org/x\nat /ho"+"me/me/x", []string{"/ho" + "me/me/"}),
		"a:1: names a path", "a:3: names the host", "a:4: names \"/home/me/\"")
}

// unfinished matches the marks of work that was left.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|\bunimple` + `mented\b|\bnot imple` + `mented\b`)

func unfinishedFindings(name, text string) []finding {
	var out []finding
	for i, line := range strings.Split(text, "\n") {
		if m := unfinished.FindString(line); m != "" {
			out = append(out, finding{fmt.Sprintf("%s:%d", name, i+1), "says " + m})
		}
	}
	return out
}

func TestNothingIsLeftUnfinished(t *testing.T) {
	root, files := repoFiles(t)
	kinds := []string{".go", ".s", ".sh", ".md", ".yml", ".yaml"}
	for _, name := range files {
		if (slices.Contains(kinds, filepath.Ext(name)) || strings.HasPrefix(name, ".ci/")) && !strings.Contains(name, "testdata/") {
			text, _ := readText(t, filepath.Join(root, name))
			report(t, unfinishedFindings(name, text))
		}
	}
}

func TestUnfinishedSelf(t *testing.T) {
	wantFindings(t, unfinishedFindings("a.go", "// TO"+"DO: later\nok\npanic(\"not imple"+"mented\")"), "a.go:1", "a.go:3")
}

// generatedName matches files that a program writes: the assembly, its declarations, tables.
var generatedName = regexp.MustCompile(`(_amd64\.s|_arm64\.s|(^|/)zz_[^/]*\.go|_gen\.go|_generated\.go|_stubs?(_\w+)?\.go|_tables?_gen\.go)$`)

// generatedHeader is the line by which tools know generated files.
var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func generatedFindings(name, text string) []finding {
	if generatedName.MatchString(name) && !strings.HasSuffix(name, "_test.go") && !generatedHeader.MatchString(text) {
		return []finding{{name, "looks generated, and has no line \"// Code generated … DO NOT EDIT.\""}}
	}
	return nil
}

func TestGeneratedFilesSaySo(t *testing.T) {
	root, files := repoFiles(t)
	for _, name := range files {
		if generatedName.MatchString(name) {
			text, _ := readText(t, filepath.Join(root, name))
			report(t, generatedFindings(name, text))
		}
	}
}

func TestGeneratedSelf(t *testing.T) {
	wantFindings(t, generatedFindings("internal/kernel/dot_amd64.s", "TEXT ·f(SB), 4, $0\n"), "looks generated")
	wantFindings(t, generatedFindings("internal/kernel/zz_test.go", "package kernel\n"))
	wantFindings(t, generatedFindings("internal/kernel/dot_amd64.s", "// Code generated by command: go run . DO NOT EDIT.\n\nTEXT ·f(SB), 4, $0\n"))
}
