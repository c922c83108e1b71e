package server

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// keys are the digests of the API keys; with none everybody may come.
type keys [][sha256.Size]byte

func newKeys(texts []string) keys {
	var all keys
	for _, t := range texts {
		all = append(all, sha256.Sum256([]byte(t)))
	}
	return all
}

// check compares the request's key with all of ours, in a time that depends on neither.
func (k keys) check(r *http.Request) error {
	if len(k) == 0 {
		return nil
	}
	key := keyOf(r)
	given := sha256.Sum256([]byte(key))
	match := 0
	for i := range k {
		match |= subtle.ConstantTimeCompare(k[i][:], given[:])
	}
	if match == 1 && key != "" { // an empty key is none, even if it is one of ours
		return nil
	}
	return &Error{Status: http.StatusUnauthorized, Code: CodeKey,
		Message: "the API key is missing or wrong: give it as Authorization: Bearer KEY or x-api-key: KEY"}
}

// keyOf is the key that a request brings.
func keyOf(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	kind, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// ReadKeys reads a file of API keys, one a line; blank lines and those that begin with # are left out.
func ReadKeys(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key := strings.TrimSpace(lines.Text()); key != "" && key[0] != '#' {
			all = append(all, key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no key: put one on each line", path)
	}
	return all, nil
}
