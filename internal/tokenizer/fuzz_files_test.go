package tokenizer

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// tryAll uses a tokenizer of any file: texts, and any ids, at once and one by one.
func tryAll(t *testing.T, tok *Tokenizer, err error, raw []byte) {
	tryOut(t, tok, err)
	if err != nil {
		return
	}
	if _, err := tok.Encode(nil, "Ünaffable ①ﬁ\r\n漢字 👩‍💻 "+strings.Repeat("ab ", 100), Options{AddSpecial: true}); err != nil {
		return
	}
	var ids []int32
	for ; len(raw) >= 2 && len(ids) < 200; raw = raw[2:] {
		if id := int32(binary.LittleEndian.Uint16(raw)) % int32(tok.Size()+1); tok.vocab.has(id) {
			ids = append(ids, id)
		}
	}
	if _, err := tok.DecodeText(ids, false); err != nil {
		t.Fatal(err)
	}
	d := tok.NewDecoder(true)
	for _, id := range ids {
		if _, err := d.Push(id); err != nil {
			t.Fatal(err)
		}
		if _, err := tok.Bytes(id); err != nil {
			t.Fatal(err)
		}
	}
	d.Flush()
}

func FuzzStages(f *testing.F) {
	lines, err := os.ReadFile("testdata/stages.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range strings.Split(string(lines), "\n") {
		var c stageCase
		if i%3 == 0 && json.Unmarshal([]byte(line), &c) == nil {
			f.Add([]byte(c.Tokenizer))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tok, err := loadHF(files{"tokenizer.json": string(file)}.open, boundedAlloc)
		tryAll(t, tok, err, file)
	})
}

func FuzzSentencePiece(f *testing.F) {
	for _, name := range []string{"unigram", "unigram_bytes", "bpe", "bpe_suffix"} {
		b, err := os.ReadFile("testdata/sentencepiece/" + name + ".model")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[len(b)-1500:])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tok, err := loadBeside(files{"tokenizer.model": string(file)}.open, boundedAlloc)
		tryAll(t, tok, err, file)
	})
}

func FuzzTekken(f *testing.F) {
	f.Add([]byte(smallTekken("")))
	f.Add([]byte(`{"config":{"pattern":"a","default_vocab_size":3,"default_num_special_tokens":2},"vocab":[{"rank":0,"token_bytes":"YQ=="}]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		tok, err := loadBeside(files{"tekken.json": string(file)}.open, boundedAlloc)
		tryAll(t, tok, err, file)
	})
}

func FuzzVocabularyFiles(f *testing.F) {
	f.Add([]byte(bertVocab), []byte(``))
	f.Add([]byte(`{"a":0,"b":1,"ab":2}`), []byte("#version\na b\n"))
	f.Fuzz(func(t *testing.T, vocab, merges []byte) {
		tok, err := loadBeside(files{"vocab.txt": string(vocab)}.open, boundedAlloc)
		tryAll(t, tok, err, vocab)
		tok, err = loadBeside(files{"vocab.json": string(vocab), "merges.txt": string(merges)}.open, boundedAlloc)
		tryAll(t, tok, err, vocab)
	})
}

func FuzzCharsmap(f *testing.F) {
	tok, err := loadBeside(files{}.open, heapAlloc)
	if tok != nil || err == nil {
		f.Fatal("an empty folder has a tokenizer")
	}
	f.Add([]byte{4, 0, 0, 0, 0, 4, 0, 0, 'x', 0}, "aé漢")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		m, err := newCharsmap(b)
		if err != nil {
			return
		}
		precompiled{m}.normalize(text)
		spmNormalizer{chars: m, dummy: true, squeeze: true, escape: true}.normalize(text)
	})
}
