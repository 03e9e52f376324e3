package setup

import (
	"io"
	"os"
	"runtime"
	"sync"
)

// formInput reads a terminal for one form after the other. When a form ends, the library
// leaves its reader running, which would take the first key meant for the next form:
// here one goroutine reads, and lends its input to one form at a time.
type formInput struct {
	file *os.File

	start  sync.Once
	chunks chan []byte
	mu     sync.Mutex
	rest   []byte // read but not taken
}

// lend lends the terminal to one form, until end is called.
func (t *formInput) lend() (in io.Reader, end func()) {
	if runtime.GOOS == "windows" {
		return t.file, func() {} // a console is read by events, which no reader can take
	}
	t.start.Do(func() {
		t.chunks = make(chan []byte)
		go t.pump() // ends with the input, or with the process
	})
	r := &lentInput{formInput: t, over: make(chan struct{})}
	return r, func() { close(r.over) }
}

func (t *formInput) pump() {
	defer close(t.chunks)
	for {
		chunk := make([]byte, 256)
		n, err := t.file.Read(chunk)
		if n > 0 {
			t.chunks <- chunk[:n]
		}
		if err != nil {
			return
		}
	}
}

// lentInput is the terminal while it is lent to a form. It has the methods that the library
// needs to set a terminal up, and none by which it would read the terminal itself.
type lentInput struct {
	*formInput
	over chan struct{}
}

func (r *lentInput) Read(b []byte) (int, error) {
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
	case <-r.over: // the input is for the next form
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

func (r *lentInput) Write(b []byte) (int, error) { return r.file.Write(b) }
func (r *lentInput) Close() error                { return nil }
func (r *lentInput) Fd() uintptr                 { return r.file.Fd() }
