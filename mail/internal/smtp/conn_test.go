package smtp

import (
	"context"
	"net"
	"os"
	"testing"
	"time"
)

// fakeStarvedConn is a connection on which bytes are ready, but whose first Read gets no turn
// before its deadline. The next deadlines, as many as stalls, pass before the Read begins.
type fakeStarvedConn struct {
	net.Conn
	late   context.Context // ended by the first deadline
	end    func()
	read   bool
	stalls int
	past   bool // the deadline has passed
	text   string
}

func (s *fakeStarvedConn) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	if s.past = s.late.Err() != nil && s.stalls > 0; s.past {
		s.stalls--
		time.Sleep(time.Until(t))
	}
	s.end()
	return nil
}

// Read fails after the deadline even if bytes are there, as that of package net does.
func (s *fakeStarvedConn) Read(p []byte) (int, error) {
	<-s.late.Done()
	if !s.read || s.past || s.text == "" {
		s.read = true
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(p, s.text)
	s.text = s.text[n:]
	return n, nil
}

// What a server said in the middle of a message is found before its end leaves, also where
// neither the goroutine that waits for it nor the last look got a turn in time (a machine
// under load).
func TestWordsAreHeardWithoutATurn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"25": true, "": false} {
		for _, stalls := range []int{0, 1, 3} {
			late, end := context.WithCancel(t.Context())
			c := newConn(&fakeStarvedConn{late: late, end: end, stalls: stalls, text: text})
			if got := c.heard(c.hear()); got != want {
				t.Errorf("heard %v of %q after %d stalls", got, text, stalls)
			}
		}
	}
}
