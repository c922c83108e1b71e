package dialect

import (
	"fmt"

	"github.com/spillway/spillway/internal/chat"
)

// ReadTools reads a list of tools as requests have it: {"type": "function", "function": {"name", "parameters"}},
// the inner object alone, or {"name", "input_schema"}.
func ReadTools(list []any) ([]Tool, error) {
	out := make([]Tool, len(list))
	for i, t := range list {
		if inner, ok := member(t, "function").(*chat.Object); ok {
			t = inner
		}
		name, _ := member(t, "name").(string)
		if name == "" {
			return nil, fmt.Errorf("tool %d has no name", i)
		}
		out[i].Name = name
		for _, key := range []string{"parameters", "input_schema"} {
			if schema, ok := member(t, key).(*chat.Object); ok {
				out[i].Parameters = schema
			}
		}
	}
	return out, nil
}
