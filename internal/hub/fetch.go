package hub

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // git's names of files
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/machine"
)

// A want is a file that a pull needs.
type want struct {
	url    string
	to     string
	size   int64  // -1: not known before
	sha256 string // hexadecimal; "" if nobody tells
	git    string // git's name of the content, likewise
}

// client fetches files, again and again where that may help.
type client struct {
	http  *http.Client
	hub   *Hub
	token string
	tries int           // without a byte of progress
	pause time.Duration // before the second try; it doubles
	stall time.Duration // without a byte until a connection is given up
	done  int64         // bytes that are here, for Progress
	total int64
}

// quick leaves out the pauses between tries, for tests.
var quick bool

func newClient(h *Hub, token string) *client {
	c := &client{
		http: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: time.Minute, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2}},
		hub:  h, token: token, tries: 5, pause: time.Second / 2, stall: time.Minute,
	}
	if quick {
		c.pause = 0
	}
	return c
}

// A StatusError is an answer of a hub that is no file.
type StatusError struct {
	URL    string
	Status int
	after  time.Duration
	header http.Header
}

func (e *StatusError) Error() string {
	hint := ""
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = ": it may be private or gated; HF_TOKEN gives access"
	case http.StatusNotFound:
		hint = ": there is no such model or file"
	}
	return fmt.Sprintf("%s answered %d %s%s", e.URL, e.Status, http.StatusText(e.Status), hint)
}

// passing reports whether another try may succeed.
func passing(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status >= 500 || status.Status == http.StatusTooManyRequests || status.Status == http.StatusRequestTimeout
	}
	var local *localError
	var bad *DigestError
	return err != nil && !errors.As(err, &local) && !errors.As(err, &bad) && !errors.Is(err, context.Canceled)
}

// A localError comes from this machine: a full disk, a folder that cannot be written.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// A DigestError says that what arrived is not what was named.
type DigestError struct{ URL, Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("what %s sent has the digest %s, not %s: it was thrown away", e.URL, e.Got, e.Want)
}

// A SpaceError refuses a pull before it starts.
type SpaceError struct {
	Dir         string
	Need, Avail int64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s needs to be written to %s, where %s are free", machine.FormatSize(e.Need), e.Dir, machine.FormatSize(e.Avail))
}

// do sends one request; any status but 2xx is a *StatusError.
func (c *client) do(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "spillway")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		resp.Body.Close()
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		const most = 60
		return nil, &StatusError{URL: req.URL.Redacted(), Status: resp.StatusCode, header: resp.Header, after: time.Duration(min(max(after, 0), most)) * time.Second}
	}
	return resp, nil
}

// get is a GET that is tried again where that may help.
func (c *client) get(ctx context.Context, url string, header http.Header) (resp *http.Response, err error) {
	err = c.again(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, &localError{err}
		}
		for k, v := range header {
			req.Header[k] = v
		}
		resp, err = c.do(req)
		return false, err
	})
	return resp, err
}

