package hub

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's names
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// rogue serves a repository and misbehaves on purpose.
type rogue struct {
	mu    sync.Mutex
	files map[string][]byte
	cut   int                                               // bytes after which a connection breaks
	rot   int                                               // answers with a flipped byte, before honest ones
	fail  int                                               // answers of 503, before honest ones
	plain bool                                              // no ranges
	gets  map[string]int                                    // of each path
	twist func(w http.ResponseWriter, r *http.Request) bool // answers itself
	auth  []string
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func (s *rogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = append(s.auth, r.Header.Get("Authorization"))
	if s.twist != nil && s.twist(w, r) {
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/models/") {
		var names []string
		for name := range s.files {
			names = append(names, fmt.Sprintf(`{"rfilename":%q}`, name))
		}
		slices.Sort(names)
		fmt.Fprintf(w, `{"sha":%q,"siblings":[%s]}`, commit, strings.Join(names, ","))
		return
	}
	_, name, _ := strings.Cut(r.URL.Path, "/resolve/"+commit+"/")
	data, ok := s.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+etag(name, data)+`"`)
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		return
	}
	s.gets[name]++
	s.send(w, r, data)
}

// etag is sha256 for large files and git's digest for the others, as the hub has it.
func etag(name string, data []byte) string {
	if strings.HasSuffix(name, ".json") {
		sum := sha1.Sum(append([]byte(fmt.Sprintf("blob %d\x00", len(data))), data...)) //nolint:gosec // git's
		return hex.EncodeToString(sum[:])
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (s *rogue) send(w http.ResponseWriter, r *http.Request, data []byte) {
	if s.fail > 0 {
		s.fail--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if s.rot > 0 {
		s.rot--
		data = bytes.Clone(data)
		data[0] ^= 1
	}
	if s.plain {
		r.Header.Del("Range")
	}
	if s.cut == 0 {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		return
	}
	http.ServeContent(&cutWriter{w, s.cut}, r, "", time.Time{}, bytes.NewReader(data))
	panic(http.ErrAbortHandler)
}

// cutWriter loses everything behind some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	if _, err := w.ResponseWriter.Write(b[:n]); err != nil {
		return 0, err
	}
	w.ResponseWriter.(http.Flusher).Flush()
	return len(b), nil
}

func newRogue(t *testing.T) (*rogue, *Hub) {
	t.Helper()
	s := &rogue{gets: map[string]int{}, files: map[string][]byte{
		"model.safetensors": bytes.Repeat([]byte("weights!"), 50_000), "config.json": []byte(`{"model_type":"llama"}`), "README.md": []byte("no part of it"),
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "HF_ENDPOINT": server.URL, "HF_TOKEN": "secret"}
	return s, &Hub{Getenv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
}

// pullQuickly makes tries follow each other without pauses.
func pullQuickly(t *testing.T, h *Hub, name string) (*Model, error) {
	t.Helper()
	quick = true
	defer func() { quick = false }()
	return h.Pull(context.Background(), name)
}

func TestPullLaysOutTheCacheOfHuggingFace(t *testing.T) {
	s, h := newRogue(t)
	var last, total int64
	h.Progress = func(d, n int64) { last, total = d, n }
	m, err := pullQuickly(t, h, "owner/model")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(m.Path, "model.safetensors"))
	if err != nil || !bytes.Equal(got, s.files["model.safetensors"]) {
		t.Fatalf("%d bytes of weights: %v", len(got), err)
	}
	if _, err := os.Stat(filepath.Join(m.Path, "README.md")); err == nil {
		t.Error("the README was fetched")
	}
	repo := filepath.Dir(filepath.Dir(m.Path))
	if target, err := os.Readlink(filepath.Join(m.Path, "config.json")); err != nil || target != filepath.Join("..", "..", "blobs", etag("config.json", s.files["config.json"])) {
		t.Errorf("config.json links to %q: %v", target, err)
	}
	if ref, err := os.ReadFile(filepath.Join(repo, "refs", "main")); err != nil || string(ref) != commit {
		t.Errorf("main is %q: %v", ref, err)
	}
	if last != total || last != int64(len(s.files["model.safetensors"])+len(s.files["config.json"])) {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	if slices.Contains(s.auth, "") {
		t.Error("a request came without the token")
	}
	if _, err := pullQuickly(t, h, "owner/model"); err != nil || s.gets["model.safetensors"] != 1 {
		t.Errorf("a second pull fetched again (%d): %v", s.gets["model.safetensors"], err)
	}
	if found, err := h.Find("owner/model"); err != nil || found.Path != m.Path || found.Bytes != last {
		t.Errorf("found %+v: %v", found, err)
	}
	if _, err := h.Remove("owner/model"); err != nil || isDir(repo) {
		t.Errorf("not removed: %v", err)
	}
}

func TestPullResumesWhereAConnectionBroke(t *testing.T) {
	s, h := newRogue(t)
	s.cut = 60_000
	s.files["config.json"] = nil
	delete(s.files, "config.json")
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Fatal(err)
	}
	if n, want := s.gets["model.safetensors"], 7; n != want {
		t.Errorf("400000 bytes in pieces of 60000 took %d answers, want %d", n, want)
	}
}

func TestPullGoesOnAfterItFailed(t *testing.T) {
	s, h := newRogue(t)
	s.cut = 60_000
	first := true
	s.twist = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "model.safetensors") && !first {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		first = first && !strings.Contains(r.URL.Path, "model.safetensors") || r.Method == http.MethodHead
		return false
	}
	if _, err := pullQuickly(t, h, "owner/model"); err == nil || !strings.Contains(err.Error(), "500") {
		t.Fatalf("the failure is %v", err)
	}
	s.twist, s.cut = nil, 0
	var from string
	s.twist = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "model.safetensors") {
			from = r.Header.Get("Range")
		}
		return false
	}
	if _, err := pullQuickly(t, h, "owner/model"); err != nil || from != "bytes=60000-" {
		t.Fatalf("resumed with %q: %v", from, err)
	}
}

