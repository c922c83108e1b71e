// Command streamed runs a model that is larger than its memory: spillway under a cap, then
// llama.cpp (mmap) in a memory group of the same size, with the drive measured before and after
// each run by a reader of its own. Files leave the page cache before every run.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spillway/spillway/bench/drive"
	"github.com/spillway/spillway/internal/captest"
)

type settings struct {
	ours, peer, model string
	memory            int64 // MiB
	tokens, peerTurns int
	threads, rounds   int
}

const (
	runTime    = 10 * time.Minute
	driveSlice = 500 * time.Millisecond
)

func main() {
	var s settings
	flag.StringVar(&s.ours, "ours", "spillway", "the spillway binary")
	flag.StringVar(&s.peer, "peer", "", "the llama-bench binary; empty: ours alone")
	flag.StringVar(&s.model, "model", "", "a GGUF file larger than the memory")
	flag.Int64Var(&s.memory, "memory", 1024, "the cap in MiB")
	flag.IntVar(&s.tokens, "n", 16, "generated tokens")
	flag.IntVar(&s.peerTurns, "peer-n", 6, "generated tokens of the peer, which is slow here")
	flag.IntVar(&s.threads, "threads", runtime.NumCPU(), "compute threads of both")
	flag.IntVar(&s.rounds, "rounds", 3, "how often both run")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "streamed:", err)
		os.Exit(1)
	}
}

func (s *settings) run() error {
	if err := captest.Available(); err != nil {
		return err
	}
	if _, err := os.Stat(s.model); err != nil {
		return err
	}
	for range s.rounds {
		if err := s.besideDrive("spillway", s.runOurs); err != nil {
			return err
		}
		if s.peer == "" {
			continue
		}
		if err := s.besideDrive("llama.cpp", s.runPeer); err != nil {
			return err
		}
	}
	return nil
}

// besideDrive measures the drive on both sides of a run and gives the run the better figure.
func (s *settings) besideDrive(name string, run func() (func(drive float64), error)) error {
	before, err := drive.Best(s.model, driveSlice)
	if err != nil {
		return err
	}
	show, err := run()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, err := drive.Best(s.model, driveSlice)
	if err != nil {
		return err
	}
	fmt.Printf("%s in %d MiB; drive before: %v; after: %v\n", name, s.memory, before, after)
	show(max(before.BytesPerSecond, after.BytesPerSecond))
	return nil
}

// inGroup runs a command in a group of the cap's size, from cold files.
func (s *settings) inGroup(bin string, args ...string) (captest.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	res, err := captest.Run{
		Limit: s.memory << 20, Cold: []string{bin, s.model},
		Path: bin, Args: args, Stdin: strings.NewReader(""),
	}.Do(ctx)
	if err == nil && (res.Killed || res.Exit != 0) {
		err = fmt.Errorf("exit %d, killed %v: %s", res.Exit, res.Killed, res.Stderr)
	}
	return res, err
}

// ourReport is what we need of `run --json`.
type ourReport struct {
	Memory struct {
		Budget int64 `json:"budget"`
		Least  int64 `json:"least"`
	} `json:"memory"`
	Speed struct {
		PrefillSeconds float64 `json:"prefill_seconds"`
		DecodeTokens   int     `json:"decode_tokens"`
		DecodeSeconds  float64 `json:"decode_seconds"`
	} `json:"speed"`
	IO struct {
		RequiredBytes       int64   `json:"required_bytes"`
		ReadBytes           int64   `json:"read_bytes"`
		DriveBytesPerSecond float64 `json:"drive_bytes_per_second"`
	} `json:"io"`
	Roofline struct {
		Limit    string  `json:"limit"`
		Fraction float64 `json:"fraction"`
	} `json:"roofline"`
}

func (s *settings) runOurs() (func(float64), error) {
	res, err := s.inGroup(s.ours, "run", "--json", "--quiet", "--raw", "--temperature", "0",
		"--memory", fmt.Sprintf("%dMiB", s.memory), "--threads", strconv.Itoa(s.threads),
		"--max-tokens", strconv.Itoa(s.tokens), s.model, "Once upon a time")
	if err != nil {
		return nil, err
	}
	var r ourReport
	if err := json.Unmarshal(res.Stdout, &r); err != nil {
		return nil, fmt.Errorf("run printed %q: %w", res.Stdout, err)
	}
	return func(bandwidth float64) {
		took := r.Speed.PrefillSeconds + r.Speed.DecodeSeconds
		fmt.Printf("  %.3f tokens/s decode; group peak %d MiB of %d\n", float64(r.Speed.DecodeTokens)/r.Speed.DecodeSeconds, res.Peak>>20, s.memory)
		fmt.Printf("  least bytes %.2f GB, read %.2f GB in %.2f s\n", float64(r.IO.RequiredBytes)/1e9, float64(r.IO.ReadBytes)/1e9, took)
		fmt.Printf("  roofline fraction: %.3f by its own measure (limit %s, drive %.2f GB/s), %.3f by the drive measured beside it\n",
			r.Roofline.Fraction, r.Roofline.Limit, r.IO.DriveBytesPerSecond/1e9, float64(r.IO.RequiredBytes)/bandwidth/took)
	}, nil
}

func (s *settings) runPeer() (func(float64), error) {
	res, err := s.inGroup(s.peer, "-o", "json", "-m", s.model, "-lm", "mmap", "-p", "0", "-n", strconv.Itoa(s.peerTurns),
		"-r", "1", "--no-warmup", "-t", strconv.Itoa(s.threads))
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Average float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(res.Stdout, &rows); err != nil || len(rows) != 1 {
		return nil, fmt.Errorf("llama-bench printed %q: %v", res.Stdout, err)
	}
	info, err := os.Stat(s.model)
	if err != nil {
		return nil, err
	}
	return func(bandwidth float64) {
		fmt.Printf("  %.3f tokens/s decode; group peak %d MiB of %d; reading the whole file for each token at the drive's speed would give %.3f\n",
			rows[0].Average, res.Peak>>20, s.memory, bandwidth/float64(info.Size()))
	}, nil
}
