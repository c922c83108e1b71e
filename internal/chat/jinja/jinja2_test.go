package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fromJSON makes values of JSON, with the keys of objects in order.
func fromJSON(t *testing.T, raw json.RawMessage) Value {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return decode(t, d)
}

func decode(t *testing.T, d *json.Decoder) Value {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token {
	case json.Delim('['):
		l := NewList()
		for d.More() {
			l.Items = append(l.Items, decode(t, d))
		}
		_, _ = d.Token()
		return l
	case json.Delim('{'):
		out := NewDict()
		for d.More() {
			key := decode(t, d)
			if err := out.Set(key, decode(t, d)); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = d.Token()
		return out
	}
	if n, ok := token.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
		f, _ := n.Float64()
		return f
	}
	return token
}

// TestAgainstJinja2 runs testdata/jinja2*.json, whose results are Jinja2's own.
func TestAgainstJinja2(t *testing.T) {
	for _, name := range []string{"jinja2.json", "jinja2_more.json"} {
		t.Run(name, func(t *testing.T) { againstJinja2(t, filepath.Join("testdata", name)) })
	}
}

func againstJinja2(t *testing.T, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vars  json.RawMessage
		Cases []struct {
			Template string
			Expected *string
			Error    string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 100 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		vars := map[string]Value{}
		all := fromJSON(t, file.Vars).(*Dict)
		for _, key := range all.Keys() {
			vars[key.(string)], _ = all.Get(key)
		}
		text := ""
		tmpl, err := Parse(c.Template)
		if err == nil {
			text, err = tmpl.Render(vars, DefaultLimits)
		}
		var ours *Error
		switch {
		case c.Expected == nil && err == nil:
			t.Errorf("%s\ngives %q, want %s", c.Template, text, c.Error)
		case c.Expected == nil && !errors.As(err, &ours):
			t.Errorf("%s\nfails with another kind of error: %v", c.Template, err)
		case c.Expected != nil && (err != nil || text != *c.Expected):
			t.Errorf("%s\ngives %q, %v\nwant  %q", c.Template, text, err, *c.Expected)
		}
	}
}
