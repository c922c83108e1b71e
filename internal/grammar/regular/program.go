package regular

// An instruction is a state of a nondeterministic automaton. Without arcs and test it is passed for free.
type instruction struct {
	free []int32 // where to go without a byte
	arcs []arc
	test kind  // kindStart, kindEnd, kindBoundary, kindNotBoundary, kindAhead; else kindSequence: no test
	look *node // of kindAhead
}

// An arc is taken by a byte from lo to hi.
type arc struct {
	lo, hi byte
	to     int32
}

// A program is a nondeterministic automaton: it begins at 0 and accepts at final.
type program struct {
	b     *Builder
	code  []instruction
	final int32
	all   int32 // from here on any text is accepted; dead if there is no such place
}

// mostInstructions bounds programs by the states that the automaton may have: the two are alike in size.
func (b *Builder) mostInstructions() int { return 8 * b.limits.States }

// program makes the automaton of n.
func (b *Builder) program(n *node) (*program, error) {
	if size := b.size(n, b.mostInstructions()+1); size > b.mostInstructions() {
		return nil, &LimitError{"states", b.limits.States}
	}
	p := &program{b: b, all: dead}
	start := p.add()
	end, err := p.build(n, start)
	p.final = end
	return p, err
}

// search makes the automaton of all texts that have n somewhere.
func (b *Builder) search(n *node) (*program, error) {
	p, err := b.program(sequence(anything(), n))
	if err != nil {
		return nil, err
	}
	p.all = p.final
	p.final, err = p.build(anything(), p.all)
	return p, err
}

// size is how many instructions n takes, or most if it is more.
func (b *Builder) size(n *node, most int) int {
	total := 1
	switch n.kind {
	case kindSet:
		if d, err := b.set(n.set); err == nil { // else building it fails, too
			total = d.States() + 1
		}
	case kindDFA:
		total = n.dfa.States() + 1
	case kindSequence, kindEither, kindRepeat:
		for _, s := range n.subs {
			total += b.size(s, most)
			if total >= most {
				return most
			}
		}
		if n.kind == kindRepeat {
			times := max(n.min, n.max, 1)
			if total >= most/times {
				return most
			}
			total *= times
		}
	}
	return min(total, most)
}

func (p *program) add() int32 {
	p.code = append(p.code, instruction{})
	return int32(len(p.code) - 1)
}

func (p *program) link(from, to int32) { p.code[from].free = append(p.code[from].free, to) }

// build appends the automaton of n after an instruction, and gives the one at its end.
func (p *program) build(n *node, from int32) (int32, error) {
	if len(p.code) > p.b.mostInstructions() {
		return 0, &LimitError{"states", p.b.limits.States}
	}
	switch n.kind {
	case kindSequence:
		return p.buildSequence(n.subs, from)
	case kindSet:
		d, err := p.b.set(n.set)
		if err != nil {
			return 0, err
		}
		return p.embed(d, from)
	case kindDFA:
		return p.embed(n.dfa, from)
	case kindEither:
		end := p.add()
		for _, s := range n.subs {
			begin := p.add()
			p.link(from, begin)
			e, err := p.build(s, begin)
			if err != nil {
				return 0, err
			}
			p.link(e, end)
		}
		return end, nil
	case kindRepeat:
		return p.buildRepeat(n, from)
	}
	test, end := p.add(), p.add()
	p.link(from, test)
	p.code[test].test, p.code[test].look = n.kind, n
	p.link(test, end)
	return end, p.b.step(2)
}

func (p *program) buildSequence(subs []*node, from int32) (int32, error) {
	for _, s := range subs {
		var err error
		if from, err = p.build(s, from); err != nil {
			return 0, err
		}
	}
	return from, nil
}

func (p *program) buildRepeat(n *node, from int32) (end int32, err error) {
	for range n.min {
		if from, err = p.build(n.subs[0], from); err != nil {
			return 0, err
		}
	}
	if n.max < 0 {
		loop := p.add()
		p.link(from, loop)
		begin := p.add()
		p.link(loop, begin)
		if end, err = p.build(n.subs[0], begin); err != nil {
			return 0, err
		}
		p.link(end, loop)
		end = p.add()
		p.link(loop, end)
		return end, nil
	}
	end = p.add()
	for range n.max - n.min {
		p.link(from, end)
		begin := p.add()
		p.link(from, begin)
		if from, err = p.build(n.subs[0], begin); err != nil {
			return 0, err
		}
	}
	p.link(from, end)
	return end, nil
}

// embed copies an automaton.
func (p *program) embed(d *DFA, from int32) (int32, error) {
	base := int32(len(p.code))
	for range d.States() {
		p.add()
	}
	end := p.add()
	p.link(from, base)
	for s := range d.States() {
		in := &p.code[base+int32(s)]
		d.Edges(s, func(lo, hi byte, to int) { in.arcs = append(in.arcs, arc{lo, hi, base + int32(to)}) })
		if d.accept[s] {
			in.free = append(in.free, end)
		}
	}
	return end, p.b.step(d.States())
}

// useful marks the instructions from which the end can be reached once the start of the text is left.
func (p *program) useful() []bool {
	back := make([][]int32, len(p.code))
	for i, in := range p.code {
		for _, a := range in.arcs {
			back[a.to] = append(back[a.to], int32(i))
		}
		if in.test == kindStart {
			continue
		}
		for _, f := range in.free {
			back[f] = append(back[f], int32(i))
		}
	}
	useful := make([]bool, len(p.code))
	useful[p.final] = true
	for work := []int32{p.final}; len(work) > 0; {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		for _, from := range back[at] {
			if !useful[from] {
				useful[from] = true
				work = append(work, from)
			}
		}
	}
	return useful
}
