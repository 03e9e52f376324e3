package demo

import (
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

func loginSMTP(t testing.TB, s *Servers) *smtp.Client {
	t.Helper()
	c, err := smtp.DialTLS(s.SMTPAddr, s.clientTLS(t))
	must(t, err)
	t.Cleanup(func() { c.Close() })
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
