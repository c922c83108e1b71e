package schema

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// suiteGroup is a schema of the official suite with instances.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
	draft, file string
}

var suiteDrafts = map[string]*jsonschema.Draft{
	"draft4": jsonschema.Draft4, "draft6": jsonschema.Draft6, "draft7": jsonschema.Draft7,
	"draft2019-09": jsonschema.Draft2019, "draft2020-12": jsonschema.Draft2020,
}

var suiteURIs = map[string]string{
	"draft4": "http://json-schema.org/draft-04/schema#", "draft6": "http://json-schema.org/draft-06/schema#",
	"draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

// suiteRoot is the directory of the official JSON-Schema-Test-Suite, which the environment names:
// it is larger than what belongs into testdata.
func suiteRoot(t *testing.T) string {
	root := os.Getenv("JSON_SCHEMA_TEST_SUITE")
	if root == "" {
		t.Skip("skipped: JSON_SCHEMA_TEST_SUITE does not name the official suite")
	}
	return root
}

func suite(t *testing.T) []suiteGroup {
	root := filepath.Join(suiteRoot(t), "tests")
	var out []suiteGroup
	for draft := range suiteDrafts {
		err := filepath.WalkDir(filepath.Join(root, draft), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var groups []suiteGroup
			if err := json.Unmarshal(text, &groups); err != nil {
				return err
			}
			for _, g := range groups {
				g.draft, g.file = draft, strings.TrimPrefix(path, root+"/"+draft+"/")
				out = append(out, g)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(out, func(a, b suiteGroup) int { return strings.Compare(a.draft+a.file, b.draft+b.file) })
	return out
}

// suiteOthers are the documents that the suite's references lead to.
func suiteOthers(t *testing.T) map[string][]byte {
	root := filepath.Join(suiteRoot(t), "remotes")
	out := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		out["http://localhost:1234/"+filepath.ToSlash(rel)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withDraft says which draft a schema of the suite is of.
func (g *suiteGroup) withDraft() []byte {
	var members map[string]json.RawMessage
	if g.draft == "draft2020-12" || json.Unmarshal(g.Schema, &members) != nil || members["$schema"] != nil {
		return g.Schema
	}
	comma := ","
	if len(members) == 0 {
		comma = ""
	}
	return fmt.Appendf(nil, `{"$schema":%q%s%s`, suiteURIs[g.draft], comma, strings.TrimLeft(string(g.Schema), " \n\t")[1:])
}

// accepts says whether the language has a text.
func (w *writer) accepts(text string) bool {
	at := w.machine.Start()
	for i := range len(text) {
		at = w.machine.Step(at, text[i])
	}
	return at != cfg.Dead && w.machine.MayEnd(at)
}

// checkInstances looks at the suite's own instances, written compactly: none that is invalid may be
// in the language. Of the valid ones many are: not all, as properties have an order.
func checkInstances(t *testing.T, groups []suiteGroup, others map[string][]byte) {
	valid, missing := 0, 0
	for _, g := range groups {
		w, err := newWriter(g.withDraft(), Options{Others: others}, suiteDrafts[g.draft])
		if err != nil {
			continue
		}
		for _, test := range g.Tests {
			v, err := ParseValue(test.Data)
			if err != nil {
				continue
			}
			accepted := w.accepts(v.String())
			if accepted && !test.Valid && !strings.Contains(g.file, "format") {
				t.Errorf("%s %s %q\n%s\n%s is invalid and in the language: %s", g.draft, g.file, g.Description, g.Schema, v, test.Description)
			}
			if test.Valid {
				valid++
				if !accepted {
					missing++
					if os.Getenv("VERBOSE") != "" {
						t.Logf("missing %s %s %q %s: %s", g.draft, g.file, g.Description, test.Description, v)
					}
				}
			}
		}
	}
	t.Logf("of %d valid instances, %d are not in the language", valid, missing)
}

// TestSuite compiles the schemas of the official suite and validates what they write.
func TestSuite(t *testing.T) {
	groups, others := suite(t), suiteOthers(t)
	r := rand.New(rand.NewPCG(1, 2))
	compiled, refused, texts := 0, 0, 0
	why := map[string]int{}
	for _, g := range groups {
		w, err := newWriter(g.withDraft(), Options{Others: others}, suiteDrafts[g.draft])
		if err != nil {
			if keywordOf(err) == "(no value satisfies the schema)" {
				compiled++
				continue
			}
			refused++
			why[keywordOf(err)]++
			t.Logf("%s %s %q: %v", g.draft, g.file, g.Description, err)
			continue
		}
		compiled++
		for range 12 {
			text, done := w.write(r, 60, 4000)
			if !done {
				if err := w.machine.Err(); err != nil {
					t.Errorf("%s %s %q: %v", g.draft, g.file, g.Description, err)
				}
				continue
			}
			texts++
			if err := w.check(text); err != nil {
				t.Errorf("%s %s %q\n%s\nwrites %s\n%v", g.draft, g.file, g.Description, g.Schema, text, err)
				break
			}
		}
	}
	checkInstances(t, groups, others)
	t.Logf("%d compiled, %d refused, %d texts: %v", compiled, refused, texts, why)
}
