package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{ withoutModel }

func (*versionCommand) Help() string { return "Example:\n\n  spillway version --json" }

// version is what `spillway version --json` prints.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source; empty if the build does not know
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() version {
	v := version{Version: "development", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (*versionCommand) run(s *session) error {
	v := buildVersion()
	if s.flags.JSON {
		return s.printJSON(v)
	}
	line := fmt.Sprintf("spillway %s, %s, %s", v.Version, v.Go, v.Platform)
	if v.Revision != "" {
		line += ", revision " + v.Revision
	}
	_, err := fmt.Fprintln(s.stdout, line)
	return err
}

// printJSON writes one object and a newline.
func (s *session) printJSON(v any) error {
	e := json.NewEncoder(s.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
