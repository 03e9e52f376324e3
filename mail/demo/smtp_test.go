package demo

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

func dialSMTP(t testing.TB, s *Servers) *smtp.Client {
	t.Helper()
	c, err := smtp.DialTLS(s.SMTPAddr, s.clientTLS(t))
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func loginSMTP(t testing.TB, s *Servers) *smtp.Client {
	t.Helper()
	c := dialSMTP(t, s)
	must(t, c.Auth(sasl.NewPlainClient("", s.Username, s.Password.Reveal())))
	return c
}

func TestSubmissionArrives(t *testing.T) {
	t.Parallel()
	s := start(t)
	reader := login(t, s)
	next := open(t, reader, "INBOX", true).UIDNext
	raw := "From: demo@example.org\r\nTo: demo@example.org, x@example.com\r\nSubject: hello\r\n\r\n.a dot and a last line\r\n"
	c := loginSMTP(t, s)
	must(t, c.SendMail(Username, []string{"DEMO@example.org", "x@example.com", "hidden@example.net"}, strings.NewReader(raw)))
	// The session has not been told of the message yet, so there is no number to
	// show it under; 0 is none.
	section := &imap.FetchItemBodySection{Peek: true}
	fetch := func() []*imapclient.FetchMessageBuffer {
		got, err := reader.Fetch(imap.UIDSetNum(next), &imap.FetchOptions{InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
		must(t, err)
		return got
	}
	if early := fetch(); len(early) != 0 {
		t.Errorf("a message nobody was told of has number %d", early[0].SeqNum)
	}
	got := fetch() // the end of the first command told it
	if len(got) != 1 {
		t.Fatalf("%d messages arrived", len(got))
	}
	body := string(got[0].FindBodySection(section))
	if !strings.HasPrefix(body, "Return-Path: <demo@example.org>\r\nReceived: ") || !strings.HasSuffix(body, "\r\n"+raw) {
		t.Errorf("got %q", body)
	}
	if !got[0].InternalDate.Equal(testNow) {
		t.Errorf("dated %v, want the demo's clock", got[0].InternalDate)
	}
	out := s.Outgoing()
	if len(out) != 1 || out[0].From != Username || strings.Join(out[0].To, " ") != "x@example.com hidden@example.net" || string(out[0].Raw) != raw {
		t.Errorf("outgoing: %+v", out)
	}
	out[0].Raw[0] = 'X'
	if s.Outgoing()[0].Raw[0] == 'X' {
		t.Error("Outgoing lends its own memory")
	}
}

func TestSubmissionRefuses(t *testing.T) {
	t.Parallel()
	s := start(t)
	code := func(err error) int {
		var refused *smtp.SMTPError
		if errors.As(err, &refused) {
			return refused.Code
		}
		return 0
	}
	c := loginSMTP(t, s)
	if size, ok := c.MaxMessageSize(); !ok || size != MaxMessageBytes {
		t.Errorf("SIZE %d, %v", size, ok)
	}
	if got := code(c.Mail("other@example.org", nil)); got != 553 {
		t.Errorf("foreign sender: %d", got)
	}
	if got := code(c.Mail(Username, &smtp.MailOptions{Size: MaxMessageBytes + 1})); got != 552 {
		t.Errorf("declared size: %d", got)
	}
	must(t, c.Mail(Username, nil))
	if got := code(c.Rcpt("nobody", nil)); got != 501 {
		t.Errorf("recipient without a domain: %d", got)
	}
	must(t, c.Rcpt("x@example.com", nil))
	w, err := c.Data()
	must(t, err)
	line := []byte(strings.Repeat("x", 998) + "\r\n")
	for n := 0; n <= MaxMessageBytes; n += len(line) {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := code(w.Close()); got != 552 {
		t.Errorf("real size: %d", got)
	}
	if out := s.Outgoing(); len(out) != 0 {
		t.Errorf("%d messages accepted", len(out))
	}
}

// The library cannot describe such a message and would break the connection.
func TestAMultipartWithoutAPartIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	const inner = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b--\r\n"
	for _, raw := range []string{
		inner,
		"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n" + inner + "--a--\r\n",
		"Content-Type: message/rfc822\r\n\r\n" + inner,
	} {
		if err := loginSMTP(t, s).SendMail(Username, []string{Username}, strings.NewReader(raw)); err == nil {
			t.Errorf("SMTP accepted %q", raw)
		}
		c := login(t, s)
		w := c.Append("INBOX", int64(len(raw)), nil)
		if _, err := io.WriteString(w, raw); err != nil {
			t.Fatal(err)
		}
		must(t, w.Close())
		_, err := w.Wait()
		wantNO(t, "APPEND", err)
	}
}
