package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway/spillway"
)

// savedChat is the file that /save writes and /load reads. The messages are those of an API request;
// a system message is the first of them.
type savedChat struct {
	Model    string             `json:"model,omitempty"`
	Messages []spillway.Message `json:"messages"`
}

func (c *conversation) save(name string) error {
	name = c.expand(name)
	err := c.writeChat(name)
	if err != nil {
		fmt.Fprintln(c.stderr, oneLine(err.Error()))
		return nil
	}
	fmt.Fprintf(c.stderr, "saved %s to %s\n", count(len(c.messages()), "message"), visible(name, 200))
	return nil
}

func (c *conversation) writeChat(name string) error {
	if name == "" {
		return errors.New("/save needs the name of a file")
	}
	if err := mayReplace(name); err != nil {
		return err
	}
	text, err := json.MarshalIndent(savedChat{c.o.Name(), append([]spillway.Message{}, c.messages()...)}, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(name, append(text, '\n'))
}

// mayReplace refuses to replace a file that is not a saved conversation.
func mayReplace(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	if _, err := readChat(name, info.Size()); err != nil {
		return fmt.Errorf("%s exists and is no saved conversation: choose another name", visible(name, 200))
	}
	return nil
}

// writeWhole writes a file that is its owner's alone.
func writeWhole(name string, text []byte) error { return writeMode(name, text, 0o600) }

// writeMode writes a file beside its place and puts it there when it is whole.
func writeMode(name string, text []byte, mode fs.FileMode) error {
	f, err := createBeside(name, mode)
	if err == nil {
		_, err = f.Write(text)
		if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), name)
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", visible(name, 200), cause(err))
	}
	return nil
}

// createBeside makes a new file in the folder of another one.
func createBeside(name string, mode fs.FileMode) (f *os.File, err error) {
	const tries = 100
	for range tries {
		path := filepath.Join(filepath.Dir(name), fmt.Sprintf(".spillway-%d", rand.Uint32()))
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// cause is what the system said of a file, without the name of a temporary one.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// expand puts the home folder in the place of a ~ at the beginning of a name, as shells do.
func (s *session) expand(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home := s.home(rest); home != "" {
			return home
		}
	}
	return name
}

func (c *conversation) load(name string) error {
	name = c.expand(name)
	chat, err := c.loadChat(name)
	if err != nil {
		fmt.Fprintln(c.stderr, oneLine(err.Error()))
		return nil
	}
	c.system, c.turns = "", chat.Messages
	if m := chat.Messages; len(m) > 0 && m[0].Role == "system" {
		c.system, c.turns = m[0].Content, m[1:]
	}
	fmt.Fprintf(c.stderr, "loaded %s from %s\n", count(len(chat.Messages), "message"), visible(name, 200))
	if chat.Model != "" && chat.Model != c.o.Name() {
		fmt.Fprintf(c.stderr, "note: it was saved from another model, %s\n", visible(chat.Model, 80))
	}
	return nil
}

func (c *conversation) loadChat(name string) (*savedChat, error) {
	if name == "" {
		return nil, errors.New("/load needs the name of a file")
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", visible(name, 200))
	case info.Size() > textOf(c.m.Options().Context)+freeText: // what is leased for the text
		return nil, fmt.Errorf("%s has %d bytes, more than fill this context; --context plans for more", visible(name, 200), info.Size())
	}
	return readChat(name, info.Size())
}

// readChat reads a conversation of at most size bytes.
func readChat(name string, size int64) (*savedChat, error) {
	if size > maxPrompt {
		return nil, errLongPrompt
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var chat savedChat
	if err := d.Decode(&chat); err != nil {
		return nil, fmt.Errorf("%s is no saved conversation: %w", visible(name, 200), plainJSON(err))
	}
	if chat.Messages == nil {
		return nil, fmt.Errorf("%s is no saved conversation: it has no messages", visible(name, 200))
	}
	for i, m := range chat.Messages {
		if what := wrongMessage(m); what != "" {
			return nil, fmt.Errorf("%s is no saved conversation: message %d %s", visible(name, 200), i+1, what)
		}
	}
	return &chat, nil
}

// wrongMessage says what a message lacks that a template needs; "" if it does.
func wrongMessage(m spillway.Message) string {
	const longest = 32
	letter := func(r rune) bool { return unicode.IsLetter(r) || r == '_' }
	var content struct{ Content any }
	switch {
	case m.Role == "":
		return "has no role"
	case utf8.RuneCountInString(m.Role) > longest || strings.ContainsFunc(m.Role, func(r rune) bool { return !letter(r) }):
		return fmt.Sprintf("has the role %.40q; system, user, assistant and tool are known, and other words of up to %d letters", m.Role, longest)
	case json.Unmarshal(m.Raw, &content) != nil:
		return "is no object"
	}
	switch content.Content.(type) {
	case string, []any:
	case nil:
		if len(m.ToolCalls) == 0 {
			return "has no content"
		}
	default:
		return "has a content that is neither a text nor a list of parts"
	}
	return ""
}

// home returns a path under the user's home folder, or "" if there is none.
func (s *session) home(parts ...string) string {
	for _, key := range []string{"HOME", "USERPROFILE"} {
		if dir, ok := s.getenv(key); ok && dir != "" {
			return filepath.Join(append([]string{dir}, parts...)...)
		}
	}
	return ""
}
