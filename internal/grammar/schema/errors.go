package schema

import "fmt"

// Reason says why a schema was not compiled.
type Reason uint8

// The reasons of an Error.
const (
	Invalid     Reason = iota // the schema breaks the rules of JSON Schema
	Unsupported               // the keyword cannot be enforced here
	Limit                     // a bound on size or work was met
	Unresolved                // a reference leads nowhere
	Empty                     // no instance is valid
)

// Error is why a schema was refused. Keyword and Where are empty where the text as a whole is meant.
type Error struct {
	Reason  Reason
	Keyword string // the keyword that is invalid or cannot be enforced
	Where   string // the JSON pointer of the schema that holds it, as a URI fragment: #/properties/a
	Detail  string
}

func (e *Error) Error() string {
	switch {
	case e.Keyword == "" && e.Where == "":
		return e.Detail
	case e.Keyword == "":
		return fmt.Sprintf("at %s: %s", e.Where, e.Detail)
	}
	return fmt.Sprintf("keyword %q at %s: %s", e.Keyword, e.Where, e.Detail)
}

// limitAt is a limit of the grammar or of an automaton, and the schema that was being compiled when it was met.
type limitAt struct {
	where string
	error
}

func (e *limitAt) Error() string { return "at " + e.where + ": " + e.error.Error() }
func (e *limitAt) Unwrap() error { return e.error }

func limitError(format string, args ...any) error {
	return &Error{Reason: Limit, Detail: fmt.Sprintf(format, args...)}
}

func invalid(s *Schema, keyword, format string, args ...any) error {
	return &Error{Invalid, keyword, s.Where, fmt.Sprintf(format, args...)}
}

// Refuse is the error for a keyword of s that cannot be enforced.
func Refuse(s *Schema, keyword, format string, args ...any) error {
	return &Error{Unsupported, keyword, s.Where, fmt.Sprintf(format, args...)}
}
