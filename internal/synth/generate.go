package synth

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spillway/spillway/internal/quant"
)

// chunkBytes is about how much a worker makes at a time.
const chunkBytes = 256 << 10

// A job is some rows of a tensor.
type job struct {
	t    *tensor
	row  int
	rows int

	data []byte // the encoded rows, once ready
	err  error
	done chan struct{}
}

// jobs yields the work for the tensors in the order of the file.
func jobs(list []tensor, yield func(job) bool) {
	for i := range list {
		t := &list[i]
		step := max(1, chunkBytes/t.rowBytes())
		for row := 0; row < t.rows; row += step {
			if !yield(job{t: t, row: row, rows: min(step, t.rows-row)}) {
				return
			}
		}
	}
}

// generate writes the data of all tensors in order. The workers make rows in any order: a row
// depends on seed, tensor and row number alone. progress hears of the bytes that each write added.
func generate(ctx context.Context, w io.Writer, seed uint64, list []tensor, workers int, progress func(n int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan *job)             // for any worker
	order := make(chan *job, 2*workers)  // for the writer
	free := make(chan []byte, 3*workers) // buffers
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for range workers {
		group.Go(func() {
			var row []float32
			for j := range queue {
				if len(row) < j.t.cols {
					row = make([]float32, j.t.cols)
				}
				j.err = j.make(seed, row[:j.t.cols])
				close(j.done)
			}
		})
	}
	group.Go(func() {
		defer close(order)
		defer close(queue)
		jobs(list, func(j job) bool {
			j.data, j.done = buffer(free), make(chan struct{})
			select {
			case queue <- &j:
			case <-ctx.Done():
				return false
			}
			order <- &j // has room, or the writer makes some; after cancel it is drained
			return true
		})
	})
	err := writeInOrder(ctx, w, order, free, progress)
	cancel()
	for range order { // let the others end
	}
	return err
}

// writeInOrder writes finished jobs and gives their buffers back.
func writeInOrder(ctx context.Context, w io.Writer, order <-chan *job, free chan<- []byte, progress func(n int64)) error {
	for j := range order {
		<-j.done
		if err := ctx.Err(); err != nil {
			return err
		}
		if j.err != nil {
			return fmt.Errorf("tensor %s: %w", j.t.gguf, j.err)
		}
		if _, err := w.Write(j.data); err != nil {
			return err
		}
		progress(int64(len(j.data)))
		select {
		case free <- j.data:
		default:
		}
	}
	return ctx.Err()
}

// buffer returns one that is free, or none.
func buffer(free <-chan []byte) []byte {
	select {
	case b := <-free:
		return b
	default:
		return nil
	}
}

// make encodes the job's rows.
func (j *job) make(seed uint64, row []float32) error {
	n := j.t.rowBytes()
	if cap(j.data) < n*j.rows {
		j.data = make([]byte, max(n*j.rows, chunkBytes))
	}
	j.data = j.data[:n*j.rows]
	for r := range j.rows {
		j.t.fill(row, seed, j.row+r)
		if err := quant.EncodeRow(j.t.typ, j.data[r*n:(r+1)*n], row); err != nil {
			return err
		}
	}
	return nil
}
