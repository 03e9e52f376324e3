package smtp

import (
	"context"
	"net"
	"os"
	"testing"
	"time"
)

// starved is a connection on which bytes are ready, but whose first Read gets no turn
// before its deadline.
type starved struct {
	net.Conn
	late context.Context // ended by the first deadline
	end  func()
	read bool
	text string
}

func (s *starved) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		s.end()
	}
	return nil
}

func (s *starved) Read(p []byte) (int, error) {
	<-s.late.Done()
	if !s.read || s.text == "" {
		s.read = true
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(p, s.text)
	s.text = s.text[n:]
	return n, nil
}

// What a server said in the middle of a message is found before its end leaves, also where
// the goroutine that waits for it got no turn (a machine under load).
func TestWordsAreHeardWithoutATurn(t *testing.T) {
	for text, want := range map[string]bool{"25": true, "": false} {
		late, end := context.WithCancel(t.Context())
		c := newConn(&starved{late: late, end: end, text: text})
		if got := c.heard(c.hear()); got != want {
			t.Errorf("heard %v of %q", got, text)
		}
	}
}
