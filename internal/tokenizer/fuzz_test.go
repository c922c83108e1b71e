package tokenizer

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/vfs"
)

// boundedAlloc refuses what no file of a fuzz run can need.
func boundedAlloc(n int) ([]byte, error) {
	if n > 64<<20 {
		panic("a small file makes a large table")
	}
	return make([]byte, n), nil
}

// tryOut uses a tokenizer that was loaded from whatever; an error says that the file is to blame.
func tryOut(t *testing.T, tok *Tokenizer, err error) {
	if err != nil {
		var format *FormatError
		if !errors.As(err, &format) {
			t.Fatalf("an error without a type: %v", err)
		}
		return
	}
	ids, err := tok.Encode(nil, "Hello wörld, it's\n\n12345 e\u0301 <|im_end|> \xff", Options{AddSpecial: true, ParseSpecial: true})
	if err != nil {
		return
	}
	for _, id := range ids {
		if err := tok.vocab.check(id); err != nil {
			t.Fatalf("Encode gives an unknown id: %v", err)
		}
	}
	if _, err := tok.DecodeText(ids, true); err != nil {
		t.Fatal(err)
	}
}

func FuzzTokenizerJSON(f *testing.F) {
	real, err := os.ReadFile("testdata/storyteller/tokenizer.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real[:2000], []byte(`{"bos_token": "a", "add_bos_token": true}`))
	f.Add([]byte(`{"added_tokens":[{"id":4,"content":"<x>","special":true}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[
		{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated"},{"type":"Digits","individual_digits":true},{"type":"ByteLevel"}]},
		"decoder":{"type":"ByteLevel"},"post_processor":null,"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"Ġ":3},"merges":["a b"]}}`), []byte(`{}`))
	f.Add([]byte(`{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"pre_tokenizer":{"type":"Metaspace","prepend_scheme":"first"},
		"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]},
		"model":{"type":"BPE","unk_token":"u","byte_fallback":true,"vocab":{"u":0,"<0x41>":1,"▁":2,"e":3,"▁e":4},"merges":[["▁","e"]]}}`), []byte(``))
	f.Fuzz(func(t *testing.T, file, config []byte) {
		tok, err := loadHF(func(name string) (vfs.File, error) {
			switch {
			case name == "tokenizer.json":
				return vfs.Bytes(name, file), nil
			case len(config) > 0:
				return vfs.Bytes(name, config), nil
			}
			return nil, os.ErrNotExist
		}, boundedAlloc)
		tryOut(t, tok, err)
	})
}

// ggufBuilder writes GGUF metadata.
type ggufBuilder struct {
	body []byte
	keys uint64
}

func (b *ggufBuilder) text(s string) {
	b.body = binary.LittleEndian.AppendUint64(b.body, uint64(len(s)))
	b.body = append(b.body, s...)
}

func (b *ggufBuilder) key(name string, kind checkpoint.Kind) {
	b.keys++
	b.text(name)
	b.body = binary.LittleEndian.AppendUint32(b.body, uint32(kind))
}

func (b *ggufBuilder) list(name string, kind uint32, n int) {
	b.key(name, 9)
	b.body = binary.LittleEndian.AppendUint32(b.body, kind)
	b.body = binary.LittleEndian.AppendUint64(b.body, uint64(n))
}

func (b *ggufBuilder) strings(name string, list ...string) {
	b.list(name, 8, len(list))
	for _, s := range list {
		b.text(s)
	}
}

func (b *ggufBuilder) ints(name string, list ...int32) {
	b.list(name, 5, len(list))
	for _, v := range list {
		b.body = binary.LittleEndian.AppendUint32(b.body, uint32(v))
	}
}

func (b *ggufBuilder) file() []byte {
	out := append([]byte("GGUF"), 3, 0, 0, 0)
	out = binary.LittleEndian.AppendUint64(out, 0)
	out = binary.LittleEndian.AppendUint64(out, b.keys)
	return append(out, b.body...)
}

// smallGGUF is a vocabulary of a kind.
func smallGGUF(kind, pre string) []byte {
	b := &ggufBuilder{}
	b.key(keyModel, 8)
	b.text(kind)
	b.key(keyPre, 8)
	b.text(pre)
	b.strings(keyTokens, "a", "b", "ab", "<|im_end|>", "<0x41>", "▁", "▁a", "Ġ", "pad")
	b.ints(keyTypes, 1, 1, 1, 3, 6, 1, 1, 1, 5)
	b.list(keyScores, 6, 9)
	for i := range 9 {
		b.body = binary.LittleEndian.AppendUint32(b.body, uint32(i)<<23|1<<31)
	}
	b.strings(keyMerges, "a b")
	b.key(keyEOS, 4)
	b.body = binary.LittleEndian.AppendUint32(b.body, 3)
	return b.file()
}

func FuzzTokenizerGGUF(f *testing.F) {
	f.Add(smallGGUF("gpt2", "qwen2"))
	f.Add(smallGGUF("gpt2", "deepseek-llm"))
	f.Add(smallGGUF("llama", "default"))
	f.Add(smallGGUF("t5", "default"))
	f.Add(smallGGUF("bert", "default"))
	f.Add(smallGGUF("gemma4", ""))
	f.Add(smallGGUF("gemma4", "gemma4"))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := checkpoint.OpenFile(vfs.Bytes("fuzz.gguf", file))
		if err != nil {
			return
		}
		defer c.Close()
		tok, err := Load(c, boundedAlloc)
		tryOut(t, tok, err)
	})
}

// TestSmallGGUF sees that the seeds of the fuzz target are whole vocabularies.
func TestSmallGGUF(t *testing.T) {
	for kind, want := range map[string][]int32{"gpt2": {2, 7, 0}, "llama": {6, 1, 6}, "gemma4": {2, 5, 0}} {
		c, err := checkpoint.OpenFile(vfs.Bytes("small.gguf", smallGGUF(kind, "gpt-2")))
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Load(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := encode(t, tok, "ab a", Options{})
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		if text, err := tok.DecodeText(append(got, 8), false); err != nil || text != "ab a" {
			t.Errorf("%s: %v comes back as %q, %v", kind, got, text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	tok := storyteller(f)
	f.Add([]byte{1, 2, 3, 4, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := tok.NewDecoder(len(b)%2 == 0)
		for ; len(b) >= 2; b = b[2:] {
			id := int32(int16(binary.LittleEndian.Uint16(b)))
			if _, err := d.Push(id); (err != nil) != (id < 0 || int(id) >= tok.Size()) {
				t.Fatalf("Push(%d): %v", id, err)
			}
		}
		d.Flush()
	})
}
