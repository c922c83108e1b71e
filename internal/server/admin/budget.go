package admin

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
)

// setBudget changes the cap of the whole process. Answers that run go on, and no bit of them changes.
func setBudget(x *server.Exchange) error {
	var body struct {
		Memory wire.Value `json:"memory"`
	}
	if err := x.Body(&body); err != nil {
		return err
	}
	bytes, err := sizeOf(body.Memory)
	if err != nil {
		return wire.Within("memory", err)
	}
	var small *spillway.TooSmallError
	var full *spillway.NoRoomError
	if err := x.Server.Runtime().SetMemory(bytes); errors.As(err, &small) || errors.As(err, &full) {
		return server.Invalid("memory", err.Error())
	} else if err != nil {
		return err
	}
	x.Note(slog.Int64("memory", bytes))
	return x.JSON(http.StatusOK, memoryOf(x.Server))
}

// sizeOf is a number of bytes, or what --memory takes: "2GiB", "50%", "auto".
func sizeOf(v wire.Value) (int64, error) {
	switch v.Kind() {
	case wire.Number:
		n, err := v.Int()
		if err == nil && n <= 0 {
			err = wire.Errorf("", "is %d; it must be positive", n)
		}
		return n, err
	case wire.String:
		text, err := v.Text()
		if err != nil {
			return 0, err
		}
		m, err := machine.ReadMemory()
		if err != nil {
			m = machine.Memory{} // a size needs none of it
		}
		n, err := budget.ParseLimit(text, m)
		if err != nil {
			err = wire.Errorf("", "is %.40q: %v", text, err)
		}
		return n, err
	}
	return 0, v.Expected("a size such as \"2GiB\", or a number of bytes")
}
