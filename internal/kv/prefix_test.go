package kv

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway/spillway/internal/budget"
)

// tokens are ids that depend on seed from position from on; before it they are the same for all seeds.
func tokens(n, from int, seed int32) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
		if i >= from {
			ids[i] += 1000 * seed
		}
	}
	return ids
}

// filled is a sequence that shares and has computed and published ids.
func filled(t *testing.T, c *Cache, ids []int32) *Sequence {
	t.Helper()
	s := c.NewSequence()
	s.Share(Root("test"))
	if err := s.Grow(len(ids)); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(ids, len(ids)); err != nil {
		t.Fatal(err)
	}
	return s
}

func release(t *testing.T, seqs ...*Sequence) {
	t.Helper()
	for _, s := range seqs {
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// reused is what a new sequence finds of ids.
func reused(t *testing.T, c *Cache, root Key, ids []int32) int {
	t.Helper()
	s := c.NewSequence()
	s.Share(root)
	defer release(t, s)
	return s.Reuse(ids)
}

func TestReuse(t *testing.T) {
	block := int64(shape().BlockBytes())
	c := open(t, budget.New(20*block), 20*block)
	ids := tokens(50, 50, 0)
	s := filled(t, c, ids)
	for _, x := range []struct {
		name string
		root Key
		ids  []int32
		want int
	}{
		{"the same", Root("test"), ids, 48},
		{"whole blocks, the last token apart", Root("test"), ids[:48], 32},
		{"one more", Root("test"), ids[:49], 48},
		{"another end", Root("test"), tokens(60, 40, 1), 32},
		{"another beginning", Root("test"), tokens(60, 0, 1), 0},
		{"another model", Root("tes", "t"), ids, 0},
	} {
		if got := reused(t, c, x.root, x.ids); got != x.want {
			t.Errorf("%s: %d positions found, expected %d", x.name, got, x.want)
		}
	}
	release(t, s)
	if got := reused(t, c, Root("test"), ids); got != 48 {
		t.Errorf("%d positions found of a sequence that is gone", got)
	}
	if st := c.Stats(); st.Used != 0 || st.Idle != 3 || st.Blocks != 20 || st.Hit == 0 || st.Queried == 0 {
		t.Errorf("%+v", st)
	}
}

// What was used longest ago goes first, and of one prefix the end before the beginning.
func TestEviction(t *testing.T) {
	block := int64(shape().BlockBytes())
	c := open(t, budget.New(6*block), 6*block)
	old, young := tokens(49, 0, 1), tokens(49, 0, 2)
	release(t, filled(t, c, old)) // 3 blocks of 4 stay
	release(t, filled(t, c, young))
	if n := reused(t, c, Root("test"), old); n != 32 && n != 48 {
		t.Errorf("%d positions of the older", n)
	}
	s := c.NewSequence() // now the younger is what was used longest ago
	if err := s.Grow(3 * BlockTokens); err != nil {
		t.Fatal(err)
	}
	if a, b := reused(t, c, Root("test"), old), reused(t, c, Root("test"), young); a < 32 || b > 16 {
		t.Errorf("%d positions of the one used last, %d of the other", a, b)
	}
	if err := s.Grow(6 * BlockTokens); err != nil {
		t.Errorf("idle blocks did not make room: %v", err)
	}
	if err := s.Grow(7 * BlockTokens); err == nil {
		t.Error("more blocks than there are")
	}
	release(t, s)
	if st := c.Stats(); st.Evictions == 0 || st.Idle != 0 {
		t.Errorf("%+v", st)
	}
}

// The ledger gets idle blocks back when others need memory, down to what the cache keeps.
func TestShrink(t *testing.T) {
	block := int64(shape().BlockBytes())
	l := budget.New(10 * block)
	c := open(t, l, 8*block)
	c.Yield(3 * block)
	s := filled(t, c, tokens(33, 0, 1))
	release(t, filled(t, c, tokens(65, 0, 2)))
	lease, err := l.Reserve(budget.Weights, 6*block, "others")
	if err != nil {
		t.Fatal(err)
	}
	if st := c.Stats(); st.Blocks != 4 || st.Used != 3 {
		t.Errorf("%+v", st)
	}
	if _, err := l.Reserve(budget.Weights, 2*block, "others"); err == nil {
		t.Error("the ledger took what the cache keeps or uses")
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	if n := c.Room(); n != 5 {
		t.Errorf("room for %d more blocks", n)
	}
	if err := s.Grow(8 * BlockTokens); err != nil {
		t.Errorf("what is free again is of no use: %v", err)
	}
	if err := s.Grow(9 * BlockTokens); err == nil || c.Room() != 0 {
		t.Errorf("more than was promised: %v, room for %d", err, c.Room())
	}
	release(t, s)
}

// mark is what position i of a sequence with these ids holds in the tests.
func mark(ids []int32, i int) []byte {
	k := Root("content")
	for j := 0; j <= i; j++ {
		k = k.next(ids[j : j+1])
	}
	return k[:8]
}

// write puts marks at positions [from, to) into the first layer's keys.
func write(s *Sequence, ids []int32, from, to int) {
	k, _ := s.View(0, nil, nil)
	for i := from; i < to; i++ {
		copy(k[i/BlockTokens][i%BlockTokens*8:], mark(ids, i))
	}
}

// check compares the marks of the first n positions.
func check(t interface{ Fatalf(string, ...any) }, s *Sequence, ids []int32, n int) {
	k, _ := s.View(0, nil, nil)
	for i := range n {
		if got := k[i/BlockTokens][i%BlockTokens*8:][:8]; !bytes.Equal(got, mark(ids, i)) {
			t.Fatalf("position %d of %v holds %x", i, ids, binary.BigEndian.Uint64(got))
		}
	}
}

// party is a sequence and what it must hold.
type party struct {
	s   *Sequence
	ids []int32
	n   int // positions that are written
}

// Whatever sequences do, alone and to each other, each sees its own tokens' content; and nothing is left at the end.
func TestSequencesDoNotSeeEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := int64(shape().BlockBytes())
		l := budget.New(40 * block)
		c, err := New(l, shape(), rapid.Int64Range(0, 30).Draw(t, "promise")*block)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "yields") {
			c.Yield(0)
		}
		var all []*party
		pick := func() *party { return all[rapid.IntRange(0, len(all)-1).Draw(t, "who")] }
		grow := func(p *party, n int) {
			for len(p.ids) < n {
				p.ids = append(p.ids, rapid.Int32Range(0, 1).Draw(t, "token"))
			}
			if p.s.Grow(n) == nil {
				write(p.s, p.ids, p.n, n)
				p.n = max(p.n, n)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 6).Draw(t, "op"); {
			case op == 0 || len(all) == 0:
				p := &party{s: c.NewSequence(), ids: bytes32(rapid.IntRange(17, 70).Draw(t, "length"))}
				p.s.Share(Root("test"))
				p.n = p.s.Reuse(p.ids)
				all = append(all, p)
			case op == 1 || op == 2:
				p := pick()
				grow(p, p.n+rapid.IntRange(1, 40).Draw(t, "more"))
			case op == 3:
				if p := pick(); p.s.Publish(p.ids, p.n) != nil {
					t.Fatal("publish")
				}
			case op == 4:
				p := pick()
				all = append(all, &party{p.s.Fork(), append([]int32(nil), p.ids...), p.n})
			case op == 5:
				p := pick()
				p.n = rapid.IntRange(0, p.n).Draw(t, "cut")
				p.ids = p.ids[:p.n]
				if err := p.s.Cut(p.n); err != nil {
					t.Fatal(err)
				}
			default:
				c.Shrink(rapid.Int64Range(1, 10).Draw(t, "shrink") * block)
			}
			for _, p := range all {
				check(t, p.s, p.ids, p.n)
			}
		}
		for _, p := range all {
			if err := p.s.Release(); err != nil {
				t.Fatal(err)
			}
		}
		if s := c.Stats(); s.Used != 0 {
			t.Fatalf("left behind: %+v", s)
		}
		if err := c.Close(); err != nil || l.Snapshot().Used != 0 {
			t.Fatalf("%v, %d bytes are leased", err, l.Snapshot().Used)
		}
	})
}

// bytes32 is n tokens of zero: prompts that begin alike.
func bytes32(n int) []int32 { return make([]int32, n) }
