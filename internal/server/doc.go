// Package server is what all HTTP APIs share: who may come in, what memory a request may take, how a body is
// read and an answer written, which model answers. It knows no API; each is a package below this one with a
// function Mount(*server.Server), which registers its paths.
//
// # A request
//
// A path is registered with Handle (behind the API keys) or HandlePublic, with the API that it belongs to:
// API.Error is the form of its errors, for those of this package, too. A Handler gets an Exchange and
// returns an error where it cannot answer; ErrorOf says what that means to a client (status, code, field),
// so that handlers return errors as they come: a *wire.FieldError, what a Model returns, Invalid(field,
// message).
//
//	func (a *api) chat(x *server.Exchange) error {
//		var body request                                     // a struct with json tags, see package wire
//		if err := x.Body(&body); err != nil { return err }   // leased, read, decoded
//		m, err := x.Model(body.Model)                        // loaded and held until the exchange ends
//		if err != nil { return err }
//		r := spillway.Request{Messages: …, Read: true}
//		if err := x.Prepare(m, &r, textBytes, 1); err != nil { return err } // r.IDs; too long: an error
//		stream := x.Events()                                 // or x.Lines(); begins with the first event
//		r.Events = func(e spillway.Event) { stream.Event("", chunkOf(e)) }
//		answer, err := x.Generate(m, r)                      // a nil error: a complete answer
//		if err != nil && stream.Started() { return stream.Event("", errorChunk(server.ErrorOf(err))) }
//		…
//	}
//
// Nothing is sent before the first event of a Stream: what the engine refuses (a full queue) is an ordinary
// answer. After a pause of 15 seconds a stream of events sends a comment, or what SetPing says. A write
// that fails, or that a client does not take within Options.WriteTimeout, cancels the exchange, and with it
// what it generates. Answers that are no stream are written by Exchange.JSON. Exchange.Note adds to the
// request's line in the log; Exchange.Defer runs a function at its end.
//
// # Memory
//
// New leases, before models take what they find, 256 KiB for each connection that may be open (with what the next one may have sent), a purse for
// bodies and one for prompts. A body is leased before it is read, a prompt until it is ids, at most
// Options.Serial of them at a time; answers with probabilities, or several at once, are leased too. What the
// purses lack comes from the ledger if it has room; else requests wait, and what could never fit is refused.
// Sockets have buffers of 32 KiB.
//
// # Models
//
// Server.Models is a pool.Pool: Acquire (or Exchange.Model) loads a model and holds it, Find and List say
// what is known without loading: facts of the file, whether it is loaded, until when. Held.KeepAlive changes
// how long it stays after this use, Unload makes it go.
//
// # For the operator
//
// Options.Observer is told of every token and every answer, for metrics; State.Model.Stats (of a loaded
// model) and Runtime().Ledger() say what there is now. Serve runs until its context ends and then drains.
package server
