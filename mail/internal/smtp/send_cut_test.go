package smtp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// attempt sends one message to a fakeServer on a new connection. The server has finished when it
// returns.
func attempt(t *testing.T, p *fakeServer) (*smtp.Receipt, error) {
	t.Helper()
	sv := scripted.Serve(t, func(c *scripted.Conn) { p.serve(c.Conn) })
	s, err := smtp.Dial(t.Context(), config(sv.Port, wire.Plaintext, nil))
	if err != nil {
		sv.Stop()
		return nil, err
	}
	r, err := s.Send(t.Context(), to(three...), []byte(letter))
	_ = s.Close()
	p.ended.Wait()
	sv.Stop()
	return r, err
}

// The connection ends after each byte in turn that the server reads or writes. The outcome
// must never contradict the server's record. If the server's output is cut, the outcome is
// certain: NotSent before the end of its 354 answer, and Unknown from there on until the end
// of its answer to the message.
func TestCutAfterEveryByte(t *testing.T) {
	t.Parallel()
	for _, offer := range [][]string{full, full[1:]} {
		var out, in, asked int // bytes in each direction, and the server's bytes up to the end of 354
		whole := &fakeServer{offer: offer}
		whole.counted = func(reads, writes int, stage string) {
			switch stage {
			case "data":
				asked = writes
			case "end":
				out, in = reads, writes
			}
		}
		if _, err := attempt(t, whole); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= out+in; n++ {
			p := &fakeServer{offer: offer, reads: n}
			if n > out {
				p.reads, p.writes = 0, n-out
			}
			where := fmt.Sprintf("after %d bytes read of %d, or %d written of %d, %d with 354", p.reads, out, p.writes, in, asked)
			r, err := attempt(t, p)
			var failed *smtp.SendError
			if err != nil && !errors.As(err, &failed) { // Dial failed
				if len(p.took()) > 0 || strings.Contains(p.commands(), "|MAIL") {
					t.Errorf("%s: %v", where, err)
				}
				continue
			}
			failed = outcome(t, p, r, err)
			switch {
			case failed == nil && (p.reads > 0 && p.reads < out || p.writes > 0 && p.writes < in):
				t.Errorf("%s: accepted", where)
			case failed != nil && p.writes == in:
				t.Errorf("%s, every byte: %v", where, err)
			case failed != nil && failed.Outcome == smtp.Unknown && !strings.Contains(p.commands(), "|DATA"):
				t.Errorf("%s: unknown, without DATA: %v", where, err)
			case p.writes > 0 && p.writes < in && (p.writes < asked && failed.Outcome != smtp.NotSent || p.writes > asked && failed.Outcome != smtp.Unknown):
				t.Errorf("%s: %v", where, err)
			}
		}
	}
}

// lines returns a message of about n bytes. A client's socket on Linux buffers four
// million by default.
func lines(n int) []byte {
	line := strings.Repeat("one of many lines ", 50) + "\r\n"
	return []byte("Subject: large\r\n\r\n" + strings.Repeat(line, n/len(line)))
}

// If the server says something or ends the connection in the middle of a message, the
// client notices before it sends the end of the message.
func TestServerThatSpeaksInTheMiddle(t *testing.T) {
	t.Parallel()
	message := lines(6 << 20)
	for _, tc := range testmain.Table[struct {
		Name, Said string
		Ends       bool
		Kind       wire.Kind
		Code       int
	}](t, "testdata/cases/middle.txt") {
		p := &fakeServer{say: map[string]string{"message": tc.Said}, ends: tc.Ends}
		r, err := p.dial(t).Send(t.Context(), to(three...), message)
		failed := outcome(t, p, r, err)
		var w *wire.Error
		if failed == nil || failed.Outcome != smtp.NotSent || !errors.As(err, &w) || w.Stage != smtp.StageMessage || w.Reply != tc.Code || tc.Kind != "" && w.Kind != tc.Kind {
			t.Errorf("%s: %v", tc.Name, err)
		}
		if len(p.took()) != 0 {
			t.Errorf("%s: the server took it", tc.Name)
		}
	}
}