// again repeats an attempt until it succeeds, fails for good, or has failed too often without progress.
func (c *client) again(ctx context.Context, attempt func() (progress bool, err error)) error {
	for failed := 0; ; {
		progress, err := attempt()
		if err == nil || !passing(err) {
			return err
		}
		if progress {
			failed = 0
		}
		if failed++; failed >= c.tries {
			return fmt.Errorf("%w (tried %d times; the same command goes on from here)", err, failed)
		}
		wait := c.pause << (failed - 1)
		var status *StatusError
		if errors.As(err, &status) {
			wait = max(wait, status.after)
		}
		c.hub.note("%v; trying again", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// margin is the space that a pull leaves on a disk.
const margin = 64 << 20

// fetchAll fetches what is missing of the files, after it has seen that there is room for them.
func (c *client) fetchAll(ctx context.Context, root string, wants []want) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	missing := wants[:0:0]
	var need int64
	for _, w := range wants {
		if info, err := os.Stat(w.to); err == nil && (w.size < 0 || info.Size() == w.size) {
			continue // a file has its name only once its digest was seen
		}
		part := int64(0)
		if info, err := os.Stat(w.to + incomplete); err == nil {
			part = min(info.Size(), max(w.size, 0))
		}
		c.total += max(w.size, 0)
		need += max(w.size, 0) - part
		missing = append(missing, w)
	}
	if avail, ok := machine.FreeDisk(root); ok && need > 0 && avail < need+margin {
		return &SpaceError{Dir: root, Need: need + margin, Avail: avail}
	}
	for _, w := range missing {
		c.hub.note("fetching %s", w.url)
		if err := c.fetch(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// incomplete ends the name of a file that is not all here.
const incomplete = ".incomplete"

// fetch gets one file, from where an earlier try ended. The file gets its name once its size and digest are right.
func (c *client) fetch(ctx context.Context, w want) (err error) {
	if err := os.MkdirAll(filepath.Dir(w.to), 0o755); err != nil {
		return &localError{err}
	}
	p, err := openPart(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	c.done += p.n
	rotten := 0
	for {
		err := c.again(ctx, func() (bool, error) {
			before := p.n
			err := c.stream(ctx, p)
			return p.n > before, err
		})
		if err != nil {
			return err
		}
		err = p.verify()
		if err == nil {
			return p.finish()
		}
		c.done -= p.n
		if err := errors.Join(err, p.restart()); rotten > 0 || !isDigest(err) {
			return err
		}
		rotten++ // once more, from the start: a resumed half may be of an older file
	}
}

func isDigest(err error) bool {
	var d *DigestError
	return errors.As(err, &d)
}

// stream appends what is missing to the part.
func (c *client) stream(ctx context.Context, p *part) error {
	if p.size >= 0 && p.n == p.size {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return &localError{err}
	}
	if p.n > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.n))
	}
	resp, err := c.do(req)
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusRequestedRangeNotSatisfiable {
		c.done -= p.n
		return errors.Join(err, p.restart())
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if p.n > 0 && !continues(resp, p.n) {
		c.done -= p.n
		if err := p.restart(); err != nil {
			return err
		}
	}
	if err := p.expect(resp); err != nil {
		return err
	}
	return c.copy(resp.Body, p, cancel)
}

// continues reports whether an answer begins at position n.
func continues(resp *http.Response, n int64) bool {
	return resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", n))
}

var errStalled = errors.New("nothing came for too long")

// copy appends a body to the part; a body that stalls is given up.
func (c *client) copy(body io.Reader, p *part, cancel context.CancelCauseFunc) error {
	watch := time.AfterFunc(c.stall, func() { cancel(errStalled) })
	defer watch.Stop()
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watch.Reset(c.stall)
			if err := p.append(buf[:n]); err != nil {
				return err
			}
			c.done += int64(n)
			if c.hub.Progress != nil {
				c.hub.Progress(c.done, max(c.total, c.done))
			}
		}
		switch {
		case err == io.EOF && p.size >= 0 && p.n < p.size:
			return fmt.Errorf("%s ended after %d of %d bytes", p.url, p.n, p.size)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// part is a file that is not all here.
type part struct {
	want
	f   *os.File
	n   int64 // bytes that are here
	sum hash.Hash
	git hash.Hash
}

// openPart opens what an earlier try left, and reads it for the digest. One process at a time has it.
func openPart(w want) (*part, error) {
	f, err := os.OpenFile(w.to+incomplete, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, &localError{err}
	}
	p := &part{want: w, f: f}
	if err := lock(f); err != nil {
		return nil, &localError{errors.Join(fmt.Errorf("%s: another pull writes it", f.Name()), f.Close())}
	}
	p.reset()
	n, err := io.Copy(io.MultiWriter(p.sum, p.git), io.LimitReader(f, max(w.size, 0)))
	if err != nil || w.size < 0 { // git's digest begins with the size
		err = cmp.Or(err, p.restart())
		n = 0
	}
	if err != nil {
		return nil, &localError{errors.Join(err, f.Close())}
	}
	p.n = n
	return p, f.Truncate(n)
}

func (p *part) reset() {
	p.sum, p.git = sha256.New(), sha1.New() //nolint:gosec // see above
	fmt.Fprintf(p.git, "blob %d\x00", p.size)
}

// restart throws away what is here.
func (p *part) restart() error {
	p.n = 0
	p.reset()
	if _, err := p.f.Seek(0, io.SeekStart); err != nil {
		return &localError{err}
	}
	if err := p.f.Truncate(0); err != nil {
		return &localError{err}
	}
	return nil
}

// expect compares what an answer says of its size with what was announced, and learns what was not.
func (p *part) expect(resp *http.Response) error {
	if resp.ContentLength < 0 {
		return nil
	}
	size := p.n + resp.ContentLength
	if p.size < 0 {
		p.size = size
		p.reset()
	}
	if size != p.size {
		return fmt.Errorf("%s is %d bytes long, not the %d that were announced", p.url, size, p.size)
	}
	return nil
}

func (p *part) append(b []byte) error {
	if p.size >= 0 && p.n+int64(len(b)) > p.size {
		return errors.Join(fmt.Errorf("%s sends more than the %d bytes that were announced", p.url, p.size), p.restart())
	}
	if _, err := p.f.Write(b); err != nil {
		return &localError{err}
	}
	p.sum.Write(b)
	p.git.Write(b)
	p.n += int64(len(b))
	return nil
}

// verify compares the digests that are known.
func (p *part) verify() error {
	if got := hex.EncodeToString(p.sum.Sum(nil)); p.sha256 != "" && got != p.sha256 {
		return &DigestError{p.url, p.sha256, got}
	}
	if got := hex.EncodeToString(p.git.Sum(nil)); p.want.git != "" && got != p.want.git {
		return &DigestError{p.url, p.want.git, got}
	}
	return nil
}

// finish gives the file its name.
func (p *part) finish() error {
	if err := p.f.Sync(); err != nil {
		return &localError{err}
	}
	name := p.f.Name()
	if err := p.close(); err != nil {
		return &localError{err}
	}
	return os.Rename(name, p.to)
}

func (p *part) close() error {
	if p.f == nil {
		return nil
	}
	f := p.f
	p.f = nil
	return f.Close()
}

// writeFile writes a small file so that it is there whole or not at all.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