func TestPullWithoutRangesStartsAgain(t *testing.T) {
	s, h := newRogue(t)
	s.plain = true
	broke := false
	s.twist = func(w http.ResponseWriter, r *http.Request) bool {
		if !broke && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "model.safetensors") {
			broke = true
			data := s.files["model.safetensors"]
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:1000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		return false
	}
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Fatal(err)
	}
}

func TestRottenBytesAreFetchedOnceMoreAndThenRefused(t *testing.T) {
	s, h := newRogue(t)
	s.rot = 1
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Fatalf("one rotten answer: %v", err)
	}
	if _, err := h.Remove("owner/model"); err != nil {
		t.Fatal(err)
	}
	s.rot = 10
	_, err := pullQuickly(t, h, "owner/model")
	var digest *DigestError
	if !errors.As(err, &digest) {
		t.Fatalf("rotten bytes gave %v", err)
	}
	if _, err := h.Find("owner/model"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a rotten model is found: %v", err)
	}
}

func TestServerErrorsAreTriedAgain(t *testing.T) {
	s, h := newRogue(t)
	s.fail = 3
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Fatal(err)
	}
}

func TestHostileListsAreRefused(t *testing.T) {
	for name, part := range map[string]string{"../../evil.safetensors": "leads out", "/etc/evil.safetensors": "leads out", `..\evil.safetensors`: "leads out"} {
		s, h := newRogue(t)
		s.files[name] = []byte("x")
		if _, err := pullQuickly(t, h, "owner/model"); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", name, err)
		}
	}
	s, h := newRogue(t)
	s.twist = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("ETag", `"../../x"`)
		return r.Method == http.MethodHead
	}
	if _, err := pullQuickly(t, h, "owner/model"); err == nil || !strings.Contains(err.Error(), "no digest") {
		t.Errorf("an ETag that is no digest: %v", err)
	}
}

func TestTheTokenStaysWithItsHost(t *testing.T) {
	s, h := newRogue(t)
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = w.Write(s.files["model.safetensors"])
	}))
	defer other.Close()
	s.twist = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "model.safetensors") {
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/cdn", http.StatusFound)
			return true
		}
		return false
	}
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "" {
		t.Errorf("the other host was sent %q", got)
	}
}

func TestOffline(t *testing.T) {
	s, h := newRogue(t)
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Fatal(err)
	}
	getenv := h.Getenv
	h.Getenv = func(k string) (string, bool) {
		if k == "HF_HUB_OFFLINE" {
			return "1", true
		}
		return getenv(k)
	}
	asked := len(s.auth)
	if _, err := pullQuickly(t, h, "owner/model"); err != nil {
		t.Errorf("what is here: %v", err)
	}
	for _, name := range []string{"owner/other", "ollama:x", "smollm2"} {
		if _, err := pullQuickly(t, h, name); !errors.Is(err, ErrOffline) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.auth) != asked {
		t.Error("the network was used")
	}
}

func TestAFullDiskIsSeenBefore(t *testing.T) {
	s, h := newRogue(t)
	s.twist = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.Header().Set("X-Linked-Size", "1000000000000000")
			w.Header().Set("ETag", `"`+etag("x", nil)+`"`)
			return true
		}
		return false
	}
	var full *SpaceError
	if _, err := pullQuickly(t, h, "owner/model"); !errors.As(err, &full) {
		t.Errorf("a petabyte: %v", err)
	}
}

