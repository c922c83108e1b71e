package jinja

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// deep nests middle n times.
func deep(n int, open, middle, end string) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
}

// hostile templates would each take for ever, or all memory, or the stack.
var hostile = map[string]string{
	"loops":       deep(8, "{% for x in range(100000) %}", "", "{% endfor %}"),
	"range":       "{{ range(10 ** 12) | length }}",
	"repeat":      `{{ "a" * 10 ** 15 }}`,
	"repeat list": "{{ [1] * 10 ** 15 }}",
	"doubling":    `{% set ns = namespace(s="aaaaaaaa") %}{% for i in range(1000) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`,
	"doubling +":  `{% set ns = namespace(s="aaaaaaaa") %}{% for i in range(1000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
	"lists":       `{% set ns = namespace(s=[1]) %}{% for i in range(1000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
	"replace":     `{% set ns = namespace(s="aa") %}{% for i in range(1000) %}{% set ns.s = ns.s | replace("a", "aaaaaaaaaa") %}{% endfor %}`,
	"join":        `{% set ns = namespace(s="aa") %}{% for i in range(1000) %}{% set ns.s = ns.s | join(ns.s) %}{% endfor %}`,
	"macro":       "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
	"two macros":  "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
	"caller":      "{% macro f() %}{{ caller() }}{% endmacro %}{% set ns = namespace() %}{% macro h() %}{% call f() %}{{ h() }}{% endcall %}{% endmacro %}{{ h() }}",
	"loop":        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
	"own list":    "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
	"own json":    "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
	"own equal":   "{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l == m }}",
	"wide list":   "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
	"wide json":   "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}",
	"wide equal":  "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
	"brackets":    "{{ " + deep(100000, "(", "1", ")") + " }}",
	"lists deep":  "{{ " + deep(100000, "[", "1", "]") + " }}",
	"not":         "{{ " + strings.Repeat("not ", 100000) + "1 }}",
	"minus":       "{{ " + strings.Repeat("- ", 100000) + "1 }}",
	"plus":        "{{ 1" + strings.Repeat(" + 1", 100000) + " }}",
	"if else":     "{{ " + strings.Repeat("1 if 0 else ", 100000) + "1 }}",
	"and":         "{{ 1" + strings.Repeat(" and 1", 100000) + " }}",
	"attributes":  "{{ a" + strings.Repeat(".a", 100000) + " }}",
	"filters":     "{{ a" + strings.Repeat("|e", 100000) + " }}",
	"blocks":      deep(100000, "{% if 1 %}", "", "{% endif %}"),
	"elif":        "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 10) + strings.Repeat("{% for a in b %}", 100000),
	"targets":     "{% set " + deep(100000, "(", "a", ")") + " = 1 %}",
	"width":       `{{ "a".center(10 ** 12) }}`,
	"zfill":       `{{ "1".zfill(10 ** 12) }}`,
	"indent":      `{{ ("\n" * 1000000) | indent(1000, true, true) }}`,
	"json indent": `{{ [[[[1]]]] | tojson(indent=10 ** 9) }}`,
	"percent":     `{{ "%999999999d" % 1 }}`,
	"power":       "{{ 2 ** 63 }}",
	"batch":       "{{ [1] | batch(10 ** 12, 0) | list }}",
	"slice":       "{{ [1] | slice(10 ** 12) | list }}",
	"characters":  `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{{ s[-1] }}{% endfor %}`,
	"find":        `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{{ "zz" in s }}{% endfor %}`,
	"upper":       `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{{ s | upper | length }}{% endfor %}`,
	"length":      `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{% if s | length %}{% endif %}{% endfor %}`,
	"compare":     `{% set s = "ab" * 1000000 %}{% set t = s ~ "" %}{% for i in range(100000) %}{% if s == t %}{% endif %}{% endfor %}`,
	"keys":        `{% set s = "ab" * 1000000 %}{% set d = {s: 1} %}{% for i in range(100000) %}{% if d[s] and s in d and d.get(s) %}{% endif %}{% endfor %}`,
	"startswith":  `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{% if s == s ~ "" %}{% endif %}{% endfor %}`,
	"delete":      `{% set d = {} %}{% for i in range(100000) %}{% set _ = d.update({i: i}) %}{% endfor %}{% for i in range(100000) %}{% set _ = d.pop(99999 - i) %}{% endfor %}`,
}

// hostileValues would each make far too much, or nest without end.
var hostileValues = map[string]string{
	"percent width": `{{ "%9999999d" % 1 }}`, "percent star": `{{ "%*d" % (10 ** 9, 1) }}`, "percent precision": `{{ "%.99999999f" % 1.5 }}`,
	"format width": `{{ "{:>99999999}".format(1) }}`, "format field": `{{ "{:{}}".format(1, 10 ** 9) }}`, "format precision": `{{ "{:.999999999f}".format(1.5) }}`,
	"format nested": "{{ '" + deep(1000, "{:", "", "}") + "'.format(1) }}",
	"format many":   `{% set s = "{0}" * 100000 %}{% for i in range(1000) %}{{ s.format("a" * 1000) | length }}{% endfor %}`,
	"tabs":          `{{ ("\t" * 100000).expandtabs(100000) }}`, "ljust": `{{ "a".ljust(10 ** 15, "é") }}`,
	"split":            `{% set s = "a," * 100000 %}{% for i in range(1000) %}{% set x = s.split(",") %}{% endfor %}`,
	"lines":            `{% set s = "\n" * 100000 %}{% for i in range(1000) %}{% set x = s.splitlines() %}{% endfor %}`,
	"indent lines":     `{% set s = "a\n" * 100000 %}{% for i in range(1000) %}{% set x = s | indent(100) %}{% endfor %}`,
	"indent text":      `{% set s = "a\n" * 100000 %}{{ s | indent(s) }}`,
	"replace nothing":  `{% set s = "a" * 100000 %}{{ s.replace("", s) }}`,
	"sort":             `{% set l = range(100000) | list %}{% for i in range(1000) %}{% set x = l | sort %}{% endfor %}`,
	"join long":        `{% set s = "a" * 1000000 %}{{ range(1000) | join(s) }}`,
	"wordwrap":         `{{ ("a" * 1000000) | wordwrap(1, true, "x" * 1000) }}`,
	"json separators":  `{% set s = "x" * 1000000 %}{{ range(1000) | list | tojson(separators=(s, s)) }}`,
	"json indent text": `{% set s = "x" * 1000000 %}{{ range(1000) | list | tojson(indent=s) }}`,
	"json depth":       `{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}`,
	"print depth":      `{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}`,
	"pprint depth":     `{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | pprint }}`,
	"own dict":         `{% set d = {} %}{% set _ = d.update({"a": d}) %}{{ d | tojson }}`, "own namespace": `{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}`,
	"append":                   `{% set l = [1] %}{% for i in l %}{% set _ = l.append(1) %}{% endfor %}{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}`,
	"extend itself":            `{% set l = [1] %}{% for i in range(100) %}{% set _ = l.extend(l) %}{% endfor %}`,
	"dicts":                    `{% for i in range(100000) %}{% set d = dict(a=1, b=2, c=3, d=4, e=5) %}{% for j in range(1000) %}{% endfor %}{% endfor %}`,
	"path":                     `{{ [1] | map(attribute="a." * 1000000) | list }}`,
	"unique":                   `{% set l = range(100000) | list %}{% for i in range(10000) %}{% set x = l | unique | list %}{% endfor %}`,
	"recursive macro argument": `{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") }}`,
	"call blocks":              deep(5000, "{% call f() %}", "", "{% endcall %}"),
	"if elif":                  "{% if 0 %}" + strings.Repeat("{% elif 0 %}{% if 0 %}", 5000),
	"dicts deep":               "{{ " + deep(100000, "{1:", "1", "}") + " }}",
	"subscripts":               "{{ a" + deep(100000, "[", "1", "]") + " }}",
	"comparisons":              "{% for i in range(100000) %}{{ 1" + strings.Repeat(" == 1", 10000) + " }}{% endfor %}",
	"slices":                   `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{% set x = s[1:] %}{% endfor %}`,
	"slices back":              `{% set s = "ab" * 1000000 %}{{ s[::-1] }}`,
	"lower":                    `{% set s = "İ" * 1000000 %}{% for i in range(100000) %}{% set x = s.lower() %}{% endfor %}`,
	"count":                    `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{% set x = s.count("zz") %}{% endfor %}`,
	"truncate":                 `{% set s = "ab" * 1000000 %}{% for i in range(100000) %}{% set x = s | truncate(10) %}{% endfor %}`,
	"striptags":                `{% set s = "<!---->" * 100000 %}{{ s | striptags }}`,
	"dictsort":                 `{% set d = {} %}{% for i in range(10000) %}{% set _ = d.update({i: i}) %}{% endfor %}{% for i in range(10000) %}{% set x = d | dictsort %}{% endfor %}`,
	"groups":                   `{% for i in range(10000) %}{% set x = range(10000) | map("string") | groupby("a") %}{% endfor %}`,
	"finite":                   `{{ 10 ** 400.0 }}`, "minimum": "{{ (-9223372036854775807 - 1) // -1 }}", "times": "{{ 9223372036854775807 * 2 }}",
	"include": `{% include "/etc/passwd" %}`, "import": `{% import "x" as y %}`, "lipsum": "{{ lipsum(n=100000) }}", "class": `{{ "".__class__.__mro__ }}`,
}

func TestHostileTemplates(t *testing.T) {
	all := maps.Clone(hostile)
	maps.Copy(all, hostileValues)
	if len(all) != len(hostile)+len(hostileValues) {
		t.Error("two templates have the same name")
	}
	for name, source := range all {
		tmpl, err := Parse(source)
		if err == nil {
			_, err = tmpl.Render(map[string]Value{}, Limits{Steps: 1 << 18, Bytes: 16 << 20})
		}
		var ours *Error
		if !errors.As(err, &ours) {
			t.Errorf("%s: error %v, want an Error", name, err)
		}
	}
}

// TestLongButFine: what long conversations need is not stopped.
func TestLongButFine(t *testing.T) {
	tmpl, err := Parse(`{% for m in messages %}{{ m.role }}: {{ m.content | trim }}` + "\n" + `{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	messages := NewList()
	for range 5000 {
		d := NewDict()
		for k, v := range map[string]string{"role": "user", "content": strings.Repeat("word ", 200)} {
			if err := d.Set(k, v); err != nil {
				t.Fatal(err)
			}
		}
		messages.Items = append(messages.Items, d)
	}
	text, err := tmpl.Render(map[string]Value{"messages": messages}, DefaultLimits)
	if err != nil || len(text) != 5000*(len("user: \n")+999) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestLongWords: breaking one long word takes time in proportion to its length, which a quadratic one shows by hours.
func TestLongWords(t *testing.T) {
	for source, want := range map[string]string{
		`{{ ("a" * 2000000) | wordwrap(1) | length }}`:           "3999999",
		`{{ ("a-" * 1000000) | wordwrap(2) | length }}`:          "2999999",
		`{{ ("a-b c" * 2) | wordwrap(3) | replace("\n", "|") }}`: "a-b|ca-|b c",
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := tmpl.Render(map[string]Value{}, DefaultLimits); err != nil || text != want {
			t.Errorf("%s: %q, %v, want %q", source, text, err, want)
		}
	}
}

// TestErrorsSayWhere: an error names the line.
func TestErrorsSayWhere(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{{ x.y }}":                                "line 2: x is undefined",
		"a\n\n{% if 1 + none %}{% endif %}":           "line 3:",
		"{% for x in [1] %}\n{{ x.a.b }}{% endfor %}": "line 2:",
		"a\n{% if x %}":                               "line 2: found \"the end of the template\"",
		"{{ 1 | nofilter }}":                          "No filter named 'nofilter' found.",
	} {
		tmpl, err := Parse(source)
		if err == nil {
			_, err = tmpl.Render(map[string]Value{}, DefaultLimits)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.jinja")
	for _, name := range files {
		if source, err := os.ReadFile(name); err == nil {
			f.Add(string(source))
		}
	}
	for _, seed := range []string{"{% for m in messages %}{{ m.role }}{% endfor %}", "{{ messages | tojson(indent=2) }}", "{% macro f(a, b=1) %}{{ a }}{% endmacro %}{{ f(1) }}",
		"{%- set ns = namespace(x=[]) -%}{% set ns.x = ns.x + [1] %}{{ ns.x[::-1] }}", "{{ s.split(',')[0] | upper }} {{ '%s' % s }} {{ 'x{}'.format(s) }}",
		"{% raw %}{{{% endraw %}{# c #}{% filter upper %}a{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		// Where strings come from changes nothing, and the parts from the request are in order.
		plain, failed := tmpl.Run(fuzzVars(t, func(s string) Value { return s }), Limits{Steps: 1 << 14, Bytes: 1 << 20})
		out, err := tmpl.Run(fuzzVars(t, User), Limits{Steps: 1 << 14, Bytes: 1 << 24})
		if failed == nil && (err != nil || out.Text != plain.Text) {
			t.Fatalf("%q, %v of strings from the request, %q of others", out.Text, err, plain.Text)
		}
		at := -1
		for _, s := range out.User {
			if s.Start <= at || s.End <= s.Start || s.End > len(out.Text) {
				t.Fatalf("parts %v of %d bytes", out.User, len(out.Text))
			}
			at = s.End
		}
		if err == nil && len(out.Text) > 1<<24 || len(plain.User) > 0 {
			t.Fatalf("%d bytes, parts %v", len(out.Text), plain.User)
		}
	})
}

// fuzzVars are the variables of FuzzTemplate.
func fuzzVars(t *testing.T, text func(string) Value) map[string]Value {
	t.Helper()
	d := NewDict()
	for _, pair := range [][2]string{{"role", "user"}, {"content", " Hi <|x|>,\n you "}} {
		if err := d.Set(text(pair[0]), text(pair[1])); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]Value{"messages": NewList(d, d), "s": text("a,b"), "n": int64(3)}
}
