package wire

// What values may take on the heap where they are decoded, in bytes: the largest structs of requests, and slices that
// are copied while they grow.
const (
	partWeight  = 512 // an object or a list
	textWeight  = 128 // a string, or a name
	valueWeight = 32  // whatever follows a comma
)

// Weigh bounds the heap that decoding a JSON text may take beside the text itself. A text of small values takes many
// times its length: `"",` is three bytes, and a string in a struct may be 40. Texts that are not valid have a weight, too.
func Weigh(data []byte) (bytes int64) {
	s := scanner{data: data}
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case '"':
			bytes += textWeight
			s.text()
			continue
		case '{', '[':
			bytes += partWeight
		case ',':
			bytes += valueWeight
		}
		s.at++
	}
	return bytes
}
