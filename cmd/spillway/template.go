package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spillway/spillway/internal/chat"
)

// templateFlag says in which form messages are written.
type templateFlag struct {
	ChatTemplate string `help:"Chat template: a file, one of the model's own by name, or a format (chatml, llama3, gemma, plain …). Default: the model's." placeholder:"FILE|NAME"`
}

// templateFlags say what becomes of messages.
type templateFlags struct {
	templateFlag
	ParseSpecial bool `help:"Control tokens that are written out in messages are tokens, not text."`
}

// maxTemplate is how much of a template's file is read.
const maxTemplate = 1 << 20

// A templateUser takes a template by name or by text.
type templateUser interface {
	UseTemplate(name string) error
	UseTemplateText(name, text string) error
}

// useTemplate does what --chat-template asks for.
func (f templateFlag) useTemplate(user templateUser) error {
	name := f.ChatTemplate
	if name == "" {
		return nil
	}
	text, err := readTemplate(name)
	switch {
	case err == nil:
		err = user.UseTemplateText(name, text)
	case errors.Is(err, fs.ErrNotExist) && !looksLikePath(name) && !strings.HasSuffix(name, ".jinja"):
		err = user.UseTemplate(name)
	}
	if err != nil {
		return usagef("--chat-template: %w", err)
	}
	return nil
}

// readTemplate reads a template's file; an error that is fs.ErrNotExist if there is none.
func readTemplate(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file: %w", visible(name, 200), fs.ErrNotExist)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTemplate+1))
	if err == nil && len(text) > maxTemplate {
		err = fmt.Errorf("%s has more than %d bytes", visible(name, 200), maxTemplate)
	}
	return string(text), err
}

// templateSet makes a chat.Set a templateUser.
type templateSet struct{ *chat.Set }

func (s templateSet) UseTemplate(name string) error           { return s.Use(name) }
func (s templateSet) UseTemplateText(name, text string) error { return s.UseSource(name, text) }
