package hub

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const (
	ollamaHost      = "registry.ollama.ai"
	ollamaModel     = "application/vnd.ollama.image.model"
	manifestAccept  = "application/vnd.docker.distribution.manifest.v2+json"
	ollamaDirectory = "manifests"
)

// ollamaRef names a model of a registry.
type ollamaRef struct{ host, owner, name, tag string }

// parseOllama reads [host/][owner/]name[:tag].
func parseOllama(s string) ollamaRef {
	r := ollamaRef{host: ollamaHost, owner: "library", tag: "latest"}
	slash := strings.LastIndexByte(s, '/')
	if i := strings.LastIndexByte(s, ':'); i > slash {
		s, r.tag = s[:i], s[i+1:]
	}
	parts := strings.Split(s, "/")
	r.name = parts[len(parts)-1]
	if len(parts) > 1 {
		r.owner = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		r.host = strings.Join(parts[:len(parts)-2], "/")
	}
	return r
}

func (r ollamaRef) check() error {
	for _, part := range []string{r.host, r.owner, r.name, r.tag} {
		if part == "" || strings.Contains(part, "..") || strings.ContainsAny(part, `/\?#%@ `) {
			return errors.New("a model of Ollama's registry is written ollama:name, ollama:name:tag or ollama:owner/name:tag")
		}
	}
	return nil
}

// manifest is the path of the manifest in a store. A port's colon is no letter of file names everywhere.
func (r ollamaRef) manifest() string {
	return filepath.Join(ollamaDirectory, strings.ReplaceAll(r.host, ":", "_"), r.owner, r.name, r.tag)
}

func (r ollamaRef) String() string {
	s := r.name + ":" + r.tag
	if r.owner != "library" || r.host != ollamaHost {
		s = r.owner + "/" + s
	}
	return s
}

// base is the address of the model in its registry; the registry's own is HTTPS, one on this machine is not.
func (r ollamaRef) base(mirror string) string {
	root := "https://" + r.host
	host, _, err := net.SplitHostPort(r.host)
	if err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
		root = "http://" + r.host
	}
	if mirror != "" && r.host == ollamaHost {
		root = strings.TrimRight(mirror, "/")
	}
	return root + "/v2/" + url.PathEscape(r.owner) + "/" + url.PathEscape(r.name)
}

// ollamaManifest lists the parts of a model.
type ollamaManifest struct {
	Config ollamaLayer   `json:"config"`
	Layers []ollamaLayer `json:"layers"`
	raw    []byte
}

type ollamaLayer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

// blob is the layer's file in a store.
func (l ollamaLayer) blob() string { return filepath.Base(strings.Replace(l.Digest, ":", "-", 1)) }

// sha256 is the digest in hexadecimal, or "" if it is no such digest.
func (l ollamaLayer) sha256() string {
	d, ok := strings.CutPrefix(l.Digest, "sha256:")
	if b, err := hex.DecodeString(d); !ok || err != nil || len(b) != 32 {
		return ""
	}
	return d
}

// readManifest reads a manifest.
func readManifest(r io.Reader) (*ollamaManifest, error) {
	const longest = 1 << 20
	m := &ollamaManifest{}
	var err error
	if m.raw, err = io.ReadAll(io.LimitReader(r, longest)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(m.raw, m); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	return m, nil
}

// check refuses parts that could not be verified.
func (m *ollamaManifest) check() error {
	for _, l := range m.parts() {
		if l.sha256() == "" || l.Size < 0 {
			return fmt.Errorf("the manifest has a part %.40q with digest %.80q and size %d", l.MediaType, l.Digest, l.Size)
		}
	}
	return nil
}

func (m *ollamaManifest) parts() []ollamaLayer {
	if m.Config.Digest == "" {
		return m.Layers
	}
	return append([]ollamaLayer{m.Config}, m.Layers...)
}

// pullOllama fetches a model into Ollama's own store.
func (h *Hub) pullOllama(ctx context.Context, name string) (*Model, error) {
	ref, root := parseOllama(name), h.ollamaRoot()
	switch {
	case ref.check() != nil:
		return nil, ref.check()
	case root == "":
		return nil, errors.New("there is no home folder: set OLLAMA_MODELS")
	case h.offline():
		return nil, ErrOffline
	}
	mirror, _ := h.Getenv("OLLAMA_REGISTRY")
	base := ref.base(mirror)
	c := newClient(h, "")
	m, err := c.manifest(ctx, base+"/manifests/"+url.PathEscape(ref.tag))
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, err
	}
	var wants []want
	weights := ""
	for _, l := range m.parts() {
		to := filepath.Join(root, "blobs", l.blob())
		if l.MediaType == ollamaModel {
			weights = to
		}
		wants = append(wants, want{url: base + "/blobs/" + l.Digest, to: to, size: l.Size, sha256: l.sha256()})
	}
	if weights == "" {
		return nil, errors.New("the manifest names no weights")
	}
	if err := c.fetchAll(ctx, root, wants); err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(root, ref.manifest()), m.raw); err != nil {
		return nil, err
	}
	info, err := os.Stat(weights)
	if err != nil {
		return nil, err
	}
	return &Model{Name: ref.String(), Source: SourceOllama, Path: weights, Bytes: info.Size()}, nil
}

// manifest fetches a manifest.
func (c *client) manifest(ctx context.Context, url string) (*ollamaManifest, error) {
	resp, err := c.get(ctx, url, http.Header{"Accept": {manifestAccept}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readManifest(resp.Body)
}

// ollamaNames lists the models of the store's main registry as owner/name:tag or name:tag.
func (h *Hub) ollamaNames() (names []string) {
	root := h.ollamaRoot()
	if root == "" {
		return nil
	}
	dir := filepath.Join(root, ollamaDirectory, ollamaHost)
	for _, owner := range namesIn(dir) {
		for _, name := range namesIn(filepath.Join(dir, owner)) {
			for _, tag := range namesIn(filepath.Join(dir, owner, name)) {
				names = append(names, ollamaRef{ollamaHost, owner, name, tag}.String())
			}
		}
	}
	return names
}

// removeOllama deletes a manifest and the blobs that no other manifest names.
func (h *Hub) removeOllama(name string) error {
	root := h.ollamaRoot()
	path := filepath.Join(root, parseOllama(name).manifest())
	mine, err := manifestAt(path)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	used := map[string]bool{}
	err = filepath.WalkDir(filepath.Join(root, ollamaDirectory), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		m, err := manifestAt(path)
		if err != nil {
			return fmt.Errorf("%s: %w; blobs stay, since it may name them", path, err)
		}
		for _, l := range m.parts() {
			used[l.blob()] = true
		}
		return nil
	})
	for _, l := range mine.parts() {
		if err == nil && !used[l.blob()] {
			used[l.blob()] = true
			err = os.Remove(filepath.Join(root, "blobs", l.blob()))
		}
	}
	return err
}

func manifestAt(path string) (*ollamaManifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readManifest(f)
}
