package smtp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

const letter = "From: ann@example.org\r\nSubject: dots\r\n\r\n.one\r\n..two\r\n.\r\nend\r\n"

func to(recipients ...string) smtp.Envelope {
	return smtp.Envelope{From: "ann@example.org", Recipients: recipients}
}

var three = []string{"a@example.org", "b@example.org", "c@example.org"}

// outcome checks the result of a Send against the server's record: Accepted and NotSent must
// be true. It returns the error, nil for Accepted.
func outcome(t *testing.T, p *fakeServer, r *smtp.Receipt, err error) *smtp.SendError {
	t.Helper()
	took := p.took()
	if err == nil {
		if r == nil || len(took) != 1 || took[0] != letter {
			t.Errorf("accepted, and the server took %q", took)
		}
		return nil
	}
	var failed *smtp.SendError
	if r != nil || !errors.As(err, &failed) {
		t.Fatalf("receipt %v, error %v", r, err)
	}
	if failed.Outcome == smtp.NotSent && len(took) != 0 {
		t.Errorf("not sent (%v), and the server took %q", err, took)
	}
	return failed
}

func TestSend(t *testing.T) {
	t.Parallel()
	for _, offer := range [][]string{full, {"AUTH PLAIN"}} {
		p := &fakeServer{offer: offer}
		s := p.dial(t)
		before := 0
		e := to(three...)
		e.BeforeData = func() error {
			if strings.Count(p.commands(), "|DATA") != before {
				t.Error("DATA came before")
			}
			before++
			return nil
		}
		for range 2 {
			r, err := s.Send(t.Context(), e, []byte(letter))
			if err != nil || r.Reply != 250 || r.Code != "2.0.0" && len(offer) > 1 || r.Text != "queued as 42" {
				t.Fatalf("receipt %+v, %v", r, err)
			}
		}
		if took := p.took(); len(took) != 2 || took[0] != letter || took[1] != letter || before != 2 {
			t.Errorf("the server took %q; BeforeData ran %d times", took, before)
		}
		size := " SIZE=" + fmt.Sprint(len(letter))
		if len(offer) == 1 {
			size = ""
		}
		one := "MAIL FROM:<ann@example.org>" + size + "|RCPT TO:<a@example.org>|RCPT TO:<b@example.org>|RCPT TO:<c@example.org>|DATA"
		if got := p.commands(); !strings.HasSuffix(got, "|"+one+"|"+one) {
			t.Errorf("sent %s", got)
		}
	}
}

