package policy

import (
	"fmt"
	"slices"
)

// Table knows which slot holds which expert, and finds slots for those that are missing. Slots are
// numbers of the caller's, which come and go by Give and Take at any moment.
//
// Every layer has a quota. A slot for a missing expert is an empty one, or that of the expert of least worth in
// the layer that is most above its quota, or in the layer itself. Quotas that sum to less than there are slots leave
// the rest in transit: what a layer holds above its quota is judged when the next layer needs
// the slot, by when the layer knows which of all were worth least; what was just read can be among them.
// Where a rule's figures compare across layers and there are slots for a row's experts of all layers (Window says how many these are),
// quotas do not count: the expert of least worth of all goes, where those of layers that come soon are worth more. What is read
// and worth little then waits for that in slots that all layers share, and not in those of its own.
//
// An expert in use is never displaced, and while Window experts of a layer that are worth less are in use, neither is one that is worth
// more: so a prompt that touches every expert of a layer turns Window slots over, and not all.
type Table struct {
	// Window is how many experts of a layer may be on their way through its slots at once; 0 is no bound. At least as many as a row
	// uses, so that all of its misses can be read together.
	Window int

	shape  Shape
	rule   Rule
	where  []int32 // slot by layer × Experts + expert, or none
	holds  []int32 // what a slot has: a position in where, or empty, or gone
	users  []int32 // by slot
	empty  []int32 // slots
	held   []int32 // by layer, experts
	quota  []int32 // by layer
	slots  int
	counts []int64 // demands by layer × Experts + expert, fading with each Rebalance
	order  []int32 // scratch of Rebalance
	global bool    // the rule's figures compare across layers
	cheap  []cheap // by layer
}

// cheap is what goes first of a layer.
type cheap struct {
	worth int64
	slot  int32
	known bool // else it is to be found anew
}

const (
	none  = -1
	empty = -1 // the slot holds nothing
	gone  = -2 // the slot is not the table's
	stale = -3 // the slot's content is of no use, and somebody uses it still
)

// NewTable returns a table without slots and with quotas of 0. The rule is the table's from now on.
func NewTable(s Shape, rule Rule) *Table {
	t := &Table{
		shape: s, rule: rule, where: make([]int32, s.all()), held: make([]int32, s.Layers), quota: make([]int32, s.Layers),
		counts: make([]int64, s.all()), order: make([]int32, s.all()),
	}
	for i := range t.where {
		t.where[i] = none
	}
	_, t.global = rule.(acrossLayers)
	t.cheap = make([]cheap, s.Layers)
	return t
}

// Slots is how many there are.
func (t *Table) Slots() int { return t.slots }

// Held is how many experts of a layer are in memory.
func (t *Table) Held(layer int) int { return int(t.held[layer]) }

// Holds says whether an expert is in memory, and where.
func (t *Table) Holds(layer, expert int) (slot int, ok bool) {
	s := t.where[layer*t.shape.Experts+expert]
	return int(s), s >= 0
}

// Give adds an empty slot.
func (t *Table) Give(slot int) {
	for len(t.holds) <= slot {
		t.holds, t.users = append(t.holds, gone), append(t.users, 0)
	}
	if t.holds[slot] != gone {
		panic(fmt.Sprintf("policy: slot %d is given twice", slot))
	}
	t.holds[slot] = empty
	t.empty = append(t.empty, int32(slot))
	t.slots++
}

// Take removes a slot, an empty one if there is one, else that of the expert that is missed least. It fails if all are
// in use: try again after a Release. Set smaller quotas first.
func (t *Table) Take() (slot int, ok bool) {
	s, ok := t.find(t.fullest())
	if !ok {
		return none, false
	}
	t.holds[s] = gone
	t.slots--
	return int(s), true
}

