package openai

import (
	"container/list"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/spillway/spillway/internal/server"
)

// A store keeps responses for GET and for requests that go on from them, the last used ones, in memory that
// is leased ahead.
type store struct {
	most int64

	mu      sync.Mutex
	used    int64
	records map[string]*list.Element // of *record
	order   *list.List               // the last used first
}

// A record is a response that is stored. What it goes on from stays as long as it does.
type record struct {
	id       string
	previous *record
	response json.RawMessage
	input    []json.RawMessage // items of the request
	output   []json.RawMessage // items of the answer
	bytes    int64
	holders  int // the store, and records that go on from it
}

// recordBytes is what a record costs beside its texts.
const recordBytes = 1 << 10

func newStore(s *server.Server) (*store, error) {
	st := &store{most: min(max(s.Runtime().Memory()/128, 256<<10), 16<<20)}
	st.init()
	return st, s.Reserve(st.most, "stored responses")
}

func (st *store) init() { st.records, st.order = map[string]*list.Element{}, list.New() }

// put stores a response, and lets those go that were not used for the longest time.
func (st *store) put(r *record) {
	r.bytes = recordBytes + int64(len(r.response))
	for _, texts := range [][]json.RawMessage{r.input, r.output} {
		for _, t := range texts {
			r.bytes += int64(len(t))
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if r.previous != nil {
		r.previous.holders++
	}
	r.holders = 1
	st.used += r.bytes
	st.records[r.id] = st.order.PushFront(r)
	for st.used > st.most && st.order.Len() > 0 {
		st.remove(st.order.Back())
	}
}

// remove forgets a record. The lock is held.
func (st *store) remove(e *list.Element) {
	r := st.order.Remove(e).(*record)
	delete(st.records, r.id)
	st.drop(r)
}

// drop ends one hold of a record.
func (st *store) drop(r *record) {
	for ; r != nil; r = r.previous {
		if r.holders--; r.holders > 0 {
			return
		}
		st.used -= r.bytes
	}
}

// get returns a record, held until drop.
func (st *store) get(id string) *record {
	st.mu.Lock()
	defer st.mu.Unlock()
	e := st.records[id]
	if e == nil {
		return nil
	}
	st.order.MoveToFront(e)
	r := e.Value.(*record)
	r.holders++
	return r
}

func (st *store) release(r *record) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.drop(r)
}

// history are the items of a conversation up to and with a record.
func (r *record) history() []json.RawMessage {
	var chain []*record
	for ; r != nil; r = r.previous {
		chain = append(chain, r)
	}
	var all []json.RawMessage
	for i := len(chain) - 1; i >= 0; i-- {
		all = append(append(all, chain[i].input...), chain[i].output...)
	}
	return all
}

// record is the stored response that a path names, held until the exchange ends.
func (a *api) record(x *server.Exchange, id string) (*record, error) {
	r := a.store.get(id)
	if r == nil {
		return nil, &server.Error{Status: http.StatusNotFound, Code: server.CodeNotFound,
			Message: fmt.Sprintf("there is no stored response %.100q; those that were not used for long are forgotten", id)}
	}
	x.Defer(func() { a.store.release(r) })
	return r, nil
}

func (a *api) stored(x *server.Exchange) error {
	r, err := a.record(x, x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, r.response)
}

func (a *api) forget(x *server.Exchange) error {
	r, err := a.record(x, x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	a.store.mu.Lock()
	if e := a.store.records[r.id]; e != nil {
		a.store.remove(e)
	}
	a.store.mu.Unlock()
	return x.JSON(http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{r.id, "response", true})
}

func (a *api) inputItems(x *server.Exchange) error {
	r, err := a.record(x, x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	out := struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
		First  string            `json:"first_id"`
		Last   string            `json:"last_id"`
		More   bool              `json:"has_more"`
	}{Object: "list", Data: []json.RawMessage{}}
	for i, item := range r.input {
		id := fmt.Sprintf("item_%s_%d", r.id, i)
		if out.First == "" {
			out.First = id
		}
		out.Last = id
		named, err := with(item, "id", id)
		if err != nil {
			return err
		}
		out.Data = append(out.Data, named)
	}
	return x.JSON(http.StatusOK, out)
}
