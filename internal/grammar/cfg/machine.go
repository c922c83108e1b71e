package cfg

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Config is where a machine stands after some text: a set of threads, each a state and a stack of
// returns. Equal sets are one number. Beyond its threads it knows whether the bottom of the stack was
// reached with the last byte: whether the text may end here, or, for a part that Factor cut off, whether it
// leaves the part. Dead has neither.
type Config int32

// Dead is the Config from which no text goes on.
const Dead Config = 0

// Stack is a set of frames to return to, each with the stack below it. Equal ones are one number. Sets of
// sets are what keeps ambiguous grammars polynomial, like Earley's sets or a graph-structured stack.
type Stack int32

const (
	bottom  Stack = 0 // of a text, or of a part
	counted Stack = 1 // bottom of a part inside a counted repetition, with counts from 0 up
)

const (
	retBottom  = -1
	retCounted = -2
)

// elem is one frame to return to: a state, the repetitions done if that is a counter, and what is below.
type elem struct {
	ret, count int32
	up         Stack
}

func compareElems(a, b elem) int {
	if c := cmp.Compare(a.ret, b.ret); c != 0 {
		return c
	}
	if c := cmp.Compare(a.count, b.count); c != 0 {
		return c
	}
	return cmp.Compare(a.up, b.up)
}

type stackNode struct {
	first, n int32
	depth    int32
	count    int32  // the least count of the counted part that it is within
	popped   Config // what goes on after a return; -1: not known yet
	mark     uint32 // the last set of threads for which it was returned to
}

type thread struct {
	state int32
	stack Stack
}

func compareThreads(a, b thread) int {
	if c := cmp.Compare(a.state, b.state); c != 0 {
		return c
	}
	return cmp.Compare(a.stack, b.stack)
}

type configNode struct {
	first, n      int32 // threads
	leave, leaves int32 // counts with which the bottom was reached; 0 outside counted parts
	row           int32 // where its transitions are; -1: not known yet
	cost          int32 // see Machine.Cost
}

// Machine runs a grammar. Its tables grow as texts are matched, up to the limit on memory. It is for one
// goroutine at a time.
type Machine struct {
	g         *Grammar
	limits    Limits
	elems     []elem
	stacks    []stackNode
	stackTab  table
	threads   []thread
	leaves    []int32
	configs   []configNode
	configTab table
	rows      []Next
	start     Config
	err       error

	active  []thread
	pending []pendingCall
	buckets []bucket
	out     []thread
	exits   []int32
	join    []elem
	symbols map[int32]int32
	signed  []uint16 // see signer
	epoch   uint32   // of the set of threads that is being made
	work    int      // since Begin
	deep    bool     // something was left out since Begin because it nests too deep
}

// NewMachine makes a machine with empty tables.
func (g *Grammar) NewMachine() *Machine {
	m := &Machine{g: g, limits: g.limits, stackTab: newTable(), configTab: newTable()}
	m.internStack([]elem{{ret: retBottom}})
	m.internStack([]elem{{ret: retCounted}})
	m.intern(nil, nil)
	m.out = append(m.out[:0], thread{g.frames[0].start, bottom})
	m.exits = m.exits[:0]
	if g.nullable {
		m.exits = append(m.exits, 0)
	}
	m.start = m.intern(m.out, m.exits)
	return m
}

// Start is the Config of the empty text.
func (m *Machine) Start() Config { return m.start }

// maxWork bounds the threads and returns that are looked at for one mask or token, a second at most.
const maxWork = 1 << 22

// Begin begins a new operation, for the limits on depth and work.
func (m *Machine) Begin() { m.work, m.deep = 0, false }

// TooDeep is the limit on depth if, since Begin, what would have gone over it was left out.
func (m *Machine) TooDeep() error {
	if !m.deep {
		return nil
	}
	return overLimit("depth", m.limits.Depth, "levels of nesting")
}

// did counts work.
func (m *Machine) did(n int) {
	if m.work += n; m.work > maxWork {
		m.fail(&LimitError{Limit: "width", Max: fmt.Sprintf("%d steps for the readings of one text", maxWork)})
	}
}

// Err is the limit that the machine went over; from then on all its answers are Dead.
func (m *Machine) Err() error { return m.err }