// Vacate removes a slot. What it holds moves to another one if that is empty or holds what is missed less: to is where, or −1 if
// nothing moves. It fails if the slot is in use.
func (t *Table) Vacate(slot int) (to int, ok bool) {
	if t.users[slot] > 0 || t.holds[slot] == gone {
		return none, false
	}
	t.slots--
	if t.holds[slot] == empty {
		t.empty = slices.DeleteFunc(t.empty, func(s int32) bool { return s == int32(slot) })
		t.holds[slot] = gone
		return none, true
	}
	other, found := t.find(t.fullest())
	if !found {
		t.drop(int32(slot))
		other = int32(slot)
	}
	at := t.holds[slot]
	t.holds[slot] = gone
	if int(other) == slot {
		return none, true
	}
	t.where[at], t.holds[other] = other, at
	t.changed(at)
	return int(other), true
}

// SetQuotas sets how many experts of each layer may stay once others need slots. Nothing is displaced
// now.
func (t *Table) SetQuotas(quotas []int) {
	for i := range t.quota {
		t.quota[i] = int32(quotas[i])
	}
}

// Quotas returns a copy of the quotas.
func (t *Table) Quotas() []int {
	out := make([]int, len(t.quota))
	for i, q := range t.quota {
		out[i] = int(q)
	}
	return out
}

// Visit begins a step's pass through a layer: the rule learns what is needed, and what is in memory is
// in use from now on. slots[i] is the slot of v.Demands[i], or -1: see Load. It returns how many are there.
func (t *Table) Visit(layer int, v Visit, slots []int32) (hits int) {
	t.rule.Observe(layer, v)
	t.cheap[layer].known = false
	base := layer * t.shape.Experts
	for i, d := range v.Demands {
		at := base + int(d.Expert)
		t.counts[at] += countOne
		slots[i] = t.where[at]
		if slots[i] >= 0 {
			t.users[slots[i]]++
			hits++
		}
	}
	return hits
}

// Load finds a slot for an expert that is not in memory, to be read into; it counts as held and in use from now on. It fails if all
// slots that could go are in use: try again after a Release.
func (t *Table) Load(layer, expert int) (slot int, ok bool) {
	at := layer*t.shape.Experts + expert
	if t.where[at] >= 0 {
		panic(fmt.Sprintf("policy: expert %d of layer %d is loaded twice", expert, layer))
	}
	s, ok := t.find(layer)
	if !ok {
		return none, false
	}
	t.where[at], t.holds[s] = s, int32(at)
	t.held[layer]++
	t.users[s]++
	return int(s), true
}

// Empty is how many slots hold nothing.
func (t *Table) Empty() int { return len(t.empty) }

// LoadEmpty is Load that displaces nothing: it takes an empty slot, or fails.
func (t *Table) LoadEmpty(layer, expert int) (slot int, ok bool) {
	if len(t.empty) == 0 {
		return none, false
	}
	return t.Load(layer, expert)
}

// Missing is what is best read into an empty slot: of the layer that holds least of its quota the expert of most worth that
// is not in memory, the first of equal ones. It fails if every expert is.
func (t *Table) Missing() (layer, expert int, ok bool) {
	layer, most := none, int32(0)
	for l, h := range t.held {
		if short := t.quota[l] - h; int(h) < t.shape.Experts && (layer == none || short > most) {
			layer, most = l, short
		}
	}
	if layer == none {
		return none, none, false
	}
	expert = none
	var worth int64
	for e, s := range t.where[layer*t.shape.Experts:][:t.shape.Experts] {
		if w := t.rule.Worth(layer, e); s < 0 && (expert == none || w > worth) {
			expert, worth = e, w
		}
	}
	return layer, expert, true
}

// LoadBeside is Load that displaces none of some other experts of the layer.
func (t *Table) LoadBeside(layer, expert int, others []int32) (slot int, ok bool) {
	use := func(by int32) {
		for _, e := range others {
			if s := t.where[layer*t.shape.Experts+int(e)]; s >= 0 && int(e) != expert {
				t.users[s] += by
			}
		}
	}
	use(1)
	t.cheap[layer].known = false
	slot, ok = t.Load(layer, expert)
	use(-1)
	t.cheap[layer].known = false
	return slot, ok
}

