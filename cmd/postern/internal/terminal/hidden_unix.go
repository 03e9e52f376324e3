//go:build linux || darwin

package terminal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"

	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
)

// set changes the mode of a terminal.
func set(fd int, request uint, change func(*unix.Termios)) error {
	t, err := unix.IoctlGetTermios(fd, ioctlGet)
	if err != nil {
		return err
	}
	change(t)
	return unix.IoctlSetTermios(fd, request, t)
}

// silence stops a terminal from showing what is typed, before anybody is asked to
// type: a fast person, or one who pastes, is not shown either. What was typed before that is
// dropped, as it is no answer. The terminal is set back by the caller, who keeps its state.
func silence(fd int) error {
	return set(fd, ioctlSetFlush, func(t *unix.Termios) {
		t.Lflag &^= unix.ECHO
		t.Lflag |= unix.ICANON | unix.ISIG
		t.Iflag |= unix.ICRNL
	})
}

// Rest has a terminal keep what is typed, unseen and key by key, for whoever reads next. Ctrl-C and
// Ctrl-Z send their signals, and Ctrl-\ none, which would end the program without setting the
// terminal back. On another file it does nothing.
func Rest(f *os.File) {
	_ = set(int(f.Fd()), ioctlSet, func(t *unix.Termios) {
		t.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN
		t.Iflag &^= unix.ICRNL
		t.Cc[unix.VMIN], t.Cc[unix.VTIME], t.Cc[unix.VQUIT] = 1, 0, noKey
	})
}

// Discard drops unread input of a terminal, so that it does not answer a later question. On
// another file it does nothing.
func Discard(f *os.File) { _ = set(int(f.Fd()), ioctlSetFlush, func(*unix.Termios) {}) }

// Suspend stops the program, as Ctrl-Z does, where a shell can take it up again.
func Suspend() { _ = unix.Kill(0, unix.SIGTSTP) }

// Unchanged is ctx until the window has another size, or a shell has taken the program up again and
// may have set the terminal to another mode.
func Unchanged(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, unix.SIGWINCH, unix.SIGCONT)
}

// Read reads from a terminal, or another file, and waits no longer than ctx lasts, of which it
// returns the cause. What is typed next is for whoever reads next.
func Read(ctx context.Context, f *os.File, b []byte) (int, error) {
	r, err := cancelreader.NewReader(f)
	if err != nil { // a file that cannot be waited for
		return f.Read(b)
	}
	defer func() { _ = r.Close() }()
	defer context.AfterFunc(ctx, func() { r.Cancel() })()
	n, err := r.Read(b)
	if errors.Is(err, cancelreader.ErrCanceled) {
		err = context.Cause(ctx)
	}
	return n, err
}

// readHidden reads a line from a terminal that was silenced. It changes nothing of the
// terminal, which may have been set back meanwhile because the caller waits no longer. Once
// ctx has ended it takes no more: what is typed then is for the next to ask.
func readHidden(ctx context.Context, f *os.File) ([]byte, error) {
	line := make([]byte, MaxHidden)
	n, err := Read(ctx, f, line) // a terminal that is silenced hands over a line at a time
	return bytes.TrimSuffix(line[:n], []byte("\n")), err
}
