package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spillway/spillway"
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
	case !errors.Is(err, fs.ErrNotExist):
	case looksLikePath(name), strings.HasSuffix(name, ".jinja"):
		return fmt.Errorf("--chat-template: %w", err)
	default:
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
		return "", fmt.Errorf("%s: %w", visible(name, 200), cause(err))
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

// useTemplateOf does what --chat-template asks for, and notes control tokens that are none to the model.
func (f templateFlag) useTemplateOf(s *session, o *opened) error {
	if f.ChatTemplate == "" {
		return nil
	}
	if err := f.useTemplate(o); err != nil {
		return err
	}
	o.template = o.TemplateName()
	if lacking := lackingTokens(o); len(lacking) > 0 && o.template != "zephyr" { // which writes roles as text
		s.tell(fmt.Sprintf("the chat template %s writes %s, which the model's vocabulary lacks: the model reads it as mere text",
			visible(o.template, 80), strings.Join(lacking, ", ")))
	}
	return nil
}

// lackingTokens are what look like control tokens in a prompt and are none of the vocabulary.
func lackingTokens(o *opened) []string {
	tok, err := o.Tokenizer()
	if err != nil {
		return nil // an error where the tokenizer is used
	}
	text, err := o.Render([]spillway.Message{{Role: "user", Content: "x"}})
	if err != nil {
		return nil // and where the template is
	}
	var lacking []string
	for _, token := range regexp.MustCompile(`<[|｜][^<>|｜\s]{1,40}[|｜]>|<(?:start|end)_of_turn>`).FindAllString(text, -1) {
		if _, ok := tok.ID(token); !ok && !slices.Contains(lacking, token) {
			lacking = append(lacking, token)
		}
	}
	return lacking
}
