package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// house is the order of the rooms from the bottom up. A package imports rooms of earlier lines
// alone; rooms on one line do not know each other. The root package sees all but those over it, the commands all.
var house = [][]string{
	{"machine"},
	{"report"},
	{"budget"},
	{"mem"},
	{"quant"},
	{"kernel"},
	{"vfs"},
	{"hub", "storyteller"},
	{"checkpoint"},
	{"layout"},
	{"policy"},
	{"trace"},
	{"pager"},
	{"plan"},
	{"synth", "packer"},
	{"nn"},
	{"models"},
	{"kv"},
	{"tokenizer"},
	{"sample", "grammar", "chat"},
	{"calls"},
	{"engine"},
	{"server"},
}

// overRoot are rooms above the root package, which they import and which does not know them.
var overRoot = []string{"server"}

// testRooms are for tests and for the measurements under bench: no other code imports them.
var testRooms = []string{"testutil", "captest", "lint"}

// rank of a room's first path element below internal, -1 if the house has no such room.
func rank(name string) int {
	return slices.IndexFunc(house, func(line []string) bool { return slices.Contains(line, name) })
}

func isTestRoom(name string) bool { return slices.Contains(testRooms, name) }

// internalRoom is the room of a package below internal; a room's own subpackages belong to it.
func internalRoom(importPath string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(room(importPath), "internal/")
	name, _, _ = strings.Cut(rest, "/")
	return name, ok
}

func arrowFindings(p *listed) []finding {
	from, inside := internalRoom(p.ImportPath)
	if inside && !isTestRoom(from) && rank(from) < 0 {
		return []finding{{room(p.ImportPath), "the house has no such room: give it a place in the table of arrows"}}
	}
	var out []finding
	for _, imported := range p.Imports {
		if !isOurs(imported) {
			continue
		}
		to, down := internalRoom(imported)
		switch {
		case isTestRoom(from) || strings.HasPrefix(room(p.ImportPath), "bench/"):
		case inside && !down && room(imported) == "" && slices.Contains(overRoot, from):
		case inside && !down:
			out = append(out, finding{room(p.ImportPath), fmt.Sprintf("imports %q, which is above it", imported)})
		case !inside && room(p.ImportPath) == "" && slices.Contains(overRoot, to):
			out = append(out, finding{room(p.ImportPath), fmt.Sprintf("imports %s, which is over it", to)})
		case down && isTestRoom(to):
			out = append(out, finding{room(p.ImportPath), fmt.Sprintf("imports %s, which is for tests", to)})
		case inside && from != to && rank(to) >= rank(from):
			out = append(out, finding{room(p.ImportPath), fmt.Sprintf("imports %s, which is not below %s", to, from)})
		}
	}
	return out
}

func TestArrowsPointDown(t *testing.T) {
	tr := load(t)
	for _, p := range tr.ours {
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		report(t, arrowFindings(p))
	}
}

func TestArrowsSelf(t *testing.T) {
	in := func(name string) string { return modulePath + "/internal/" + name }
	for _, c := range []struct {
		from string
		to   []string
		want []string
	}{
		{in("engine"), []string{in("nn"), in("budget"), "fmt"}, nil},
		{in("checkpoint/gguf"), []string{in("checkpoint"), in("vfs")}, nil},
		{modulePath, []string{in("engine"), in("machine")}, nil},
		{modulePath + "/cmd/spillway", []string{modulePath, in("plan")}, nil},
		{in("budget"), []string{in("mem"), in("report")}, []string{"imports mem, which is not below budget"}},
		{in("chat"), []string{in("sample")}, []string{"imports sample"}},
		{in("kernel"), []string{modulePath}, []string{"which is above it"}},
		{in("kernel"), []string{modulePath + "/cmd/spillway"}, []string{"which is above it"}},
		{in("plan"), []string{in("testutil")}, []string{"which is for tests"}},
		{in("server/openai"), []string{modulePath, in("server"), in("engine")}, nil},
		{in("server"), []string{modulePath + "/cmd/spillway"}, []string{"which is above it"}},
		{in("engine"), []string{in("server")}, []string{"which is not below engine"}},
		{modulePath, []string{in("server")}, []string{"imports server, which is over it"}},
		{in("attic"), nil, []string{"no such room"}},
	} {
		wantFindings(t, arrowFindings(&listed{ImportPath: c.from, Imports: c.to}), c.want...)
	}
}
