package jinja

import (
	"errors"
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

func TestHostileTemplates(t *testing.T) {
	for name, source := range hostile {
		tmpl, err := Parse(source)
		if err == nil {
			_, err = tmpl.Render(map[string]Value{}, Limits{Steps: 1 << 20, Bytes: 64 << 20})
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
		d := NewDict()
		if err := d.Set("role", "user"); err != nil {
			t.Fatal(err)
		}
		text, err := tmpl.Render(map[string]Value{"messages": NewList(d), "s": "a,b", "n": int64(3)}, Limits{Steps: 1 << 14, Bytes: 1 << 20})
		if err == nil && len(text) > 1<<20 {
			t.Fatalf("%d bytes", len(text))
		}
	})
}
