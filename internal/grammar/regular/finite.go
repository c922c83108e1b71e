package regular

// Finite says whether the language has finitely many texts.
func (d *DFA) Finite() bool {
	const open, done = 1, 2
	mark := make([]uint8, d.States())
	type frame struct{ state, column int }
	stack := []frame{{}}
	mark[0] = open
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.column == d.columns {
			mark[f.state] = done
			stack = stack[:len(stack)-1]
			continue
		}
		to := d.next[f.state*d.columns+f.column]
		f.column++
		if to < 0 || mark[to] == done {
			continue
		}
		if mark[to] == open {
			return false
		}
		mark[to] = open
		stack = append(stack, frame{state: int(to)})
	}
	return true
}

// Strings has the texts of the language in the order of their bytes, if there are at most most of them.
func (d *DFA) Strings(most int) (texts []string, all bool) {
	if !d.Finite() {
		return nil, false
	}
	var text []byte
	var walk func(state int) bool
	walk = func(state int) bool {
		if d.accept[state] {
			if len(texts) == most {
				return false
			}
			texts = append(texts, string(text))
		}
		for c := range 256 {
			to := d.Next(state, byte(c))
			if to < 0 {
				continue
			}
			text = append(text, byte(c))
			if !walk(to) {
				return false
			}
			text = text[:len(text)-1]
		}
		return true
	}
	if !walk(0) {
		return nil, false
	}
	return texts, true
}

// Shortest is a shortest text of the language; ok is false if there is none.
func (d *DFA) Shortest() (text string, ok bool) {
	if d.Empty() {
		return "", false
	}
	type step struct {
		from int32
		c    byte
	}
	came := map[int32]step{0: {dead, 0}}
	for queue := []int32{0}; ; queue = queue[1:] {
		s := queue[0]
		if d.accept[s] {
			var reversed []byte
			for ; came[s].from >= 0; s = came[s].from {
				reversed = append(reversed, came[s].c)
			}
			for i := len(reversed) - 1; i >= 0; i-- {
				text += string(reversed[i : i+1])
			}
			return text, true
		}
		for c := range 256 {
			to := int32(d.Next(int(s), byte(c)))
			if _, known := came[to]; to >= 0 && !known {
				came[to] = step{s, byte(c)}
				queue = append(queue, to)
			}
		}
	}
}