// The parameters of MAIL depend on what the server offers and the message needs.
func TestMailParameters(t *testing.T) {
	t.Parallel()
	utf8 := "Subject: Grüße\r\n\r\nHallo\r\n"
	for _, tc := range []struct {
		name    string
		e       smtp.Envelope
		message string
		want    string
	}{
		{"ASCII", to("b@example.org"), letter, "MAIL FROM:<ann@example.org> SIZE=61"},
		{"8-bit text", to("b@example.org"), "Subject: x\r\n\r\nü\r\n", "MAIL FROM:<ann@example.org> SIZE=18 BODY=8BITMIME"},
		{"8-bit header", smtp.Envelope{From: "ann@example.org", Recipients: []string{"b@example.org"}, SMTPUTF8: true}, utf8, "MAIL FROM:<ann@example.org> SIZE=27 BODY=8BITMIME SMTPUTF8"},
		{"recipient beyond ASCII", to("bjørn@example.org"), letter, "MAIL FROM:<ann@example.org> SIZE=61 SMTPUTF8"},
		{"sender beyond ASCII", smtp.Envelope{From: "ännchen@example.org", Recipients: []string{"b@example.org"}}, letter, "MAIL FROM:<ännchen@example.org> SIZE=61 SMTPUTF8"},
	} {
		p := &fakeServer{}
		if _, err := p.dial(t).Send(t.Context(), tc.e, []byte(tc.message)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := p.commands(); !strings.Contains(got, "|"+tc.want+"|RCPT") {
			t.Errorf("%s: sent %s, want %s", tc.name, got, tc.want)
		}
	}
}

// A message that cannot be sent is refused before MAIL.
func TestUnsendableMessagesAreRefusedBeforeMAIL(t *testing.T) {
	t.Parallel()
	for _, tc := range testmain.Table[struct {
		Name       string
		Kind       wire.Kind
		From       string
		UTF8, Poor bool
		Message    string
		To         []string
	}](t, "testdata/cases/unsendable.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			p := &fakeServer{offer: full}
			if tc.Poor {
				p.offer = []string{"AUTH PLAIN", "SIZE 60"}
			}
			e, message := smtp.Envelope{From: tc.From, Recipients: tc.To, SMTPUTF8: tc.UTF8}, []byte(tc.Message)
			if slices.Equal(tc.To, []string{"many"}) {
				e.Recipients = slices.Repeat(three[:1], 101)
			}
			s := p.dial(t)
			e.BeforeData = func() error { t.Error("BeforeData was called"); return nil }
			for _, err := range []error{s.Check(e, message), func() error { _, err := s.Send(t.Context(), e, message); return err }()} {
				var w *wire.Error
				failed := new(smtp.SendError)
				if !errors.As(err, &failed) || !errors.As(err, &w) || failed.Outcome != smtp.NotSent || failed.Temporary || w.Kind != tc.Kind || w.Stage != smtp.StageCheck {
					t.Errorf("%v (%+v)", err, w)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if got := p.commands(); strings.Contains(got, "MAIL") {
				t.Errorf("sent %s", got)
			}
		})
	}
	p := &fakeServer{offer: []string{"AUTH PLAIN", "SIZE 998"}}
	for _, message := range []string{strings.Repeat("a", 996) + "\r\n", "\r\n", ".\r\n"} {
		if err := p.dial(t).Check(to(three...), []byte(message)); err != nil {
			t.Errorf("%d bytes: %v", len(message), err)
		}
	}
}

// pairs is a map of keys and values that follow one another.
func pairs(list []string) map[string]string {
	m := map[string]string{}
	for p := range slices.Chunk(list, 2) {
		m[p[0]] = p[1]
	}
	return m
}

// Each fault has one outcome, and the server's record agrees with it.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range testmain.Table[struct {
		Name      string
		Outcome   string
		Stage     string
		Kind      wire.Kind
		Code      int
		Temporary bool
		Refused   string
		Before    bool
		Ends      bool
		Say       []string
	}](t, "testdata/cases/faults.txt") {
		for _, offer := range [][]string{full, full[1:]} {
			t.Run(tc.Name+" "+offer[0], func(t *testing.T) {
				p := &fakeServer{offer: offer, say: pairs(tc.Say), ends: tc.Ends}
				s := p.dial(t)
				called := false
				e := to(three...)
				e.BeforeData = func() error { called = true; return nil }
				r, err := s.Send(t.Context(), e, []byte(letter))
				failed := outcome(t, p, r, err)
				var w *wire.Error
				if failed == nil || !errors.As(err, &w) {
					t.Fatalf("accepted, or failed otherwise: %v", err)
				}
				var refused []string
				for _, r := range failed.Refused {
					refused = append(refused, fmt.Sprintf("%s %d %s %s", r.Address, r.Reply, r.Code, r.Text))
				}
				if failed.Outcome.String() != tc.Outcome || w.Stage != tc.Stage || w.Kind != tc.Kind || w.Reply != tc.Code || failed.Temporary != tc.Temporary ||
					strings.Join(refused, ", ") != tc.Refused || called != tc.Before {
					t.Errorf("%v: outcome %v, %+v, temporary %v, refused %v, BeforeData %v", err, failed.Outcome, w, failed.Temporary, refused, called)
				}
				if tc.Stage == "rcpt" && strings.Contains(p.commands(), "DATA") {
					t.Error("DATA was sent")
				}
			})
		}
	}
}

