// Command spillway runs language models that are larger than the memory they are given.
package main

import (
	"context"
	"io"
	"os"

	_ "github.com/spillway/spillway/internal/machine/early" // first, see there
)

func main() {
	s := &session{
		ctx: context.Background(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.LookupEnv, environ: os.Environ,
	}
	os.Exit(s.main(os.Args[1:]))
}

// A session is one use of the command: its streams, environment and global flags.
type session struct {
	ctx     context.Context
	stdin   *os.File
	stdout  io.Writer
	stderr  io.Writer
	getenv  func(string) (string, bool)
	environ func() []string // KEY=VALUE; nil: not looked at
	flags   globals
	origins origins         // of the global flags
	told    map[string]bool // notes that were printed; shared by copies of the session
}

// main runs one command and returns the exit code.
func (s *session) main(args []string) int {
	s.told = map[string]bool{}
	command, err := s.parse(args)
	if err == nil && command != nil {
		s.flags = command.globals()
		err = command.run(s)
	}
	return s.fail(err)
}
