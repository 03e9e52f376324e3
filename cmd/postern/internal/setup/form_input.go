package setup

import (
	"context"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
)

// formInput reads a terminal for one form after the other. When a form ends, the library
// leaves its reader running, which would take the first key meant for the next form: here
// it reads no more.
type formInput struct {
	file *os.File
	mu   sync.Mutex // of the reader whose turn it is
	rest []byte     // read but not taken
}

// lend lends the terminal to one form, until end is called.
func (t *formInput) lend() (in io.Reader, end func()) {
	if runtime.GOOS == "windows" {
		return t.file, func() {} // a console is read by events, which no reader can take
	}
	ctx, end := context.WithCancel(context.Background())
	return &lentInput{t, ctx}, end
}

// lentInput is the terminal while it is lent to a form, which is as long as ctx lasts. It has the
// methods that the library needs to set a terminal up, and none by which it would read the terminal
// itself.
type lentInput struct {
	*formInput
	ctx context.Context
}

func (r *lentInput) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) == 0 {
		chunk := make([]byte, 256)
		n, err := terminal.Read(r.ctx, r.file, chunk)
		if r.rest = chunk[:n]; err != nil {
			return 0, io.EOF
		}
	}
	if r.ctx.Err() != nil { // the input is for the next form
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	clear(r.rest[:n]) // it may be a password
	r.rest = r.rest[n:]
	return n, nil
}

func (r *lentInput) Write(b []byte) (int, error) { return r.file.Write(b) }
func (r *lentInput) Close() error                { return nil }
func (r *lentInput) Fd() uintptr                 { return r.file.Fd() }