// Release ends one use of a slot.
func (t *Table) Release(slot int) {
	if t.users[slot]--; t.users[slot] < 0 {
		panic(fmt.Sprintf("policy: slot %d is released too often", slot))
	}
	if at := t.holds[slot]; at >= 0 && t.users[slot] == 0 {
		t.rested(at)
	}
	if t.users[slot] == 0 && t.holds[slot] == stale {
		t.holds[slot] = empty
		t.empty = append(t.empty, int32(slot))
	}
}

// Discard forgets the expert that a slot holds, because its read failed. Its users still release it.
func (t *Table) Discard(slot int) {
	if t.holds[slot] < 0 {
		return
	}
	t.drop(int32(slot))
	t.holds[slot] = stale
	if t.users[slot] == 0 {
		t.holds[slot] = empty
		t.empty = append(t.empty, int32(slot))
	}
}

// drop ends that a slot holds an expert.
func (t *Table) drop(slot int32) {
	at := t.holds[slot]
	t.where[at] = none
	t.held[int(at)/t.shape.Experts]--
	t.changed(at)
}

// changed says that another expert of the layer may be the one to go.
func (t *Table) changed(at int32) { t.cheap[int(at)/t.shape.Experts].known = false }

// rested says that an expert is not in use any more.
func (t *Table) rested(at int32) {
	layer := int(at) / t.shape.Experts
	c := &t.cheap[layer]
	if !c.known {
		return
	}
	if w := t.rule.Worth(layer, int(at)%t.shape.Experts); c.slot == none || w < c.worth || w == c.worth && at < t.holds[c.slot] {
		c.slot, c.worth = t.where[at], w
	}
}

// find empties a slot for a layer and takes it off the list of empty ones.
func (t *Table) find(layer int) (slot int32, ok bool) {
	if n := len(t.empty); n > 0 {
		slot, t.empty = t.empty[n-1], t.empty[:n-1]
		return slot, true
	}
	if t.global && t.Window > 0 && t.slots >= t.Window*t.shape.Layers {
		slot = t.cheapest(layer)
		if slot != none {
			t.drop(slot)
		}
		return slot, slot != none
	}
	slot = none
	for most := int32(0); ; {
		// The layer with the largest surplus below the last one tried; layers of equal surplus are tried in one go.
		next := t.surplusBelow(most)
		if next <= 0 {
			break
		}
		if slot = t.leastOf(layer, next); slot != none {
			break
		}
		most = next
	}
	if slot == none {
		slot, _ = t.least(layer)
	}
	if slot == none && t.held[layer] == 0 { // a layer with a quota of 0 needs one all the same
		slot, _ = t.least(t.fullest())
	}
	if slot == none {
		return none, false
	}
	t.drop(slot)
	return slot, true
}

// soon is how many times more an expert is worth whose layer comes next than one of equal worth whose layer was the last one: it
// does its service first, and can go then.
const soon = 3

// cheapest is the slot of the expert of least worth in all layers that may go for one of the given layer.
func (t *Table) cheapest(layer int) int32 {
	best, worth, weighed := int32(none), int64(0), int64(0)
	n := len(t.cheap)
	for i := range n { // layers that come later first
		l := (layer + n - i) % n
		c := &t.cheap[l]
		if !c.known {
			c.slot, c.worth = t.idle(l)
			c.known = true
		}
		if w := c.worth + c.worth*int64(i)*(soon-1)/int64(n); c.slot != none && (best == none || w < weighed) {
			best, worth, weighed = c.slot, c.worth, w
		}
	}
	if best != none && t.usedBelow(layer, worth) >= t.Window {
		return none
	}
	return best
}

// idle is the expert of least worth of a layer that is not in use.
func (t *Table) idle(layer int) (slot int32, worth int64) {
	slot = none
	for e, s := range t.where[layer*t.shape.Experts:][:t.shape.Experts] {
		if s >= 0 && t.users[s] == 0 {
			if w := t.rule.Worth(layer, e); slot == none || w < worth {
				slot, worth = s, w
			}
		}
	}
	return slot, worth
}

