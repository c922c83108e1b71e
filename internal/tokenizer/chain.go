package tokenizer

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
)

// A chunk is a part of what ids become on their way to text.
type chunk struct {
	b      []byte
	isByte bool // of a byte-fallback token
}

// A stage is one decoder of tokenizer.json. It makes chunks of chunks for one sequence. What it gives is
// valid until emit returns: the next stage copies what it keeps.
type stage interface {
	push(c chunk, emit func(chunk))
	end(emit func(chunk))
}

// A stageKind begins a stage for a new sequence. After a stage that fuses, all chunks are parts of one
// token. If started, the sequence has begun elsewhere.
type stageKind interface {
	begin(fused, started bool) stage
	fuses() bool
}

// chain is a decoder of stages, as the Sequence of tokenizer.json.
type chain []stageKind

func (c chain) begin(started bool) flow {
	f := make(flow, 0, len(c))
	fused := false
	for _, kind := range c {
		if s := kind.begin(fused, started); s != nil {
			f = append(f, s)
		}
		fused = fused || kind.fuses()
	}
	return f
}

// flow is a chain at work.
type flow []stage

func (f flow) push(c chunk, emit func(chunk)) {
	if len(f) == 0 {
		emit(c)
		return
	}
	f[0].push(c, func(c chunk) { f[1:].push(c, emit) })
}

// bind is push for many chunks.
func (f flow) bind(emit func(chunk)) func(chunk) {
	for _, s := range slices.Backward(f) {
		next := emit
		emit = func(c chunk) { s.push(c, next) }
	}
	return emit
}

func (f flow) end(emit func(chunk)) {
	for i := range f {
		f[i].end(func(c chunk) { f[i+1:].push(c, emit) })
	}
}

// noEnd is for stages that hold nothing back.
type noEnd struct{}

func (noEnd) end(func(chunk)) {}

// perToken is for kinds that keep tokens apart.
type perToken struct{}

func (perToken) fuses() bool { return false }

// fuse makes one token of all.
type fuse struct{}

func (fuse) begin(bool, bool) stage { return nil }
func (fuse) fuses() bool            { return true }

// byteFallback makes bytes of tokens that are written <0x0A>. A run of them that is no UTF-8 becomes
// U+FFFD where text is made of chunks.
type byteFallback struct{ perToken }

func (byteFallback) begin(bool, bool) stage { return byteFallbackStage{} }

type byteFallbackStage struct{ noEnd }

func (byteFallbackStage) push(c chunk, emit func(chunk)) {
	if c.isByte {
		b, _ := byteOf(c.b)
		c.b = []byte{b}
	}
	emit(c)
}

// byteOf reads a token that is written <0x0A> or <0x0a>.
func byteOf(token []byte) (byte, bool) {
	if len(token) != 6 || string(token[:3]) != "<0x" || token[5] != '>' {
		return 0, false
	}
	var b [1]byte
	_, err := hex.Decode(b[:], token[3:5])
	return b[0], err == nil
}

// byteChars maps the printable characters of byte-level tokens to their bytes.
type byteChars struct{}

func (byteChars) begin(bool, bool) stage { return byteCharsStage{} }
func (byteChars) fuses() bool            { return true }

type byteCharsStage struct{ noEnd }

func (byteCharsStage) push(c chunk, emit func(chunk)) { emit(chunk{b: unmapped(nil, c.b)}) }

// swap is the Replace decoder with a fixed string.
type swap struct {
	perToken
	old, new string
}

func (s swap) begin(fused, _ bool) stage {
	if s.old == "" {
		return nil
	}
	return &swapStage{kind: s, fused: fused}
}

type swapStage struct {
	kind  swap
	fused bool
	held  []byte // of a fused token: what may be the beginning of old
	out   []byte // scratch
}

func (s *swapStage) push(c chunk, emit func(chunk)) {
	if c.isByte && !s.fused {
		emit(c)
		return
	}
	old := []byte(s.kind.old)
	b := c.b
	if !s.fused || len(s.held) == 0 && !c.isByte && len(old) == 1 {
		s.out = appendReplaced(s.out[:0], b, s.kind.old, s.kind.new)
		emit(chunk{b: s.out})
		return
	}
	b = append(s.held, b...)
	var out []byte
	for {
		at := bytes.Index(b, old)
		if at < 0 {
			break
		}
		out = append(append(out, b[:at]...), s.kind.new...)
		b = b[at+len(old):]
	}
	keep := min(len(old)-1, len(b))
	for keep > 0 && !bytes.HasPrefix(old, b[len(b)-keep:]) {
		keep--
	}
	out = append(out, b[:len(b)-keep]...)
	s.held = bytes.Clone(b[len(b)-keep:])
	emit(chunk{b: out, isByte: c.isByte && len(s.held) == 0 && bytes.Equal(out, c.b)})
}

