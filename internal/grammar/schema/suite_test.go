package schema

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg/cfgtest"
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

// suite is the official JSON-Schema-Test-Suite: its groups, and the documents that they refer to.
func suite(t *testing.T) (groups []suiteGroup, others map[string][]byte) {
	z, err := zip.OpenReader("accept/testdata/suite.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	others = map[string][]byte{}
	for _, f := range z.File {
		text, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(f.Name, "remotes/"); ok {
			others["http://localhost:1234/"+rest] = text
		}
		rest, ok := strings.CutPrefix(f.Name, "tests/")
		if !ok {
			continue
		}
		var in []suiteGroup
		if err := json.Unmarshal(text, &in); err != nil {
			t.Fatal(f.Name, err)
		}
		for _, g := range in {
			g.draft, g.file, _ = strings.Cut(rest, "/")
			groups = append(groups, g)
		}
	}
	return groups, others
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
func (w *writer) accepts(text string) bool { return cfgtest.Accepts(w.machine, text) }

// annotates are files whose keywords are annotations here, as they are in the later drafts.
var annotates = regexp.MustCompile(`optional/content`)

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
			if accepted && !test.Valid && !annotates.MatchString(g.file) {
				t.Errorf("%s %s %q\n%s\n%s is invalid and in the language: %s", g.draft, g.file, g.Description, g.Schema, v, test.Description)
			}
			if test.Valid {
				valid++
				if !accepted {
					missing++
				}
			}
		}
	}
	t.Logf("of %d valid instances, %d are not in the language", valid, missing)
	if missing*10 > valid {
		t.Errorf("of %d valid instances %d are not in the language, more than a tenth", valid, missing)
	}
}

// excused are the files of the suite whose schemas may be refused as often as they like.
var excused = regexp.MustCompile(`not|if-then-else|uniqueItems|unevaluated|dynamicRef|recursiveRef|anchor|vocabulary`)

// TestSuite compiles the schemas of the official suite and validates what they write.
func TestSuite(t *testing.T) {
	groups, others := suite(t)
	r := rand.New(rand.NewPCG(1, 2))
	all, refused, texts := 0, 0, 0
	why := map[string]int{}
	for _, g := range groups {
		if !excused.MatchString(g.file) {
			all++
		}
		w, err := newWriter(g.withDraft(), Options{Others: others}, suiteDrafts[g.draft])
		var e *Error
		if asError(err, &e) && e.Reason == Empty {
			continue
		}
		if err != nil {
			if !excused.MatchString(g.file) {
				refused++
				why[keywordOf(err)]++
			}
			continue
		}
		texts += g.write(t, w, r)
	}
	checkInstances(t, groups, others)
	t.Logf("%d texts; %d of %d refused: %v", texts, refused, all, why)
	if refused*100 > all*5 {
		t.Errorf("%d of %d schemas are refused, more than 5 %%", refused, all)
	}
}

// write validates some texts of a schema.
func (g *suiteGroup) write(t *testing.T, w *writer, r *rand.Rand) (texts int) {
	for range 2 * samples() {
		text, done := w.write(r, 60, 4000)
		if !done {
			if err := w.machine.Err(); err != nil {
				t.Errorf("%s %s %q: %v", g.draft, g.file, g.Description, err)
			}
			continue
		}
		texts++
		if strings.Contains(text, "{") && strings.Contains(string(g.Schema), "uri-template") {
			continue // the validator does not take / as an operator
		}
		if err := w.check(text); err != nil {
			t.Errorf("%s %s %q\n%s\nwrites %s\n%v", g.draft, g.file, g.Description, g.Schema, text, err)
			break
		}
	}
	return texts
}