// surplusBelow is the largest surplus over a quota that is below a bound, where 0 is no bound.
func (t *Table) surplusBelow(bound int32) int32 {
	best := int32(0)
	for i, h := range t.held {
		if s := h - t.quota[i]; s > best && (bound == 0 || s < bound) {
			best = s
		}
	}
	return best
}

// leastOf is the expert of least worth in the first layer with that surplus that has one that may go, starting
// behind the given layer: the layer that was visited longest ago comes first, the layer itself last.
func (t *Table) leastOf(layer int, surplus int32) int32 {
	for i := range t.held {
		l := (layer + 1 + i) % len(t.held)
		if t.held[l]-t.quota[l] != surplus {
			continue
		}
		if slot, _ := t.least(l); slot != none {
			return slot
		}
	}
	return none
}

// least is the slot of the expert of least worth in a layer that may go, the first of equal ones.
func (t *Table) least(layer int) (slot int32, worth int64) {
	slot = none
	base := layer * t.shape.Experts
	used := false
	for e, s := range t.where[base:][:t.shape.Experts] {
		switch {
		case s < 0:
		case t.users[s] > 0:
			used = true
		default:
			if w := t.rule.Worth(layer, e); slot == none || w < worth {
				slot, worth = s, w
			}
		}
	}
	if used && slot != none && t.Window > 0 && t.usedBelow(layer, worth) >= t.Window {
		slot = none
	}
	return slot, worth
}

// usedBelow is how many experts of a layer are in use and worth less.
func (t *Table) usedBelow(layer int, worth int64) (n int) {
	base := layer * t.shape.Experts
	for e, s := range t.where[base:][:t.shape.Experts] {
		if s >= 0 && t.users[s] > 0 && t.rule.Worth(layer, e) < worth {
			n++
		}
	}
	return n
}

// fullest is the layer that holds most above its quota and has an idle expert, or else any.
func (t *Table) fullest() int {
	best, most := 0, int32(0)
	for l := range t.held {
		s := t.held[l] - t.quota[l]
		if slot, _ := t.least(l); slot != none && (most == 0 || s >= most) {
			best, most = l, max(s, 1)
		}
	}
	return best
}

const countOne = 16 // leaves room for fading

// Rebalance sets quotas from what was demanded since the last ones, older demands counting half each time; transit slots stay outside. It
// takes about a millisecond for 10,000 experts: call it every few dozen steps.
func (t *Table) Rebalance(transit int) {
	t.Share(t.slots - transit)
	for i := range t.counts {
		t.counts[i] >>= 1
	}
}

// Share cuts so many slots into quotas: the layers whose next expert is needed most get the next slot, and each layer has at least its
// equal share over 4. Call it when the number of slots changes.
func (t *Table) Share(slots int) {
	slots = max(slots, 0)
	floor := min(slots/len(t.quota)/4, t.shape.Experts)
	for i := range t.order {
		t.order[i] = int32(i)
	}
	for l := range t.quota {
		t.quota[l] = int32(floor)
		busiest(t.order[l*t.shape.Experts:][:t.shape.Experts], t.counts)
	}
	t.share(slots - floor*len(t.quota))
}

// busiest sorts experts by falling counts, equal ones by number.
func busiest(order []int32, counts []int64) {
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case counts[a] != counts[b] && counts[a] > counts[b]:
			return -1
		case counts[a] != counts[b]:
			return 1
		}
		return int(a - b)
	})
}

// share gives slots one by one to the layer whose next expert was demanded most, the one with the fewest among equals.
func (t *Table) share(slots int) {
	for ; slots > 0; slots-- {
		best, most := none, int64(-1)
		for l, q := range t.quota {
			if int(q) == t.shape.Experts {
				continue
			}
			c := t.counts[t.order[l*t.shape.Experts+int(q)]]
			if c > most || c == most && q < t.quota[best] {
				best, most = l, c
			}
		}
		if best == none {
			return
		}
		t.quota[best]++
	}
}
