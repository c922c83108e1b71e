package packer

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/vfs"
)

// beside are the files of a folder that say what a model is; additional are further ones, by their folder.
var beside = []string{
	"config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"chat_template.jinja", "chat_template.json",
	"tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "merges.txt", "vocab.txt",
	"modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "preprocessor_config.json", "processor_config.json",
	"LICENSE", "README.md",
}

const templates = "additional_chat_templates"

// carry adds the metadata, and what lies beside safetensors files, as files inside.
func (p *Plan) carry(cat *checkpoint.Catalog) error {
	if err := p.metadata(cat); err != nil || cat.Format == checkpoint.GGUF {
		return err
	}
	names := beside
	more, err := cat.ListBeside(templates)
	if err != nil {
		return err
	}
	for _, name := range more {
		if strings.HasSuffix(name, ".jinja") {
			names = append(names[:len(names):len(names)], templates+"/"+name)
		}
	}
	for _, name := range names {
		f, err := cat.OpenBeside(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		p.open = append(p.open, f)
		p.inner(name, pack.Part{File: f, Bytes: f.Size()})
	}
	return nil
}

// inner adds a file made of parts, one after the other.
func (p *Plan) inner(name string, parts ...pack.Part) {
	start := p.end
	for _, part := range parts {
		part.At = p.end
		p.end += part.Bytes
		if part.Bytes > 0 {
			p.Parts = append(p.Parts, part)
		}
	}
	p.Manifest.Inner = append(p.Manifest.Inner, pack.Inner{Name: name, Offset: start, Bytes: p.end - start})
	p.end = align(p.end, pack.Align)
}

// metadata adds that of the first file, as a file without tensors.
func (p *Plan) metadata(cat *checkpoint.Catalog) error {
	name := "metadata." + cat.Format
	if cat.Format == checkpoint.GGUF {
		f := cat.Files[0].File
		h, err := gguf.Read(f)
		if err != nil {
			return err
		}
		first, err := container.NewReader(f, 0, gguf.MetaStart).Append(nil, gguf.MetaStart)
		if err != nil {
			return err
		}
		clear(first[8:16]) // the number of tensors
		p.inner(name, pack.Part{File: vfs.Bytes(name, first), Bytes: gguf.MetaStart},
			pack.Part{File: f, Offset: gguf.MetaStart, Bytes: h.MetaEnd - gguf.MetaStart})
		return nil
	}
	var out bytes.Buffer
	w := safetensors.NewWriter(&out)
	for _, e := range cat.Meta.Entries() {
		w.SetMeta(e.Key, string(e.Text()))
	}
	if err := w.Close(); err != nil {
		return err
	}
	p.inner(name, pack.Part{File: vfs.Bytes(name, out.Bytes()), Bytes: int64(out.Len())})
	return nil
}