// A server may say goodbye together with its answer.
func TestGoodbyeBehindTheAnswer(t *testing.T) {
	t.Parallel()
	p := &fakeServer{say: map[string]string{"end": "250 2.0.0 queued\r\n421 4.4.2 idle\r\n"}}
	s := p.dial(t)
	r, err := s.Send(t.Context(), to(three...), []byte(letter))
	if failed := outcome(t, p, r, err); failed != nil {
		t.Error(err)
	}
	_, err = s.Send(t.Context(), to(three...), []byte(letter))
	var failed *smtp.SendError
	if !errors.As(err, &failed) || failed.Outcome != smtp.NotSent || !failed.Temporary {
		t.Errorf("then %v", err)
	}
}

// After a refusal the session can send another message.
func TestSessionGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	for _, offer := range [][]string{full, full[1:]} {
		for stage, said := range map[string]string{"mail": "451 later\r\n", "rcpt b@example.org": "550 no\r\n", "data": "451 later\r\n", "end": "554 spam\r\n"} {
			p := &fakeServer{offer: offer, say: map[string]string{stage: said}}
			s := p.dial(t)
			_, err := s.Send(t.Context(), to(three...), []byte(letter))
			if err == nil {
				t.Fatalf("%s: accepted", stage)
			}
			p.mu.Lock()
			p.say = nil
			p.mu.Unlock()
			r, err := s.Send(t.Context(), to(three...), []byte(letter))
			if failed := outcome(t, p, r, err); failed != nil {
				t.Errorf("%s: then %v", stage, err)
			}
			if got := p.commands(); !strings.Contains(got, "|RSET|MAIL") {
				t.Errorf("%s: sent %s", stage, got)
			}
		}
	}
}

// The end of the context or of the connection ends a Send at every stage, also inside TLS,
// and the outcome is Unknown only at the last stage.
func TestContextEndsASend(t *testing.T) {
	t.Parallel()
	ca := scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	for stage, want := range map[string]smtp.Outcome{
		"mail": smtp.NotSent, "rcpt b@example.org": smtp.NotSent, "data": smtp.NotSent, "message": smtp.NotSent, "end": smtp.Unknown,
	} {
		for _, said := range []string{hang, hangUp} {
			for _, inside := range []bool{false, true} {
				name := fmt.Sprintf("%s, %s, TLS %v", stage, said, inside)
				ctx, cancel := context.WithCancel(t.Context())
				p := &fakeServer{say: map[string]string{stage: said}}
				p.at = func(at string) {
					if at == stage && said == hang {
						cancel()
					}
				}
				message := letter
				if stage == "message" {
					message += strings.Repeat("a line that is not read\r\n", 1<<20) // too long for the buffers, so its end is never sent
					if said == hang {
						p.say["message"] = stuck
					}
				}
				c := config(p.start(t, nil), wire.Plaintext, nil)
				if inside {
					c = config(p.start(t, &leaf), wire.TLS, ca)
				}
				s, err := smtp.Dial(t.Context(), c)
				must(t, err)
				r, err := s.Send(ctx, to(three...), []byte(message))
				failed := outcome(t, p, r, err)
				var w *wire.Error
				if failed == nil || failed.Outcome != want || !errors.As(err, &w) || said == hang && (!errors.Is(err, context.Canceled) || w.Kind != wire.KindCanceled) {
					t.Errorf("%s: %v", name, err)
				}
				if failed != nil && want == smtp.NotSent && !failed.Temporary {
					t.Errorf("%s: not temporary", name)
				}
				_ = s.Close()
				cancel()
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p := &fakeServer{}
	s := p.dial(t)
	if _, err := s.Send(ended, to(three...), []byte(letter)); !errors.Is(err, context.Canceled) {
		t.Errorf("before it began: %v", err)
	}
	if _, err := s.Send(t.Context(), to(three...), []byte(letter)); err != nil {
		t.Errorf("the connection was not used, and fails: %v", err)
	}
}
