package tokenizer

import (
	"encoding/binary"
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
// an open-addressing table of ids with tags.
type vocab struct {
	blob  []byte
	used  uint32
	place []byte // of each id: where its token begins in blob, and its length
	flags []byte
	index u32s
	seed  maphash.Seed

	longest int // bytes of the longest token
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
	}{{&v.blob, int(bytes)}, {&v.place, placeSize * n}, {&v.flags, n}, {(*[]byte)(&v.index), 4 * tableSize(n)}} {
		b, err := alloc(part.n)
		if err != nil {
			return nil, err
		}
		*part.into = b
	}
	return v, nil
}

// placeSize is the size of a token's place: an offset of 4 bytes and a length of 2.
const placeSize = 6

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
	place := v.place[placeSize*int(id):]
	binary.LittleEndian.PutUint32(place, v.used)
	binary.LittleEndian.PutUint16(place[4:], uint16(len(token)))
	v.longest = max(v.longest, len(token))
	v.used += uint32(copy(v.blob[v.used:], token))
	v.flags[id] = flags | flagPresent
	return nil
}

// put makes id findable by its bytes. The first of two equal tokens wins.
func (v *vocab) put(id uint32) {
	token := v.bytes(id)
	hash := maphash.Bytes(v.seed, token)
	mask := uint32(v.index.len() - 1)
	for slot := uint32(hash) & mask; ; slot = (slot + 1) & mask {
		got := v.index.at(slot)
		if got == 0 {
			v.index.set(slot, entry(hash, id))
			return
		}
		if sameTag(got, hash) && string(v.bytes(entryOf(got))) == string(token) {
			return
		}
	}
}

// bytes returns what id stands for; id must be valid.
func (v *vocab) bytes(id uint32) []byte {
	place := v.place[placeSize*int(id):][:placeSize]
	off := binary.LittleEndian.Uint32(place)
	end := off + uint32(binary.LittleEndian.Uint16(place[4:]))
	return v.blob[off:end:end]
}

// find returns the id of a token.
func (v *vocab) find(token string) (uint32, bool) {
	return v.findHash(v.hash(token), token)
}

func (v *vocab) hash(token string) uint64 { return maphash.String(v.seed, token) }

// findHash is find for a token whose hash is known.
func (v *vocab) findHash(hash uint64, token string) (uint32, bool) {
	mask := uint32(v.index.len() - 1)
	for slot := uint32(hash) & mask; ; slot = (slot + 1) & mask {
		got := v.index.at(slot)
		if got == 0 {
			return 0, false
		}
		if sameTag(got, hash) && string(v.bytes(entryOf(got))) == token {
			return entryOf(got), true
		}
	}
}

// findPair returns the id of the token left+right without joining them.
func (v *vocab) findPair(left, right []byte) (uint32, bool) {
	var h maphash.Hash
	h.SetSeed(v.seed)
	h.Write(left)
	h.Write(right)
	hash := h.Sum64()
	mask := uint32(v.index.len() - 1)
	for slot := uint32(hash) & mask; ; slot = (slot + 1) & mask {
		got := v.index.at(slot)
		if got == 0 {
			return 0, false
		}
		if !sameTag(got, hash) {
			continue
		}
		token := v.bytes(entryOf(got))
		if len(token) == len(left)+len(right) && string(token[:len(left)]) == string(left) && string(token[len(left):]) == string(right) {
			return entryOf(got), true
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