// Bytes is the memory of the machine's tables.
func (m *Machine) Bytes() int {
	return 12*cap(m.elems) + 24*cap(m.stacks) + 8*cap(m.threads) + 4*cap(m.leaves) + 24*cap(m.configs) +
		4*cap(m.rows) + 4*(len(m.stackTab.slots)+len(m.configTab.slots)) + 2*len(m.signed)
}

// Full says that the tables are over the limit on memory: time for a new machine, see Import.
func (m *Machine) Full() bool { return m.Bytes() > m.limits.Memory }

// MayEnd says that a text may end at c.
func (m *Machine) MayEnd(c Config) bool { return m.configs[c].leaves > 0 }

// Leaves are the counts with which a part's text may leave it at c; {0} outside counted parts.
func (m *Machine) Leaves(c Config) []int32 {
	n := &m.configs[c]
	return m.leaves[n.leave : n.leave+n.leaves]
}

func (m *Machine) threadsOf(c Config) []thread {
	n := &m.configs[c]
	return m.threads[n.first : n.first+n.n]
}

func (m *Machine) elemsOf(k Stack) []elem {
	n := &m.stacks[k]
	return m.elems[n.first : n.first+n.n]
}

func (m *Machine) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *Machine) hashElems(e []elem) uint64 {
	h := m.stackTab.seed
	for _, x := range e {
		h = m.stackTab.mix(h, uint64(uint32(x.ret))<<32|uint64(uint32(x.up)))
		h = m.stackTab.mix(h, uint64(uint32(x.count)))
	}
	return h
}

// internStack is the stack of sorted elems.
func (m *Machine) internStack(e []elem) Stack {
	h := m.hashElems(e)
	if i := m.stackTab.find(h, func(i int32) bool { return slices.Equal(m.elemsOf(Stack(i)), e) }); i >= 0 {
		return Stack(i)
	}
	n := stackNode{first: int32(len(m.elems)), n: int32(len(e)), popped: -1, count: math.MaxInt32}
	for _, x := range e {
		switch {
		case x.ret < 0:
			continue
		case x.up == counted:
			n.count = min(n.count, x.count)
		default:
			n.count = min(n.count, m.stacks[x.up].count)
		}
		n.depth = max(n.depth, m.stacks[x.up].depth+1)
	}
	if len(e) > m.limits.Width {
		m.fail(overLimit("width", m.limits.Width, "readings of one text"))
	}
	m.elems = append(m.elems, e...)
	i := int32(len(m.stacks))
	m.stacks = append(m.stacks, n)
	m.stackTab.put(h, i, func(i int32) uint64 { return m.hashElems(m.elemsOf(Stack(i))) })
	return Stack(i)
}

func (m *Machine) hashThreads(t []thread, leaves []int32) uint64 {
	h := m.configTab.seed
	for _, x := range t {
		h = m.configTab.mix(h, uint64(uint32(x.state))<<32|uint64(uint32(x.stack)))
	}
	for _, l := range leaves {
		h = m.configTab.mix(h, uint64(l)+1)
	}
	return h
}

// intern is the Config of sorted threads and leaves.
func (m *Machine) intern(t []thread, leaves []int32) Config {
	h := m.hashThreads(t, leaves)
	i := m.configTab.find(h, func(i int32) bool {
		return slices.Equal(m.threadsOf(Config(i)), t) && slices.Equal(m.Leaves(Config(i)), leaves)
	})
	if i >= 0 {
		return Config(i)
	}
	if len(t) > m.limits.Width {
		m.fail(overLimit("width", m.limits.Width, "readings of one text"))
		return Dead
	}
	n := configNode{first: int32(len(m.threads)), n: int32(len(t)), leave: int32(len(m.leaves)),
		leaves: int32(len(leaves)), row: -1, cost: m.cost(t, leaves)}
	m.threads = append(m.threads, t...)
	m.leaves = append(m.leaves, leaves...)
	i = int32(len(m.configs))
	m.configs = append(m.configs, n)
	m.configTab.put(h, i, func(i int32) uint64 { return m.hashThreads(m.threadsOf(Config(i)), m.Leaves(Config(i))) })
	if len(m.configs)%256 == 0 && m.Bytes() > 2*m.limits.Memory {
		m.fail(overLimit("memory", m.limits.Memory, "bytes of tables"))
	}
	return Config(i)
}
