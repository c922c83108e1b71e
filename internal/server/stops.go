package server

import "github.com/spillway/spillway/internal/server/wire"

// mostStops is how many texts may end an answer: each is looked for in all of it.
const mostStops = 64

// CheckStops refuses texts that no answer can be ended by. The error names the field.
func CheckStops(field string, texts []string) error {
	if len(texts) > mostStops {
		return wire.Errorf(field, "has %d texts; at most %d are possible", len(texts), mostStops)
	}
	for i, text := range texts {
		if text == "" {
			return wire.Errorf(field, "has an empty text at %d", i)
		}
	}
	return nil
}
