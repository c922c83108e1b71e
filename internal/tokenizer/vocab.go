package tokenizer

import (
	"fmt"
	"hash/maphash"
)

// Limits of a vocabulary. They bound what a file can make us allocate or scan; the largest released
// vocabulary has 262,145 tokens and its longest token 256 bytes.
const (
	maxTokenBytes = 1<<16 - 1
	maxTokens     = 1 << 24
	maxBlob       = 1<<32 - 1
)

// What is known of one token.
const (
	flagPresent = 1 << iota // the id is in use
	flagSpecial             // a control token: dropped by skipSpecial
	flagAdded               // found in the text before the model runs; never made by it
	flagByte                // stands for one byte (byte fallback)
	flagHidden              // decodes to nothing (unused ids of a padded vocabulary)
)

// vocab maps ids to the bytes that they stand for, and back. All tokens lie in one blob; the index is
// an open-addressing table of ids + 1.
type vocab struct {
	blob  []byte
	used  uint32
	off   u32s
	size  u16s
	flags []byte
	index u32s
	seed  maphash.Seed
}

// newVocab makes an empty vocabulary for ids 0…n-1 with bytes bytes of tokens in all.
func newVocab(n int, bytes int64, alloc Alloc) (*vocab, error) {
	if n > maxTokens {
		return nil, formatError("the vocabulary has %d tokens; at most %d are possible", n, maxTokens)
	}
	if bytes > maxBlob {
		return nil, formatError("the vocabulary's tokens have %d bytes; at most %d are possible", bytes, int64(maxBlob))
	}
	v := &vocab{seed: maphash.MakeSeed()}
	for _, part := range []struct {
		into *[]byte
		n    int
	}{{&v.blob, int(bytes)}, {(*[]byte)(&v.off), 4 * n}, {(*[]byte)(&v.size), 2 * n}, {&v.flags, n}, {(*[]byte)(&v.index), 4 * tableSize(n)}} {
		b, err := alloc(part.n)
		if err != nil {
			return nil, err
		}
		*part.into = b
	}
	return v, nil
}

// count is one more than the largest id.
func (v *vocab) count() int { return len(v.flags) }

// set stores the bytes of id, which must not be in use.
func (v *vocab) set(id uint32, token []byte, flags byte) error {
	if int(id) >= v.count() {
		return formatError("token id %d is outside the vocabulary of %d", id, v.count())
	}
	if v.flags[id] != 0 {
		return formatError("token id %d is given twice", id)
	}
	if len(token) > maxTokenBytes {
		return formatError("token %d has %d bytes; at most %d are possible", id, len(token), maxTokenBytes)
	}
	if len(token) > len(v.blob)-int(v.used) {
		return formatError("the vocabulary changed while it was read")
	}
	v.off.set(id, v.used)
	v.size.set(id, uint16(len(token)))
	v.used += uint32(copy(v.blob[v.used:], token))
	v.flags[id] = flags | flagPresent
	return nil
}

// put makes id findable by its bytes. The first of two equal tokens wins.
func (v *vocab) put(id uint32) {
	mask := uint32(v.index.len() - 1)
	token := v.bytes(id)
	for slot := uint32(maphash.Bytes(v.seed, token)) & mask; ; slot = (slot + 1) & mask {
		got := v.index.at(slot)
		if got == 0 {
			v.index.set(slot, id+1)
			return
		}
		if string(v.bytes(got-1)) == string(token) {
			return
		}
	}
}

// bytes returns what id stands for; id must be valid.
func (v *vocab) bytes(id uint32) []byte {
	off := v.off.at(id)
	end := off + uint32(v.size.at(id))
	return v.blob[off:end:end]
}

// find returns the id of a token.
func (v *vocab) find(token string) (uint32, bool) {
	mask := uint32(v.index.len() - 1)
	for slot := uint32(maphash.String(v.seed, token)) & mask; ; slot = (slot + 1) & mask {
		got := v.index.at(slot)
		if got == 0 {
			return 0, false
		}
		if string(v.bytes(got-1)) == token {
			return got - 1, true
		}
	}
}

// findPair returns the id of the token left+right without joining them.
func (v *vocab) findPair(left, right []byte) (uint32, bool) {
	var h maphash.Hash
	h.SetSeed(v.seed)
	h.Write(left)
	h.Write(right)
	mask := uint32(v.index.len() - 1)
	for slot := uint32(h.Sum64()) & mask; ; slot = (slot + 1) & mask {
		got := v.index.at(slot)
		if got == 0 {
			return 0, false
		}
		token := v.bytes(got - 1)
		if len(token) == len(left)+len(right) && string(token[:len(left)]) == string(left) && string(token[len(left):]) == string(right) {
			return got - 1, true
		}
	}
}

// has reports whether id is in use.
func (v *vocab) has(id int32) bool {
	return id >= 0 && int(id) < v.count() && v.flags[id] != 0
}

// check returns an error that names an id that is not in the vocabulary.
func (v *vocab) check(id int32) error {
	if v.has(id) {
		return nil
	}
	return &UnknownIDError{ID: id, Size: v.count()}
}

// UnknownIDError says that an id is not in the vocabulary.
type UnknownIDError struct {
	ID   int32
	Size int // one more than the largest id
}

func (e *UnknownIDError) Error() string {
	return fmt.Sprintf("token id %d is not in the vocabulary of %d tokens", e.ID, e.Size)
}