// appendReplaced appends b to dst with new in the place of old, which is not empty.
func appendReplaced(dst, b []byte, old, new string) []byte {
	for {
		at := bytes.Index(b, []byte(old))
		if at < 0 {
			return append(dst, b...)
		}
		dst = append(append(dst, b[:at]...), new...)
		b = b[at+len(old):]
	}
}

func (s *swapStage) end(emit func(chunk)) {
	if len(s.held) > 0 {
		emit(chunk{b: s.held})
		s.held = nil
	}
}

// swapPattern is the Replace decoder with a pattern. Of a fused token everything is held back.
type swapPattern struct {
	perToken
	n replacePattern
}

func (s swapPattern) begin(fused, _ bool) stage { return &swapPatternStage{kind: s, fused: fused} }

type swapPatternStage struct {
	kind  swapPattern
	fused bool
	held  []byte
}

func (s *swapPatternStage) push(c chunk, emit func(chunk)) {
	switch {
	case s.fused:
		s.held = append(s.held, c.b...)
	case c.isByte:
		emit(c)
	default:
		emit(chunk{b: []byte(s.kind.n.normalize(string(c.b)))})
	}
}

func (s *swapPatternStage) end(emit func(chunk)) {
	if len(s.held) > 0 {
		emit(chunk{b: []byte(s.kind.n.normalize(string(s.held)))})
		s.held = nil
	}
}

// trim is the Strip decoder: up to start characters from the beginning of a token and up to stop from its
// end, as long as they are content.
type trim struct {
	perToken
	content     string
	start, stop int
}

func (t trim) begin(fused, started bool) stage {
	return &trimStage{kind: t, fused: fused, left: t.left(fused && started)}
}

func (t trim) left(started bool) int {
	if started {
		return 0
	}
	return t.start
}

// token trims a token that stands for itself.
func (t trim) token(b []byte) []byte {
	for i, ok := 0, true; i < t.start && ok; i++ {
		b, ok = bytes.CutPrefix(b, []byte(t.content))
	}
	for i, ok := 0, true; i < t.stop && ok; i++ {
		b, ok = bytes.CutSuffix(b, []byte(t.content))
	}
	return b
}

type trimStage struct {
	kind  trim
	fused bool
	left  int // that may still be taken from the beginning
	held  int // contents at the end
}

func (s *trimStage) push(c chunk, emit func(chunk)) {
	content := []byte(s.kind.content)
	if !s.fused {
		emit(chunk{s.kind.token(c.b), c.isByte})
		return
	}
	b := c.b
	for s.left > 0 && len(b) > 0 {
		rest, ok := bytes.CutPrefix(b, content)
		if !ok {
			s.left = 0
			break
		}
		b = rest
		s.left--
	}
	if len(b) == 0 {
		return
	}
	if s.kind.stop == 0 {
		emit(chunk{b, c.isByte})
		return
	}
	all := bytes.Repeat(content, s.held)
	body, n := b, 0
	for bytes.HasSuffix(body, content) {
		body = body[:len(body)-len(content)]
		n++
	}
	if len(body) == 0 {
		n += s.held
	} else {
		emit(chunk{append(all, body...), c.isByte})
	}
	s.held = min(n, s.kind.stop)
	if over := n - s.held; over > 0 {
		emit(chunk{b: bytes.Repeat(content, over), isByte: c.isByte})
	}
}

func (s *trimStage) end(func(chunk)) { s.held = 0 }

// indexed tells the first token of a sequence from the others.
type indexed struct {
	noEnd
	fused bool
	later bool
}

// first reports whether this is the first token; a fused token is.
func (s *indexed) first() bool {
	first := !s.later
	if !s.fused {
		s.later = true
	}
	return first
}

// unspace is the Metaspace decoder: a mark is a space, or nothing in the first token.
type unspace struct {
	perToken
	mark string
	drop bool
}

