package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// whole reads one value and the end.
func whole(r io.Reader) ([]byte, error) {
	s := New(r, 100)
	raw, err := s.Raw(1 << 20)
	if err == nil {
		err = s.End()
	}
	return raw, err
}

// FuzzRaw: what encoding/json accepts comes back with the same meaning, also a byte at a time; what it
// refuses is a container.Error, and Skip agrees.
func FuzzRaw(f *testing.F) {
	for _, seed := range []string{`{"a": [1, -2.5e3, "x\u00e9\ud83d\ude00\n\u0001\\\"/"], "b": {}, "c": [true, false, null, []]}`, ` 0 `, `[1,]`, `{"a" 1}`,
		`"\ud800"`, `01`, `1.`, `nan`, `inf`, `+1`, "\"\x01\"", "\"\xff\"", `"\q"`, `"\u12g4"`, `[`, ``, `1 2`, strings.Repeat("[", 70)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, err := whole(bytes.NewReader(data))
		slow, slowErr := whole(iotest.OneByteReader(bytes.NewReader(data)))
		if (err == nil) != (slowErr == nil) || err == nil && !bytes.Equal(raw, slow) {
			t.Fatalf("%q: %s, %v; a byte at a time %s, %v", data, raw, err, slow, slowErr)
		}
		skip := New(bytes.NewReader(data), 100)
		skipErr := skip.Skip()
		if skipErr == nil {
			skipErr = skip.End()
		}
		if (err == nil) != (skipErr == nil) {
			t.Fatalf("%q: %v, but skipping gives %v", data, err, skipErr)
		}
		if err != nil {
			var format *container.Error
			if !errors.As(err, &format) {
				t.Fatalf("%q: an error without a type: %v", data, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q was taken", data)
		}
		var got, want any
		if json.Unmarshal(data, &want) != nil {
			return // a number beyond float64
		}
		if err := json.Unmarshal(raw, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %s", data, raw)
		}
	})
}

func TestUint(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, " 7": 7, "18446744073709551615": 1<<64 - 1, "12,": 12} {
		if got, err := New(strings.NewReader(text), 10).Uint(); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "1e3", "01", "18446744073709551616", "99999999999999999999", `"1"`} {
		if got, err := New(strings.NewReader(text), 10).Uint(); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 100)
	if s, err := New(strings.NewReader(`"`+long+`"`), 100).Text(); err != nil || string(s) != long {
		t.Errorf("100 bytes: %q, %v", s, err)
	}
	for name, err := range map[string]error{
		"text":  New(strings.NewReader(`"x`+long+`"`), 100).Skip(),
		"raw":   New(strings.NewReader(`["`+long+`",1]`), 100).Decode(new(any), 50),
		"depth": New(strings.NewReader(strings.Repeat("[", 65)+strings.Repeat("]", 65)), 100).Skip(),
		"digit": New(strings.NewReader(strings.Repeat("1", 65)), 100).Skip(),
	} {
		if err == nil || !strings.Contains(err.Error(), "damaged JSON at byte ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadError: what the drive says stays what it is, wherever it strikes.
func TestReadError(t *testing.T) {
	text := `{"a": ["\ud83d\ude00", 12, true]}`
	for n := range len(text) {
		r := io.MultiReader(strings.NewReader(text[:n]), iotest.ErrReader(io.ErrClosedPipe))
		if _, err := whole(r); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}
