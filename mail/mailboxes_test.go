package mail_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// box is one user's mailbox with what the tests of this package do to it.
type box struct{ *userBox }

func open(t testing.TB, e endpoint, user string, change ...func(*mail.Account)) *box {
	t.Helper()
	return &box{openBox(t, e, user, change...)}
}

func (b *box) list(q mail.ListQuery) *mail.Page {
	b.t.Helper()
	p, err := b.List(b.t.Context(), account, q)
	if err != nil {
		b.t.Fatalf("list %+v: %v (%v)", q, err, errors.Unwrap(err))
	}
	return p
}

func uidsOf(p *mail.Page) []uint32 {
	out := []uint32{}
	for _, m := range p.Messages {
		out = append(out, m.Ref.UID)
	}
	return out
}

func Test001_2_VerifyTellsHowItIsNow(t *testing.T) {
	settle(t)
	s, e := dovecot(t, servertest.Config{})
	b := open(t, e, "verify")
	v, err := b.Verify(t.Context(), account)
	if err != nil || len(v.Issues) > 0 || v.Account != account || v.Server.Port != s.IMAPPort || v.Latency <= 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	if !strings.Contains(strings.Join(v.Capabilities, " "), "UIDPLUS") || len(v.Capabilities) > 256 {
		t.Errorf("capabilities %v", v.Capabilities)
	}
	b.dir.password = "wrong-passw0rd"
	v, err = b.Verify(t.Context(), account)
	if err != nil || len(v.Issues) != 1 || v.Issues[0].Code != "AUTH_FAILED" || v.Issues[0].Stage != "auth" || v.Issues[0].Retryable {
		t.Errorf("with a wrong password: %+v, %v", v, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", v), "wrong-passw0rd") {
		t.Error("the password is in the answer")
	}
	b.dir.password = servertest.Password
	a := settings(e.host, e.port, "verify")
	a.IMAP.Security = mail.StartTLS
	b.dir.set(a)
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) != 1 || v.Issues[0].Code != "CONNECTION_FAILED" || v.Issues[0].Stage != "tls" {
		t.Errorf("with an unknown authority: %+v, %v", v, err)
	}
	a.CAPEM = s.CAPEM
	b.dir.set(a)
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) > 0 {
		t.Errorf("over STARTTLS: %+v, %v", v, err)
	}
	a.IMAP.Security, a.IMAP.Port = mail.TLS, s.IMAPSPort
	b.dir.set(a)
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) > 0 {
		t.Errorf("over TLS: %+v, %v", v, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) != 1 || v.Issues[0].Code != "CONNECTION_FAILED" || !v.Issues[0].Retryable {
		t.Errorf("without a server: %+v, %v", v, err)
	}
}

func TestAccountsThatCannotBeRead(t *testing.T) {
	settle(t)
	d := &directory{accounts: map[string]mail.Account{}}
	m := mail.NewMailboxes(mail.MailboxesOptions{Directory: d})
	defer m.Close()
	if _, err := m.List(t.Context(), "nobody", mail.ListQuery{}); !errors.Is(err, mail.ErrNoAccount) {
		t.Errorf("no account: %v", err)
	}
	tests := map[mail.Kind]func(a *mail.Account){
		mail.KindUnsupported: func(a *mail.Account) {
			a.Auth, a.OAuth = mail.AuthOAuth2, mail.OAuth{Provider: "google", ClientID: "x"}
		},
		mail.KindConfig: func(a *mail.Account) { a.IMAP.Host = "mail.example.org" },
	}
	for kind, change := range tests {
		a := settings("127.0.0.1", 1, "x")
		change(&a)
		d.set(a)
		_, err := m.List(t.Context(), account, mail.ListQuery{})
		wantKind(t, err, kind)
		_, err = m.Get(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: 1}, mail.GetQuery{})
		wantKind(t, err, kind)
		_, err = m.Folders(t.Context(), account, mail.FolderQuery{})
		wantKind(t, err, kind)
		_, err = m.Verify(t.Context(), account)
		wantKind(t, err, kind)
		wantKind(t, m.Warm(t.Context(), account), kind)
	}
	a := settings("127.0.0.1", 1, "x")
	a.CAPEM = []byte("no certificate")
	d.set(a)
	_, err := m.List(t.Context(), account, mail.ListQuery{})
	wantKind(t, err, mail.KindConfig)
}