func (u unspace) begin(fused, started bool) stage {
	return &unspaceStage{indexed: indexed{fused: fused, later: started && !fused}, kind: u}
}

type unspaceStage struct {
	indexed
	kind unspace
	out  []byte // scratch
}

func (s *unspaceStage) push(c chunk, emit func(chunk)) {
	space := " "
	if s.first() && s.kind.drop {
		space = ""
	}
	s.out = appendReplaced(s.out[:0], c.b, s.kind.mark, space)
	emit(chunk{s.out, c.isByte})
}

// wordPieces is the WordPiece decoder: a space before tokens that do not continue a word.
type wordPieces struct {
	perToken
	prefix  string
	cleanup bool
}

func (w wordPieces) begin(fused, started bool) stage {
	return &wordPiecesStage{indexed{fused: fused, later: started && !fused}, w}
}

type wordPiecesStage struct {
	indexed
	kind wordPieces
}

func (s *wordPiecesStage) push(c chunk, emit func(chunk)) {
	text := string(c.b)
	if !s.first() {
		if rest, ok := strings.CutPrefix(text, s.kind.prefix); ok {
			text = rest
		} else {
			text = " " + text
		}
	}
	if s.kind.cleanup {
		text = cleanUp(text)
	}
	emit(chunk{b: []byte(text)})
}

// cleanUp removes the spaces that English has not, as the WordPiece and CTC decoders do to each token.
func cleanUp(text string) string {
	for _, pair := range [...][2]string{{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}} {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

// suffixed is the BPEDecoder: a mark at the end of words is a space, but not in the last token.
type suffixed struct {
	perToken
	suffix string
}

func (s suffixed) begin(fused, _ bool) stage {
	if s.suffix == "" {
		return nil
	}
	return &suffixedStage{kind: s, fused: fused}
}

type suffixedStage struct {
	kind  suffixed
	fused bool
	held  []byte // the last token, from its first suffix on
}

func (s *suffixedStage) push(c chunk, emit func(chunk)) {
	suffix := []byte(s.kind.suffix)
	if len(s.held) > 0 && !s.fused {
		emit(chunk{b: bytes.ReplaceAll(s.held, suffix, []byte{' '})})
		s.held = nil
	}
	b := c.b
	if s.fused {
		b = append(s.held, b...)
	}
	at := bytes.Index(b, suffix)
	if at < 0 {
		if !s.fused {
			emit(chunk{b, c.isByte})
			return
		}
		at = max(0, len(b)-len(suffix)+1)
	}
	if at > 0 {
		emit(chunk{b: b[:at], isByte: c.isByte})
	} else if s.fused { // b is ours, and may be long
		s.held = b
		return
	}
	s.held = bytes.Clone(b[at:])
}

func (s *suffixedStage) end(emit func(chunk)) {
	if len(s.held) > 0 {
		emit(chunk{b: bytes.ReplaceAll(s.held, []byte(s.kind.suffix), nil)})
		s.held = nil
	}
}

// ctc is the CTC decoder: repeated tokens are one, the pad is nothing.
type ctc struct {
	perToken
	pad, delimiter string
	cleanup        bool
}

func (k ctc) begin(bool, bool) stage { return &ctcStage{kind: k} }

type ctcStage struct {
	noEnd
	kind ctc
	last []byte // nil before the first token
}

func (s *ctcStage) push(c chunk, emit func(chunk)) {
	if s.last != nil && bytes.Equal(s.last, c.b) {
		return
	}
	s.last = append([]byte{}, c.b...)
	text := string(c.b)
	if s.kind.pad != "" {
		text = strings.ReplaceAll(text, s.kind.pad, "")
	}
	if s.kind.cleanup {
		text = cleanUp(text)
		if s.kind.delimiter != "" {
			text = strings.ReplaceAll(text, s.kind.delimiter, " ")
		}
	}
	if text != "" {
		emit(chunk{b: []byte(text)})
	}
}

// joined puts a space between tokens, as Hugging Face does where a file has no decoder.
type joined struct{ perToken }

func (joined) begin(fused, started bool) stage {
	return &joinedStage{indexed{fused: fused, later: started && !fused}}
}

type joinedStage struct{ indexed }

func (s *joinedStage) push(c chunk, emit func(chunk)) {
	if !s.first() {
		c.b = append([]byte{' '}, c.b...)
	}
	emit(c)
}
