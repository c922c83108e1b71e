package tokenizer

import (
	"strings"
	"testing"
)

// decodeWith decodes tokens with a decoder of tokenizer.json, all at once and as a stream.
func decodeWith(t *testing.T, decoder string, tokens []string) (text, streamed string) {
	t.Helper()
	var vocab []string
	for i, token := range tokens {
		vocab = append(vocab, `"`+token+`":`+string(rune('0'+i)))
	}
	tok, err := fromJSON(`{"decoder":`+decoder+`,"model":{"type":"WordLevel","vocab":{`+strings.Join(vocab, ",")+`}}}`, "")
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int32, len(tokens))
	for i := range ids {
		ids[i] = int32(i)
	}
	if text, err = tok.DecodeText(ids, false); err != nil {
		t.Fatal(err)
	}
	d := tok.NewDecoder(false)
	for _, id := range ids {
		piece, err := d.Push(id)
		if err != nil {
			t.Fatal(err)
		}
		streamed += piece
	}
	return text, streamed + d.Flush()
}

// TestSuffixAcrossTokens: after Fuse all tokens are one, in which suffixes may cross borders.
func TestSuffixAcrossTokens(t *testing.T) {
	const fused = `{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"BPEDecoder","suffix":"SUFFIX"}]}`
	for _, c := range []struct {
		suffix string
		tokens []string
		want   string
	}{
		{"</w>", []string{"a</", "w>b", "c</w>"}, "abc"}, {"</w>", []string{"</w>", "x", "y"}, "xy"}, {"</w>", []string{"a<", "/", "b"}, "a</b"},
		{"", []string{"a", "b", "c"}, "abc"},
	} {
		text, streamed := decodeWith(t, strings.Replace(fused, "SUFFIX", c.suffix, 1), c.tokens)
		if text != c.want || streamed != c.want {
			t.Errorf("%q with suffix %q is %q, streamed %q; want %q", c.tokens, c.suffix, text, streamed, c.want)
		}
	}
	apart := `{"type":"BPEDecoder","suffix":"</w>"}`
	tokens := []string{"a</w>", "b", "c</w>"}
	if text, streamed := decodeWith(t, apart, tokens); text != "a bc" || streamed != text {
		t.Errorf("%q is %q, streamed %q", tokens, text, streamed)
	}
}

// TestLongHeldText: what is held until the end is not copied for each token.
func TestLongHeldText(t *testing.T) {
	s := &suffixedStage{kind: suffixed{suffix: "</w>"}, fused: true}
	s.push(chunk{b: []byte("</w>")}, func(chunk) { t.Error("what is held is given") })
	token := chunk{b: []byte(strings.Repeat("x", 64))}
	if n := testing.AllocsPerRun(10000, func() { s.push(token, func(chunk) { t.Error("what is held is given") }) }); n >= 1 {
		t.Errorf("%v allocations for each token", n)
	}
}
