package wire

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Name string  `json:"name"`
	Size float32 `json:"size"`
}

type embedded struct {
	Deep *int `json:"deep"`
}

type body struct {
	Model string             `json:"model"`
	Flag  bool               `json:"flag"`
	N     *int               `json:"n"`
	Small int32              `json:"small"`
	List  []inner            `json:"list"`
	Bias  map[string]float32 `json:"bias"`
	Raw   json.RawMessage    `json:"raw"`
	Any   Value              `json:"any"`
	Stop  Strings            `json:"stop"`
	embedded
}

func TestDecode(t *testing.T) {
	var b body
	text := ` {"model":"é\n\ud83d\ude00", "flag":true,"n": 3.0,"Model":"no","deep":7,"unknown":[{"a":"]}"}],"list":[{"name":"a","size":1.5},{"size":2}],
		"bias":{"5":-1e2},"raw":{"b":1,"a":[2]},"any":[1],"stop":"x","small":null,"model2":null}`
	if err := Decode([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	if b.Model != "é\n😀" || !b.Flag || *b.N != 3 || *b.Deep != 7 || b.Small != 0 || string(b.Raw) != `{"b":1,"a":[2]}` || b.Any.Kind() != Array {
		t.Errorf("decoded %+v", b)
	}
	if d := cmp.Diff([]inner{{"a", 1.5}, {"", 2}}, b.List); d != "" {
		t.Error(d)
	}
	if b.Bias["5"] != -100 || len(b.Stop) != 1 || b.Stop[0] != "x" {
		t.Errorf("decoded %+v", b)
	}
}

func TestDecodeErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    "the request is empty; a JSON object is expected",
		`  `:                                  "the request is empty; a JSON object is expected",
		`{"model": `:                          "the request is no valid JSON: unexpected end of JSON input (at byte 10)",
		`{"model":"a"} x`:                     "the request is no valid JSON: invalid character 'x' after top-level value (at byte 15)",
		`[1]`:                                 "the request is a list, not an object",
		`17`:                                  "the request is a number, not an object",
		`{"model":5}`:                         "model is a number, not a string",
		`{"flag":"yes"}`:                      "flag is a string, not a boolean",
		`{"n":"ten"}`:                         "n is a string, not a number",
		`{"n":1.5}`:                           "n is 1.5, not a whole number",
		`{"n":1e400}`:                         "n is 1e400, which is too large",
		`{"n":99999999999999999999}`:          "n is 99999999999999999999, which is out of range",
		`{"small":3000000000}`:                "small is 3000000000, which is out of range",
		`{"list":{}}`:                         "list is an object, not a list",
		`{"list":[{"name":"a"},17]}`:          "list[1] is a number, not an object",
		`{"list":[null]}`:                     "list[0] is null, not an object",
		`{"list":[{"name":"a"},{"name":{}}]}`: "list[1].name is an object, not a string",
		`{"bias":{"5":"x"}}`:                  "bias.5 is a string, not a number",
		`{"bias":{"5":1e39}}`:                 "bias.5 is 1e39, which is out of range",
		`{"stop":[1]}`:                        "stop[0] is a number, not a string",
		`{"stop":1}`:                          "stop is a number, not a string or a list of strings",
		`{"deep":"x"}`:                        "deep is a string, not a number",
	} {
		var b body
		err := Decode([]byte(text), &b)
		var field *FieldError
		if !errors.As(err, &field) || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestGet(t *testing.T) {
	v, err := Parse([]byte(`{"a":1,"b":{"c":"x"},"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	a, ok := v.Get("a")
	if n, _ := a.Int(); !ok || n != 2 {
		t.Errorf("of two members the last one counts: %s", a.Raw())
	}
	if _, ok := v.Get("z"); ok {
		t.Error("found what is not there")
	}
	if _, ok := a.Get("x"); ok {
		t.Error("found something in a number")
	}
}

// What the package reads of any text is what encoding/json reads.
func FuzzFields(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\"]}"}],"c":null}`, `{"":{}}`, `[1,"x",[],{}]`, `{"a\u0062":-1.5e3 , "c" : true }`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err != nil {
			if json.Valid(data) {
				t.Fatalf("refused %q: %v", data, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted %q", data)
		}
		compare(t, v)
	})
}

func compare(t *testing.T, v Value) {
	switch v.Kind() {
	case Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		if err := v.Fields(func(key string, e Value) error {
			got[key] = e.Raw()
			compare(t, e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	case Array:
		var want, got []json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		_ = v.Each(func(_ int, e Value) error {
			got = append(got, e.Raw())
			compare(t, e)
			return nil
		})
		if len(want) != len(got) {
			t.Fatalf("%q and %q", want, got)
		}
	case String:
		var want string
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Text(); err != nil || got != want {
			t.Fatalf("%q, want %q: %v", got, want, err)
		}
	}
}
