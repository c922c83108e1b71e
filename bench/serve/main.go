// Command serve measures a server with the completions API of OpenAI: tokens a second of all clients together, and
// the time until an answer's first token. With two addresses it measures them in turn and prints the ratio: start
// one at a time (-start), since a waiting server may spin.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

type settings struct {
	clients, rounds, in, out, prefix int
	model                            string
	vocab                            int
	timeout                          time.Duration
}

// A contender is a server that is started for its turn.
type contender struct{ name, url, command string }

func main() {
	var s settings
	var a, b contender
	var pairs int
	flag.IntVar(&s.clients, "clients", 8, "requests at once")
	flag.IntVar(&s.rounds, "rounds", 2, "requests of each client, one after the other")
	flag.IntVar(&s.in, "in", 128, "tokens of a prompt beside the shared prefix")
	flag.IntVar(&s.out, "out", 128, "tokens of an answer")
	flag.IntVar(&s.prefix, "prefix", 0, "tokens that all prompts begin with")
	flag.IntVar(&s.vocab, "vocab", 30000, "prompts are random ids from 100 up to this one")
	flag.StringVar(&s.model, "model", "m", "the model's name in requests")
	flag.DurationVar(&s.timeout, "timeout", 5*time.Minute, "for a turn")
	flag.IntVar(&pairs, "pairs", 3, "turns of each")
	flag.StringVar(&a.url, "url", "http://127.0.0.1:8080", "the server")
	flag.StringVar(&a.command, "start", "", "the command that starts it for its turn; empty: it runs")
	flag.StringVar(&b.url, "peer-url", "", "the server to compare with")
	flag.StringVar(&b.command, "peer-start", "", "likewise")
	flag.Parse()
	a.name, b.name = "ours", "peer"
	contenders := []contender{a}
	if b.url != "" {
		contenders = append(contenders, b)
	}
	if err := compare(s, contenders, pairs); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func compare(s settings, contenders []contender, pairs int) error {
	var speeds, firsts []float64
	for pair := range pairs {
		var turn []measured
		for _, c := range contenders {
			m, err := c.turn(s, uint64(pair))
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Printf("%s  %7.1f tokens/s  first token p50 %6.0f ms  p95 %6.0f ms  (%d answers, %d tokens, %.1f s)\n", c.name, m.speed(),
				m.first(0.5), m.first(0.95), len(m.firsts), m.tokens, m.seconds)
			turn = append(turn, m)
		}
		if len(turn) == 2 {
			speeds = append(speeds, turn[0].speed()/turn[1].speed())
			firsts = append(firsts, turn[0].first(0.95)/turn[1].first(0.95))
		}
	}
	if len(speeds) > 0 {
		fmt.Printf("ratio of tokens/s: %s; ratio of p95 of the first token: %s\n", spread(speeds), spread(firsts))
	}
	return nil
}

// turn starts a server, warms it up with one request, measures, and stops it.
func (c contender) turn(s settings, seed uint64) (m measured, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if c.command != "" {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+c.command)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		var log strings.Builder
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			return m, err
		}
		defer func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			if err != nil {
				const most = 600
				text := log.String()
				fmt.Fprintln(os.Stderr, text[max(0, len(text)-most):])
			}
		}()
	}
	if err := ready(ctx, c.url); err != nil {
		return m, err
	}
	warm := s
	warm.clients, warm.rounds = 1, 1
	if _, err := load(ctx, c.url, warm, seed+1000); err != nil {
		return m, err
	}
	return load(ctx, c.url, s, seed)
}
