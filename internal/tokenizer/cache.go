package tokenizer

// pieceCache remembers the ids of pieces that are short and were met lately. It has one place for each
// hash, so that its memory and the time of a look-up are bounded whatever the text, and it never
// changes an answer. It belongs to one encoding at a time.
type pieceCache struct {
	places []cachedPiece
}

const (
	cachedBytes = 22
	cachedIDs   = 6
	cachePlaces = 2048 // 96 KiB
)

type cachedPiece struct {
	size, count uint8 // size 0: free
	text        [cachedBytes]byte
	ids         [cachedIDs]int32
}

// append appends the ids of a piece; false if it does not know them.
func (c *pieceCache) append(dst []int32, hash uint64, piece string) ([]int32, bool) {
	if len(c.places) == 0 {
		return dst, false
	}
	p := &c.places[hash>>32%cachePlaces]
	if int(p.size) != len(piece) || string(p.text[:p.size]) != piece {
		return dst, false
	}
	return append(dst, p.ids[:p.count]...), true
}

// put remembers a piece, which is not empty.
func (c *pieceCache) put(hash uint64, piece string, ids []int32) {
	if len(piece) > cachedBytes || len(ids) > cachedIDs {
		return
	}
	if c.places == nil {
		c.places = make([]cachedPiece, cachePlaces)
	}
	p := &c.places[hash>>32%cachePlaces]
	p.size, p.count = uint8(copy(p.text[:], piece)), uint8(copy(p.ids[:], ids))
}
