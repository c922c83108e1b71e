package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/wire"
)

const (
	bodyCost  = 3        // bytes of heap for each of a body: the text, what is decoded of it
	bodyPiece = 32 << 10 // what is read at a time
	bodyParts = 32 << 10 // of heap for decoded values, which every connection has
)

// Body reads the request's JSON into a struct, as wire.Decode does. Its memory is leased before it is read
// and given back when the exchange ends; what the struct holds may alias it.
func (x *Exchange) Body(into any) error {
	data, err := x.ReadBody()
	if err != nil {
		return err
	}
	if err := x.leaseParts(wire.Weigh(data)); err != nil {
		return err
	}
	return wire.Decode(data, into)
}

// leaseParts leases what the values of a body take once they are decoded: many small ones take far more than their text.
func (x *Exchange) leaseParts(n int64) error {
	if n -= bodyParts; n <= 0 {
		return nil
	}
	err := x.lease(x.Server.bodies, n, "the values of a request")
	var full *spillway.NoRoomError
	if n > x.Server.bodies.total && errors.As(err, &full) { // else others give it back
		return &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, cause: err, Message: fmt.Sprintf(
			"the request has too many values for the memory that is left: %v", err)}
	}
	return err
}

// ReadBody reads the whole body.
func (x *Exchange) ReadBody() ([]byte, error) {
	limit := x.Server.options.BodyLimit
	size, known := x.Request.ContentLength, x.Request.ContentLength >= 0
	if !known {
		size = bodyPiece // and grows
	}
	data := []byte{}
	for size <= limit {
		if err := x.leaseBody(size-int64(len(data)), limit); err != nil {
			return nil, err
		}
		data = append(make([]byte, 0, size), data...)
		ended, err := x.fill(&data)
		if err != nil {
			return nil, x.readError(err)
		}
		if ended || known {
			_ = x.w.control.SetReadDeadline(time.Time{})
			return data, nil
		}
		size = min(2*size, max(limit, size+1))
	}
	x.w.Header().Set("Connection", "close")
	return nil, &http.MaxBytesError{Limit: limit}
}

// fill reads until data's capacity is full, or the body has ended.
func (x *Exchange) fill(data *[]byte) (ended bool, err error) {
	for n := len(*data); n < cap(*data); n = len(*data) {
		x.readDeadline()
		k, err := x.Request.Body.Read((*data)[n:min(n+bodyPiece, cap(*data))])
		*data = (*data)[:n+k]
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		}
	}
	return false, nil
}

func (x *Exchange) readDeadline() {
	if t := x.Server.options.ReadTimeout; t > 0 {
		_ = x.w.control.SetReadDeadline(time.Now().Add(t))
	}
}

func (x *Exchange) readError(err error) error {
	x.w.Header().Set("Connection", "close")
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalid, Message: fmt.Sprintf("the request's body did not come: %v", err), cause: err}
}

// leaseBody leases n more bytes of body. What cannot be leased is read and forgotten, so that the client sees
// the answer.
func (x *Exchange) leaseBody(n, limit int64) error {
	err := x.lease(x.Server.bodies, bodyCost*n, "a request's body")
	if err == nil || x.ctx.Err() != nil {
		return err
	}
	size := x.forget(limit)
	if longest := x.Server.longestText(); longest > 0 && size > longest {
		return &Error{Status: http.StatusBadRequest, Code: CodeTooLong, cause: err, Message: fmt.Sprintf(
			"the request of %d bytes is longer than any model's context holds", size)}
	}
	var full *spillway.NoRoomError
	if errors.As(err, &full) {
		return &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, cause: err, Message: fmt.Sprintf(
			"the request of %d bytes does not fit in the memory that is left: %v", size, err)}
	}
	return err
}

// forget reads the rest of a body, and returns how many bytes it had.
func (x *Exchange) forget(limit int64) (size int64) {
	piece := make([]byte, bodyPiece)
	for size <= limit {
		x.readDeadline()
		n, err := x.Request.Body.Read(piece)
		size += int64(n)
		if err != nil {
			return size
		}
	}
	return size
}
