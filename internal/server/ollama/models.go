package ollama

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
)

type details struct {
	Parent   string   `json:"parent_model"`
	Format   string   `json:"format"`
	Family   string   `json:"family"`
	Families []string `json:"families"`
	Size     string   `json:"parameter_size"`
	Type     string   `json:"quantization_level"`
}

func detailsOf(f pool.Facts) details {
	return details{Format: f.Format, Family: f.Family, Families: []string{f.Family}, Size: parameterSize(f.Parameters), Type: f.Type}
}

// listed is a model of tags and ps.
type listed struct {
	Name     string  `json:"name"`
	Model    string  `json:"model"`
	Modified string  `json:"modified_at,omitempty"`
	Size     int64   `json:"size"`
	Digest   string  `json:"digest"`
	Details  details `json:"details"`
	Expires  string  `json:"expires_at,omitempty"`
	VRAM     *int64  `json:"size_vram,omitempty"`
	Context  int     `json:"context_length,omitempty"`
}

func listedOf(f pool.Facts) listed {
	return listed{Name: f.Name, Model: f.Name, Size: f.Bytes, Digest: f.Identity, Details: detailsOf(f)}
}

type list struct {
	Models []listed `json:"models"`
}

func tags(x *server.Exchange) error {
	all := list{Models: []listed{}}
	for _, m := range x.Server.Models.List() {
		l := listedOf(m.Facts)
		l.Modified = m.Modified.Format(time.RFC3339Nano)
		all.Models = append(all.Models, l)
	}
	return x.JSON(http.StatusOK, all)
}

// forever is when a model expires that has no such time.
var forever = time.Date(2318, 1, 1, 0, 0, 0, 0, time.UTC)

// running lists the loaded models. Their size is what the plan gave to them.
func running(x *server.Exchange) error {
	all := list{Models: []listed{}}
	for _, m := range x.Server.Models.List() {
		if m.Model == nil {
			continue
		}
		l, none := listedOf(m.Facts), int64(0)
		l.Size = 0
		for _, n := range m.Model.CurrentPlan().Pools {
			l.Size += n
		}
		l.VRAM, l.Context = &none, m.Limit
		l.Expires = forever.Format(time.RFC3339Nano)
		if !m.Expires.IsZero() {
			l.Expires = m.Expires.Format(time.RFC3339Nano)
		}
		all.Models = append(all.Models, l)
	}
	return x.JSON(http.StatusOK, all)
}

type shown struct {
	License      string         `json:"license,omitempty"`
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	Modified     string         `json:"modified_at"`
}

func show(x *server.Exchange) error {
	var body struct {
		Model string `json:"model"`
		Name  string `json:"name"` // as older clients have it
	}
	if err := x.Body(&body); err != nil {
		return err
	}
	name := cmp.Or(body.Model, body.Name)
	if name == "" {
		return server.Invalid("model", "model is missing: name one of those that /api/tags lists")
	}
	m, err := x.Server.Models.Find(name)
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, shown{
		Template: m.Template, Details: detailsOf(m.Facts), Capabilities: capabilities(m.Facts), Modified: m.Modified.Format(time.RFC3339Nano),
		Info: map[string]any{
			"general.architecture": m.Family, "general.parameter_count": m.Parameters, "general.basename": m.Name,
			m.Family + ".context_length": m.Context, m.Family + ".embedding_length": m.Hidden,
		},
		Modelfile: "FROM " + strings.ReplaceAll(cmp.Or(m.Path, m.Name), "\n", " "),
	})
}

func capabilities(f pool.Facts) []string {
	if f.Embedding {
		return []string{"embedding"}
	}
	c := []string{"completion"}
	if f.Tools {
		c = append(c, "tools")
	}
	if f.Reasoning {
		c = append(c, "thinking")
	}
	return c
}
