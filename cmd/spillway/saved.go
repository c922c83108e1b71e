package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spillway/spillway"
)

// savedChat is the file that /save writes and /load reads. The messages are those of an API request;
// a system message is the first of them.
type savedChat struct {
	Model    string             `json:"model,omitempty"`
	Messages []spillway.Message `json:"messages"`
}

func (c *conversation) save(name string) error {
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
	text, err := json.MarshalIndent(savedChat{c.o.Name(), c.messages()}, "", "  ")
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

// writeWhole writes a file beside its place and puts it there when it is whole.
func writeWhole(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".spillway-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func (c *conversation) load(name string) error {
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
		return nil, fmt.Errorf("%s is no saved conversation: %w", visible(name, 200), err)
	}
	for i, m := range chat.Messages {
		if m.Role == "" {
			return nil, fmt.Errorf("%s is no saved conversation: message %d has no role", visible(name, 200), i+1)
		}
	}
	return &chat, nil
}