func TestContextEndsAnOperation(t *testing.T) {
	settle(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d := &directory{accounts: map[string]mail.Account{account: settings("127.0.0.1", uint16(ln.Addr().(*net.TCPAddr).Port), "x")}, password: "p"}
	m := mail.NewMailboxes(mail.MailboxesOptions{Directory: d})
	defer m.Close()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = m.List(short, account, mail.ListQuery{})
	if wantKind(t, err, mail.KindTimeout); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not match context.DeadlineExceeded", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Get(ended, mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: 1}, mail.GetQuery{})
	if wantKind(t, err, mail.KindTimeout); !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not match context.Canceled", err)
	}
	if _, err = m.Verify(short, account); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("verify: %v", err)
	}
}

func TestAccountWithoutAPassword(t *testing.T) {
	settle(t)
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "nopassword")
	b.dir.password = ""
	_, err := b.List(t.Context(), account, mail.ListQuery{})
	wantKind(t, err, mail.KindConfig)
	_, err = b.Verify(t.Context(), account)
	wantKind(t, err, mail.KindConfig)
}

// A log tells what failed and never who wrote what, nor a secret.
func TestLogsHoldNoSecretsAndNoMail(t *testing.T) {
	settle(t)
	var logged bytes.Buffer
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "logs", allowing("nobody@example.org"))
	m := mail.NewMailboxes(mail.MailboxesOptions{Directory: b.dir, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	defer m.Close()
	u := b.add("INBOX", letter{subject: "s3cret subject", body: "s3cret body"})[0]
	_, err := m.Get(t.Context(), b.ref("INBOX", u), mail.GetQuery{})
	wantKind(t, err, mail.KindNotFound)
	b.dir.password = "s3cret-pass"
	a, _ := b.dir.Account(t.Context(), account)
	a.Username = "other"
	b.dir.set(a)
	_, err = m.Get(t.Context(), b.ref("INBOX", u), mail.GetQuery{})
	wantKind(t, err, mail.KindAuth)
	if got := logged.String(); strings.Contains(got, "s3cret") || strings.Contains(got, "filtered") || strings.Count(got, "mail operation failed") != 2 {
		t.Errorf("logged %q", got)
	}
}

// Changed settings take effect at the next call; the old connections end.
func TestChangedSettingsGetNewConnections(t *testing.T) {
	settle(t)
	s, e := dovecot(t, servertest.Config{})
	b := open(t, e, "first")
	b.add("INBOX", letter{subject: "one"})
	if n := len(b.list(mail.ListQuery{}).Messages); n != 1 {
		t.Fatalf("%d messages", n)
	}
	proxy := servertest.NewProxy(t, s.IMAPAddr(), servertest.ProxyOptions{})
	a := settings(proxy.Host, proxy.Port, "second")
	b.dir.set(a)
	if n := len(b.list(mail.ListQuery{}).Messages); n != 0 {
		t.Fatalf("%d messages in the other mailbox", n)
	}
	a.SubjectPattern = "x" // a change of policy keeps the connection
	b.dir.set(a)
	b.list(mail.ListQuery{})
	if n := proxy.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := b.List(t.Context(), account, mail.ListQuery{})
	wantKind(t, err, mail.KindConnection)
}

func BenchmarkWarm(b *testing.B) {
	_, e := dovecot(b, servertest.Config{})
	box := open(b, e, "bench")
	for i := range 100 {
		box.add("INBOX", letter{subject: fmt.Sprint("subject ", i), body: strings.Repeat("text ", 300)})
	}
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			box.get("INBOX", uint32(i%100+1), mail.GetQuery{})
		}
	})
	b.Run("list", func(b *testing.B) {
		for range b.N {
			box.list(mail.ListQuery{})
		}
	})
}
