package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

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
	var never *Error
	if errors.As(err, &never) {
		never.Message = "the request has too many values: " + never.Message
	}
	return err
}

// ReadBody reads the whole body.
func (x *Exchange) ReadBody() ([]byte, error) {
	if coding := x.Request.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &Error{Status: http.StatusUnsupportedMediaType, Code: CodeEncoding, Message: fmt.Sprintf(
			"the request's body is encoded as %.40q; send it as it is", coding)}
	}
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
			x.enter(phaseAnswer)
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
		x.received += int64(k)
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		}
	}
	return false, nil
}

// leastRate is the bytes per second that a body must come with on the whole, beyond the first ReadTimeout.
const leastRate = 16 << 10

// readDeadline bounds the next read of the body, and all of them together.
func (x *Exchange) readDeadline() {
	now, t := time.Now(), x.Server.options.ReadTimeout
	if x.begun.IsZero() {
		x.begun = now
	}
	whole := x.begun.Add(t + time.Duration(x.received)*time.Second/leastRate)
	if next := now.Add(t); next.Before(whole) {
		whole = next
	}
	_ = x.w.control.SetReadDeadline(whole)
}

// expectBody notes what the connection waits for. What is left of a body that nobody reads must come in time, too:
// net/http waits for it before it answers.
func (x *Exchange) expectBody() {
	if x.Request.ContentLength == 0 {
		x.enter(phaseAnswer)
		return
	}
	x.enter(phaseBody)
	_ = x.w.control.SetReadDeadline(time.Now().Add(x.Server.options.ReadTimeout))
}

// enter notes what the exchange's connection does now.
func (x *Exchange) enter(p phase) {
	if l := x.Server.full.Load(); l != nil && x.connection != nil {
		l.enter(x.connection, p)
	}
}

func (x *Exchange) readError(err error) error {
	x.w.Header().Set("Connection", "close")
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalid, Message: fmt.Sprintf("the request's body did not come: %v", err), cause: err}
}

// leaseBody leases n more bytes of body. What cannot be leased is read and forgotten, so that the client sees
// the answer.
func (x *Exchange) leaseBody(n, limit int64) error {
	x.enter(phaseAnswer) // where this waits, the client does not
	err := x.lease(x.Server.bodies, bodyCost*n, "a request's body")
	x.enter(phaseBody)
	if err == nil || x.ctx.Err() != nil {
		return err
	}
	size := x.forget(limit)
	if longest := x.Server.longestText(); longest > 0 && size > longest {
		return &Error{Status: http.StatusBadRequest, Code: CodeTooLong, cause: err, Message: fmt.Sprintf(
			"the request of %d bytes is longer than any model's context holds", size)}
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
		x.received += int64(n)
		if err != nil {
			return size
		}
	}
	return size
}
