package openai

import (
	"cmp"

	"github.com/spillway/spillway/internal/server/pool"
)

func objectOf(m pool.State) modelObject {
	return modelObject{
		ID: m.Name, Object: "model", Created: m.Modified.Unix(), OwnedBy: "spillway", Root: cmp.Or(m.Path, m.Name), Length: cmp.Or(m.Limit, m.Context),
	}
}
