package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// plainJSON says what is wrong with a JSON text without the words of Go's decoder.
func plainJSON(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%q cannot be a %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%s in the place of an object", kind.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("not valid JSON: it ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
