package wire

// Strings is one string or a list of them.
type Strings []string

// ReadJSON is part of Reader.
func (s *Strings) ReadJSON(v Value) error {
	switch v.Kind() {
	case String:
		text, err := v.Text()
		*s = Strings{text}
		return err
	case Array:
		return v.Into((*[]string)(s))
	}
	return v.Expected("a string or a list of strings")
}
