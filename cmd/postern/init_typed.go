package main

import (
	"io"
	"os"
	"runtime"
	"sync"
)

// typed reads a terminal for one form after the other. The forms' library leaves the
// reader of a form behind that has ended, and it would take the first key meant for
// the next one: here only one reader reads, and each form has its turn with it.
type typed struct {
	in *os.File

	start  sync.Once
	chunks chan []byte
	mu     sync.Mutex
	rest   []byte // read, and not taken yet
}

// turn lends the terminal to one form, until its end is called.
func (t *typed) turn() (in io.Reader, end func()) {
	if runtime.GOOS == "windows" {
		return t.in, func() {} // a console is read by events, which nobody can take
	}
	t.start.Do(func() {
		t.chunks = make(chan []byte)
		go t.pump() // ends with the input, or with the process
	})
	r := &turnReader{typed: t, over: make(chan struct{})}
	return r, func() { close(r.over) }
}

func (t *typed) pump() {
	defer close(t.chunks)
	for {
		chunk := make([]byte, 256)
		n, err := t.in.Read(chunk)
		if n > 0 {
			t.chunks <- chunk[:n]
		}
		if err != nil {
			return
		}
	}
}

// turnReader is the terminal for as long as a turn lasts. It has what the library
// needs of a terminal to set it up, and nothing by which it would read it itself.
type turnReader struct {
	*typed
	over chan struct{}
}

func (r *turnReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	waiting := len(r.rest) > 0
	r.mu.Unlock()
	if !waiting {
		select {
		case <-r.over:
			return 0, io.EOF
		case chunk, ok := <-r.chunks:
			if !ok {
				return 0, io.EOF
			}
			r.mu.Lock()
			r.rest = append(r.rest, chunk...)
			r.mu.Unlock()
		}
	}
	select {
	case <-r.over: // what came is for the next
		return 0, io.EOF
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := copy(b, r.rest)
	clear(r.rest[:n]) // it may be a password
	r.rest = r.rest[n:]
	return n, nil
}

func (r *turnReader) Write(b []byte) (int, error) { return r.in.Write(b) }
func (r *turnReader) Close() error                { return nil }
func (r *turnReader) Fd() uintptr                 { return r.in.Fd() }
