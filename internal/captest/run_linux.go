package captest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func (r Run) do(ctx context.Context) (res Result, err error) {
	h, err := findHierarchy()
	if err != nil {
		return Result{}, err
	}
	g, err := h.makeGroup(r.Limit)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	if err := evict(r.Cold); err != nil {
		return Result{}, err
	}
	return r.inGroup(ctx, g)
}

// inGroup starts the command inside the group, so that its first page is charged there already.
func (r Run) inGroup(ctx context.Context, g *group) (Result, error) {
	cmd, done, err := r.command(ctx, g)
	if err != nil {
		return Result{}, err
	}
	defer done()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	sockets := watchSockets(g.v2)
	runErr := cmd.Start()
	if runErr == nil {
		if r.Started != nil {
			r.Started(cmd.Process.Pid)
		}
		runErr = cmd.Wait()
	}
	res := Result{Exit: -1, Elapsed: time.Since(start), Sockets: sockets(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if cmd.ProcessState == nil {
		return res, fmt.Errorf("%s did not start: %w", r.Path, runErr)
	}
	res.Exit = cmd.ProcessState.ExitCode()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		res.Faults = usage.Majflt
	}
	if res.Peak, err = g.peak(); err != nil {
		return res, err
	}
	if res.OOMKills, err = g.oomKills(); err != nil {
		return res, err
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	bySignal := ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	if ctx.Err() != nil {
		return res, fmt.Errorf("%s took longer than the test gave it: %w", r.Path, ctx.Err())
	}
	res.Killed = bySignal || res.OOMKills > 0
	return res, nil
}

// command prepares the process. In v2 the kernel starts it in the group; v1 has no such call, so a
// shell puts itself there and becomes the program. The shell's few pages are gone by then.
func (r Run) command(ctx context.Context, g *group) (*exec.Cmd, func(), error) {
	var cmd *exec.Cmd
	done := func() {}
	if g.v2 {
		dir, err := os.Open(g.dir)
		if err != nil {
			return nil, nil, err
		}
		done = func() { _ = dir.Close() }
		cmd = exec.CommandContext(ctx, r.Path, r.Args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	} else {
		args := append([]string{"-c", `echo $$ > "$0" && exec "$@"`, g.file("cgroup.procs"), r.Path}, r.Args...)
		cmd = exec.CommandContext(ctx, "/bin/sh", args...)
	}
	cmd.Env = append(os.Environ(), r.Env...)
	cmd.Dir, cmd.Stdin = r.Dir, r.Stdin
	cmd.WaitDelay = 10 * time.Second
	return cmd, done, nil
}
