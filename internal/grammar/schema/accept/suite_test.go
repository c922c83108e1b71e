package accept

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

var update = flag.Bool("update", false, "write the table of docs/structured-output.md")

// A group is a schema of the official suite with its instances.
type group struct {
	draft, file string // file without .json, below the draft
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

type suite struct {
	groups []group
	others map[string][]byte
}

var dialects = map[string]string{
	"draft4": "http://json-schema.org/draft-04/schema#", "draft6": "http://json-schema.org/draft-06/schema#",
	"draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

func loadSuite(t testing.TB) *suite {
	t.Helper()
	z, err := zip.OpenReader("testdata/suite.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	s := &suite{others: map[string][]byte{}}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.add(f.Name, text); err != nil {
			t.Fatal(f.Name, err)
		}
	}
	return s
}

func (s *suite) add(name string, text []byte) error {
	if rest, ok := strings.CutPrefix(name, "remotes/"); ok {
		s.others["http://localhost:1234/"+rest] = text
	}
	if strings.HasPrefix(name, "metaschemas/") {
		var ids struct {
			ID  string `json:"$id"`
			ID4 string `json:"id"`
		}
		if err := json.Unmarshal(text, &ids); err != nil {
			return err
		}
		s.others[strings.TrimSuffix(ids.ID+ids.ID4, "#")] = text
	}
	rest, ok := strings.CutPrefix(name, "tests/")
	if !ok {
		return nil
	}
	draft, file, _ := strings.Cut(strings.TrimSuffix(rest, ".json"), "/")
	var groups []group
	if err := json.Unmarshal(text, &groups); err != nil {
		return err
	}
	for _, g := range groups {
		g.draft, g.file = draft, file
		g.Schema = withDialect(g.Schema, dialects[draft])
		s.groups = append(s.groups, g)
	}
	return nil
}

// withDialect names the draft in a schema that does not.
func withDialect(text json.RawMessage, dialect string) json.RawMessage {
	inner, ok := strings.CutPrefix(string(text), "{")
	if !ok || strings.Contains(inner, `"$schema"`) {
		return text
	}
	if strings.TrimSpace(inner) == "}" {
		return json.RawMessage(fmt.Sprintf(`{"$schema": %q}`, dialect))
	}
	return json.RawMessage(fmt.Sprintf(`{"$schema": %q,`, dialect) + inner)
}

// A row counts what became of the groups and instances of a file.
type row struct {
	schemas, refused, compiled       int
	valid, accepted, invalid, denied int
}

// Files whose schemas may be refused as often as they like.
var excused = []string{"not", "if-then-else", "uniqueItems", "unevaluatedItems", "unevaluatedProperties", "dynamicRef", "recursiveRef", "anchor", "vocabulary"}

func TestSuite(t *testing.T) {
	s := loadSuite(t)
	rows := map[string]*row{}
	refused, counted := 0, 0
	for _, g := range s.groups {
		if g.file == "optional/content" {
			continue // contentMediaType and contentEncoding are annotations here, as in the later drafts
		}
		r := rows[g.file]
		if r == nil {
			r = &row{}
			rows[g.file] = r
		}
		ok := s.run(t, g, r)
		if !slices.Contains(excused, path.Base(g.file)) {
			counted++
			if !ok {
				refused++
			}
		}
	}
	t.Logf("%d of %d schemas that must be enforced are refused", refused, counted)
	if refused*20 > counted {
		t.Errorf("%d of %d schemas are refused, more than 5 %%", refused, counted)
	}
	writeTable(t, rows)
}

func (s *suite) run(t *testing.T, g group, r *row) bool {
	r.schemas++
	name := g.draft + "/" + g.file + ": " + g.Description
	doc, err := schema.Parse(g.Schema, s.others)
	var p *Program
	if err == nil {
		p, err = Compile(doc, Options{IgnoreFormats: !strings.Contains(g.file, "format") || g.file == "format"})
	}
	if err != nil {
		var e *schema.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: an error of type %T: %v", name, err, err)
		}
		t.Logf("refused: %s: %v", name, err)
		r.refused++
		return false
	}
	for _, i := range g.Tests {
		err := p.Check(i.Data)
		switch {
		case i.Valid:
			r.valid++
			if err == nil {
				r.accepted++
			} else {
				t.Errorf("%s: %s: %s must be accepted: %v", name, i.Description, i.Data, err)
			}
		default:
			r.invalid++
			if err != nil {
				r.denied++
			} else {
				t.Errorf("%s: %s: %s must not be accepted, schema %s", name, i.Description, i.Data, g.Schema)
			}
		}
		checkPieces(t, name, p, i.Data, err)
	}
	if generates(g.Schema, s.others) {
		r.compiled++
	}
	return true
}

func generates(text []byte, others map[string][]byte) bool {
	_, err := schema.Compile(cfg.New(cfg.Limits{Time: time.Hour}), text, schema.Options{Others: others})
	return err == nil
}

// checkPieces feeds a text byte by byte: the answer is the same.
func checkPieces(t *testing.T, name string, p *Program, text []byte, want error) {
	t.Helper()
	c := p.New()
	var err error
	for i := range text {
		if err = c.Write(text[i : i+1]); err != nil {
			break
		}
	}
	if err == nil {
		err = c.Close()
	}
	if fmt.Sprint(err) != fmt.Sprint(want) {
		t.Errorf("%s: byte by byte: %v, at once: %v", name, err, want)
	}
}

const begin, end = "<!-- suite -->\n", "<!-- /suite -->\n"

func writeTable(t *testing.T, rows map[string]*row) {
	var b strings.Builder
	b.WriteString("| file of the suite | schemas | refused | valid, accepted | invalid, rejected | generation compiles |\n|---|---:|---:|---:|---:|---:|\n")
	for _, file := range slices.Sorted(maps.Keys(rows)) {
		r := rows[file]
		fmt.Fprintf(&b, "| %s | %d | %d | %d of %d | %d of %d | %d |\n", file, r.schemas, r.refused, r.accepted, r.valid, r.denied, r.invalid, r.compiled)
	}
	doc := filepath.Join("..", "..", "..", "..", "docs", "structured-output.md")
	text, err := os.ReadFile(doc)
	if errors.Is(err, fs.ErrNotExist) {
		t.Log(b.String())
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines %q and %q", doc, begin, end)
	}
	switch {
	case old == b.String():
	case *update:
		if err := os.WriteFile(doc, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s is not that of today; go test ./internal/grammar/schema/accept -run TestSuite -update", doc)
	}
}