func TestOllama(t *testing.T) {
	weights, license := []byte("GGUF..."), []byte("free")
	digest := func(b []byte) string { return "sha256:" + etag("x", b) }
	layer := func(kind string, b []byte) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, kind, digest(b), len(b))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/library/tiny/manifests/1b":
			fmt.Fprintf(w, `{"layers":[%s,%s]}`, layer(ollamaModel, weights), layer("application/vnd.ollama.image.license", license))
		case "/v2/library/tiny/blobs/" + digest(weights):
			_, _ = w.Write(weights)
		case "/v2/library/tiny/blobs/" + digest(license):
			_, _ = w.Write(license)
		case "/v2/library/bad/manifests/latest":
			fmt.Fprint(w, `{"layers":[{"mediaType":"x","digest":"sha256:../../../etc","size":3}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	env := map[string]string{"HOME": t.TempDir(), "OLLAMA_REGISTRY": server.URL}
	h := &Hub{Getenv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	m, err := pullQuickly(t, h, "ollama:tiny:1b")
	if err != nil || m.Name != "tiny:1b" {
		t.Fatalf("%+v: %v", m, err)
	}
	if got, err := os.ReadFile(m.Path); err != nil || !bytes.Equal(got, weights) {
		t.Errorf("%q: %v", got, err)
	}
	if all := h.List(); len(all) != 1 || all[0].Name != "tiny:1b" || all[0].Source != SourceOllama {
		t.Errorf("the list is %+v", all)
	}
	for name, part := range map[string]string{"ollama:bad": "digest", "ollama:none": "404", "ollama:../x": "written"} {
		if _, err := pullQuickly(t, h, name); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Remove("tiny:1b"); err != nil {
		t.Fatal(err)
	}
	if left := namesIn(filepath.Join(env["HOME"], ".ollama", "models", "blobs")); len(left) != 0 {
		t.Errorf("blobs stay: %v", left)
	}
}

func TestPackages(t *testing.T) {
	pack := func(files map[string]string) *zip.Reader {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for name, text := range files {
			f, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	inner := new(bytes.Buffer)
	w := zip.NewWriter(inner)
	f, _ := w.Create("m/model.safetensors")
	_, _ = f.Write([]byte("w"))
	_ = w.Close()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
		err   string
	}{
		{"gguf", map[string]string{"p/model.gguf": "w", "p/code.py": "x", "p/LICENSE": "l"}, []string{"LICENSE", "model.gguf"}, ""},
		{"inner archive", map[string]string{"p/model.zip": inner.String()}, []string{"model.safetensors"}, ""},
		{"no model", map[string]string{"p/code.py": "x"}, nil, "no GGUF"},
		{"escape", map[string]string{"p/model.gguf": "w", "p/../../evil.json": "x"}, nil, "leads out"},
		{"rotten", map[string]string{"p/model.gguf": "w", "p-1.dist-info/RECORD": "p/model.gguf,sha256=AAAA,1\n"}, nil, "digest"},
	} {
		work := t.TempDir()
		err := unpackModel(pack(c.files), filepath.Join(work, "model"), work)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if got := filesIn(filepath.Join(work, "model")); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestChoose(t *testing.T) {
	ggufs := []string{"README.md", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "big-F16-00001-of-00002.gguf", "big-F16-00002-of-00002.gguf", "mmproj-F16.gguf"}
	tensors := []string{"model.safetensors", "config.json", "tokenizer.model", "pytorch_model.bin", "onnx/model.json", "1_Pooling/config.json", "m-Q8_0.gguf"}
	for _, c := range []struct {
		files []string
		pick  string
		want  []string
		err   string
	}{
		{ggufs, "", []string{"m-Q4_K_M.gguf"}, ""},
		{ggufs, "q8_0", []string{"m-Q8_0.gguf"}, ""},
		{ggufs, "f16", []string{"big-F16-00001-of-00002.gguf", "big-F16-00002-of-00002.gguf"}, ""},
		{ggufs, "Q2_K", nil, "no GGUF file"},
		{ggufs[2:4], "q", nil, "no GGUF file"},
		{tensors, "", []string{"model.safetensors", "config.json", "tokenizer.model", "1_Pooling/config.json"}, ""},
		{tensors, "Q8_0", []string{"m-Q8_0.gguf"}, ""},
		{[]string{"a-Q2_K.gguf", "a-Q3_K.gguf"}, "", nil, "several"},
		{[]string{"README.md"}, "", nil, "neither"},
	} {
		got, err := choose(c.files, c.pick)
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v of %v: %v, %v", c.pick, c.files, got, err)
		}
	}
}

func TestNames(t *testing.T) {
	h := &Hub{Getenv: func(string) (string, bool) { return "", false }}
	for _, name := range []string{"", "..", "a/b/c", "a b", "pip:x", "pip:x==1;rm", "pip:--help==1", "ollama:", "nothing"} {
		if m, err := h.Pull(context.Background(), name); err == nil {
			t.Errorf("%q was pulled: %+v", name, m)
		}
	}
}
