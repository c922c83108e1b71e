package hub

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const huggingFaceEndpoint = "https://huggingface.co"

// pullRepository fetches a model into the Hugging Face cache: blobs by their digest, and a folder of links for
// the revision, as huggingface_hub lays it out.
func (h *Hub) pullRepository(ctx context.Context, name string) (*Model, error) {
	repo, pick, _ := strings.Cut(name, ":")
	if h.huggingFaceRoot() == "" {
		return nil, errors.New("there is no home folder: set HF_HOME")
	}
	if h.offline() {
		if m, ok := h.inHuggingFace(name); ok {
			return m, nil
		}
		return nil, fmt.Errorf("%w, and the model is not in the cache", ErrOffline)
	}
	r := &repository{hub: h, repo: repo, dir: filepath.Join(h.huggingFaceRoot(), folderOf(repo)), endpoint: huggingFaceEndpoint}
	if e, _ := h.Getenv("HF_ENDPOINT"); e != "" {
		r.endpoint = strings.TrimRight(e, "/")
	}
	r.client = newClient(h, h.huggingFaceToken())
	return r.pull(ctx, name, pick)
}

// huggingFaceToken is HF_TOKEN, else what `hf auth login` has left.
func (h *Hub) huggingFaceToken() string {
	if t, _ := h.Getenv("HF_TOKEN"); t != "" {
		return strings.TrimSpace(t)
	}
	home := h.env("HF_HOME", h.home(".cache", "huggingface"))
	if home == "" {
		return ""
	}
	const longest = 1 << 10
	t, err := os.ReadFile(filepath.Join(home, "token"))
	if err != nil || len(t) > longest {
		return ""
	}
	return strings.TrimSpace(string(t))
}

// repository is a pull of one.
type repository struct {
	hub            *Hub
	client         *client
	endpoint, repo string
	dir            string // in the cache
	commit         string
}

func (r *repository) pull(ctx context.Context, name, pick string) (*Model, error) {
	files, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(files, pick)
	if err != nil {
		return nil, err
	}
	links := map[string]string{} // blob by file
	var wants []want
	for _, file := range chosen {
		w, err := r.describe(ctx, file)
		if err != nil {
			return nil, err
		}
		links[file] = w.to
		if !slices.ContainsFunc(wants, func(o want) bool { return o.to == w.to }) {
			wants = append(wants, w)
		}
	}
	if err := r.client.fetchAll(ctx, r.dir, wants); err != nil {
		return nil, err
	}
	return r.finish(name, pick, links)
}

// list asks which files the main revision has.
func (r *repository) list(ctx context.Context) ([]string, error) {
	resp, err := r.client.get(ctx, r.endpoint+"/api/models/"+r.repo+"/revision/main", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var info struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	if err := readJSON(resp.Body, &info); err != nil {
		return nil, fmt.Errorf("the list of files: %w", err)
	}
	if r.commit = info.SHA; !isHex(r.commit, 40) {
		return nil, fmt.Errorf("the hub names the revision %.80q, which is no commit", r.commit)
	}
	var files []string
	for _, s := range info.Siblings {
		if !filepath.IsLocal(filepath.FromSlash(s.Name)) || strings.Contains(s.Name, `\`) {
			return nil, fmt.Errorf("the hub lists a file %.200q, which leads out of the model's folder", s.Name)
		}
		files = append(files, path.Clean(s.Name))
	}
	return files, nil
}

func isHex(s string, n int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == n
}

// describe asks for a file's size and digest, without following the answer to where the bytes lie.
func (r *repository) describe(ctx context.Context, file string) (want, error) {
	address := r.endpoint + "/" + r.repo + "/resolve/" + r.commit + "/" + escapePath(file)
	head, err := r.client.head(ctx, address)
	if err != nil {
		return want{}, err
	}
	etag := strings.Trim(strings.TrimPrefix(first(head, "X-Linked-Etag", "Etag"), "W/"), `"`)
	w := want{url: address, size: -1}
	if n, err := strconv.ParseInt(first(head, "X-Linked-Size", "Content-Length"), 10, 64); err == nil && n >= 0 {
		w.size = n
	}
	switch {
	case isHex(etag, 64):
		w.sha256 = etag
	case isHex(etag, 40):
		w.git = etag
	default:
		return want{}, fmt.Errorf("%s names no digest for %s (its ETag is %.80q): what comes could not be checked", r.endpoint, file, etag)
	}
	w.to = filepath.Join(r.dir, "blobs", etag)
	return w, nil
}

func first(h http.Header, keys ...string) string {
	for _, k := range keys {
		if v := h.Get(k); v != "" {
			return v
		}
	}
	return ""
}

func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// head returns an answer's headers. Redirects within the host are followed; where one leads elsewhere, the headers
// that tell of the file are those of the redirect.
func (c *client) head(ctx context.Context, address string) (http.Header, error) {
	var header http.Header
	inside := *c.http
	inside.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) > 5 || req.URL.Host != via[0].URL.Host || req.Response != nil && req.Response.Header.Get("X-Linked-Etag") != "" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	err := c.again(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
		if err != nil {
			return false, &localError{err}
		}
		req.Header.Set("Accept-Encoding", "identity")
		plain := *c
		plain.http = &inside
		resp, err := plain.do(req)
		if err == nil {
			header = resp.Header
			return false, resp.Body.Close()
		}
		var status *StatusError
		if errors.As(err, &status) && status.Status < 400 && status.header != nil {
			header = status.header
			return false, nil
		}
		return false, err
	})
	return header, err
}

// finish links the revision's files to their blobs.
func (r *repository) finish(name, pick string, links map[string]string) (*Model, error) {
	dir := filepath.Join(r.dir, "snapshots", r.commit)
	for file, blob := range links {
		if err := link(blob, filepath.Join(dir, filepath.FromSlash(file))); err != nil {
			return nil, err
		}
	}
	if err := writeFile(filepath.Join(r.dir, "refs", "main"), []byte(r.commit)); err != nil {
		return nil, err
	}
	m, ok := r.hub.inHuggingFace(name)
	if !ok {
		return nil, fmt.Errorf("what was fetched is not found in %s", dir)
	}
	if pick == "" {
		m.Bytes = treeBytes(dir)
	}
	return m, nil
}

// link makes a relative symbolic link, or a hard link where there are none.
func link(blob, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	rel, err := filepath.Rel(filepath.Dir(to), blob)
	if err != nil {
		return err
	}
	if old, err := os.Readlink(to); err == nil && old == rel {
		return nil
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Symlink(rel, to) == nil {
		return nil
	}
	return os.Link(blob, to)
}
