package sample

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

func loadTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.LoadPath(vfs.OS(), "../tokenizer/testdata/storyteller", nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// A bad word is forbidden at the beginning of a text and within it.
func TestBadWordsOfTexts(t *testing.T) {
	tok := loadTokenizer(t)
	words, err := BadWords(tok, []string{"fox", "fox", "tree"})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, w := range words {
		text, err := tok.DecodeText(w, false)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if want := []string{"fox", " fox", "tree", " tree"}; !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	var bad *ParamError
	if _, err := BadWords(tok, []string{""}); !errors.As(err, &bad) {
		t.Errorf("an empty word: %v", err)
	}
}

// Every token that contains the text breaks, and only those, where it is a token by itself.
func TestBreakersOfTexts(t *testing.T) {
	tok := loadTokenizer(t)
	list, err := Breakers(tok, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	for id := range int32(tok.Size()) {
		b, err := tok.Bytes(id)
		want := err == nil && strings.Contains(string(b), ".")
		if got := slices.ContainsFunc(list, func(s []int32) bool { return slices.Equal(s, []int32{id}) }); got != want {
			t.Errorf("token %d, %q, breaks: %v, want %v", id, b, got, want)
		}
	}
	list, err = Breakers(tok, []string{"wxyz"})
	if err != nil || len(list) != 1 || len(list[0]) < 2 {
		t.Errorf("a text of several tokens: %v, %v", list, err)
	}
	var bad *ParamError
	if _, err := Breakers(tok, []string{""}); !errors.As(err, &bad) {
		t.Errorf("an empty text: %v", err)
	}
}
