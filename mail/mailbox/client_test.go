package mailbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

type letter = mailtest.Letter

const account = mailtest.Account

// box is one user's mailbox with what the tests of this package do to it.
type box struct{ *mailtest.Box }

func open(t testing.TB, e mailtest.Endpoint, user string, change ...func(*mail.Account)) *box {
	t.Helper()
	return &box{mailtest.Open(t, e, user, change...)}
}

func (b *box) list(q mailbox.ListQuery) *mailbox.Page {
	b.T.Helper()
	p, err := b.List(b.T.Context(), account, q)
	if err != nil {
		b.T.Fatalf("list %+v: %v (%v)", q, err, errors.Unwrap(err))
	}
	return p
}

func uidsOf(p *mailbox.Page) []uint32 {
	out := []uint32{}
	for _, m := range p.Messages {
		out = append(out, m.Ref.UID)
	}
	return out
}

func Test001_2_VerifyTellsHowItIsNow(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Dovecot(t, servertest.Config{})
	b := open(t, e, "verify")
	v, err := b.Verify(t.Context(), account)
	if err != nil || len(v.Issues) > 0 || v.Account != account || v.Server.Port != s.IMAPPort || v.Latency <= 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	if !strings.Contains(strings.Join(v.Capabilities, " "), "UIDPLUS") || len(v.Capabilities) > 256 {
		t.Errorf("capabilities %v", v.Capabilities)
	}
	b.Dir.Password = "wrong-passw0rd"
	v, err = b.Verify(t.Context(), account)
	if err != nil || len(v.Issues) != 1 || v.Issues[0].Kind != mail.KindAuth || v.Issues[0].Stage != "auth" || v.Issues[0].Retryable {
		t.Errorf("with a wrong password: %+v, %v", v, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", v), "wrong-passw0rd") {
		t.Error("the password is in the answer")
	}
	b.Dir.Password = servertest.Password
	a := mailtest.Settings(e.Host, e.Port, "verify")
	a.IMAP.Security = mail.StartTLS
	b.Dir.Set(a)
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) != 1 || v.Issues[0].Kind != mail.KindCertificate || v.Issues[0].Stage != "tls" {
		t.Errorf("with an unknown authority: %+v, %v", v, err)
	}
	a.CAPEM = s.CAPEM
	b.Dir.Set(a)
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) > 0 {
		t.Errorf("over STARTTLS: %+v, %v", v, err)
	}
	a.IMAP.Security, a.IMAP.Port = mail.TLS, s.IMAPSPort
	b.Dir.Set(a)
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) > 0 {
		t.Errorf("over TLS: %+v, %v", v, err)
	}
	must(t, s.Stop())
	if v, err = b.Verify(t.Context(), account); err != nil || len(v.Issues) != 1 || v.Issues[0].Kind != mail.KindConnection || !v.Issues[0].Retryable {
		t.Errorf("without a server: %+v, %v", v, err)
	}
}

func TestAccountsThatCannotBeRead(t *testing.T) {
	d := &mailtest.Directory{Known: map[string]mail.Account{}}
	m := mailbox.New(mailbox.Options{Directory: d})
	defer m.Close()
	if _, err := m.List(t.Context(), "nobody", mailbox.ListQuery{}); !errors.Is(err, mail.ErrNoAccount) {
		t.Errorf("no account: %v", err)
	}
	tests := map[mail.Kind]func(a *mail.Account){
		mail.KindUnsupported: func(a *mail.Account) {
			a.Auth, a.OAuth = mail.AuthOAuth2, mail.OAuth{Provider: "google", ClientID: "x"}
		},
		mail.KindConfig: func(a *mail.Account) { a.IMAP.Host = "mail.example.org" },
	}
	for kind, change := range tests {
		a := mailtest.Settings("127.0.0.1", 1, "x")
		change(&a)
		d.Set(a)
		mailtest.WantKind(t, second(m.List(t.Context(), account, mailbox.ListQuery{})), kind)
		mailtest.WantKind(t, second(m.Get(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: 1}, mailbox.GetQuery{})), kind)
		mailtest.WantKind(t, second(m.Folders(t.Context(), account, mailbox.FolderQuery{})), kind)
		mailtest.WantKind(t, second(m.Verify(t.Context(), account)), kind)
		mailtest.WantKind(t, m.Warm(t.Context(), account), kind)
	}
	a := mailtest.Settings("127.0.0.1", 1, "x")
	a.CAPEM = []byte("no certificate")
	d.Set(a)
	mailtest.WantKind(t, second(m.List(t.Context(), account, mailbox.ListQuery{})), mail.KindConfig)
}

func TestContextEndsAnOperation(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	must(t, err)
	defer ln.Close()
	d := &mailtest.Directory{Known: map[string]mail.Account{account: mailtest.Settings("127.0.0.1", uint16(ln.Addr().(*net.TCPAddr).Port), "x")}, Password: "p"}
	m := mailbox.New(mailbox.Options{Directory: d})
	defer m.Close()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = m.List(short, account, mailbox.ListQuery{})
	if mailtest.WantKind(t, err, mail.KindTimeout); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not match context.DeadlineExceeded", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Get(ended, mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: 1}, mailbox.GetQuery{})
	if mailtest.WantKind(t, err, mail.KindTimeout); !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not match context.Canceled", err)
	}
	if _, err = m.Verify(short, account); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("verify: %v", err)
	}
	// A time of the connection is not the command's.
	impatient := d.Known[account]
	impatient.Timeouts = mail.Timeouts{Greeting: 50 * time.Millisecond}
	d.Set(impatient)
	_, err = m.List(t.Context(), account, mailbox.ListQuery{})
	if e := mailtest.WantKind(t, err, mail.KindTimeout); e.Advice != mail.AdviceTimeoutVariable || e.Detail != "MAIL_IMAP_GREETING_TIMEOUT_MS" {
		t.Errorf("%s %q", e.Advice, e.Detail)
	}
}

func TestAccountWithoutAPassword(t *testing.T) {
	b := onDovecot(t, "nopassword")
	b.Dir.Password = ""
	mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{})), mail.KindConfig)
	mailtest.WantKind(t, second(b.Verify(t.Context(), account)), mail.KindConfig)
}

// A log tells what failed and never who wrote what, nor a secret.
func TestLogsHoldNoSecretsAndNoMail(t *testing.T) {
	var logged bytes.Buffer
	b := onDovecot(t, "logs", allowing("nobody@example.org"))
	m := mailbox.New(mailbox.Options{Directory: b.Dir, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	defer m.Close()
	u := b.Add("INBOX", letter{Subject: "s3cret subject", Body: "s3cret body"})[0]
	mailtest.WantKind(t, second(m.Get(t.Context(), b.Ref("INBOX", u), mailbox.GetQuery{})), mail.KindNotFound)
	b.Dir.Password = "s3cret-pass"
	b.Dir.Edit(func(a *mail.Account) { a.Username = "other" })
	mailtest.WantKind(t, second(m.Get(t.Context(), b.Ref("INBOX", u), mailbox.GetQuery{})), mail.KindAuth)
	if got := logged.String(); strings.Contains(got, "s3cret") || strings.Contains(got, "filtered") || strings.Count(got, "mail operation failed") != 2 {
		t.Errorf("logged %q", got)
	}
}

// Changed settings take effect at the next call; the old connections end.
func TestChangedSettingsGetNewConnections(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	b := open(t, e, "first")
	b.Add("INBOX", letter{Subject: "one"})
	if n := len(b.list(mailbox.ListQuery{}).Messages); n != 1 {
		t.Fatalf("%d messages", n)
	}
	proxy := servertest.NewProxy(t, s.IMAPAddr(), servertest.ProxyOptions{})
	a := mailtest.Settings(proxy.Host, proxy.Port, e.User("second"))
	b.Dir.Set(a)
	if n := len(b.list(mailbox.ListQuery{}).Messages); n != 0 {
		t.Fatalf("%d messages in the other mailbox", n)
	}
	a.SubjectPattern = "x" // a change of policy keeps the connection
	b.Dir.Set(a)
	b.list(mailbox.ListQuery{})
	if n := proxy.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	must(t, b.Close())
	mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{})), mail.KindConnection)
}

// progressTold collects what operations report.
type progressTold struct {
	mu   sync.Mutex
	list []string
}

func (p *progressTold) report(done, total float64, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, fmt.Sprintf("%v of %v %s", done, total, what))
}

func (p *progressTold) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.list
	p.list = nil
	return l
}

func TestLongOperationsReportHowFarTheyAre(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "progress", writable)
	extra, body := mixed("Content-Type: text/plain\r\n\r\ntext", attachment("big", 3<<20))
	uids := b.Add("INBOX", append(make([]letter, 60), letter{Subject: "big", Extra: extra, Body: body})...)
	b.folder("Other")
	b.Dir.Edit(func(a *mail.Account) { a.Name = "other" })
	var told progressTold
	ctx := mail.WithProgress(t.Context(), told.report)
	big := b.Ref("INBOX", uids[60])
	for _, tc := range []struct {
		name, want string
		run        func() error
	}{
		{"list by date", "0 of 0 reading INBOX", func() error {
			return second(b.List(ctx, account, mailbox.ListQuery{Since: time.Now().AddDate(0, 0, -3)}))
		}},
		{"search", "0 of 0 reading INBOX", func() error { return second(b.Search(ctx, []string{account}, mailbox.SearchQuery{Attachments: true})) }},
		{"thread", "0 of 0 reading INBOX", func() error { return second(b.Thread(ctx, big, mailbox.ThreadQuery{})) }},
		{"attachment", "bytes read", func() error { return second(b.Attachment(ctx, big, "")) }},
		{"copy across accounts", "1 of 2 copying messages", func() error { return second(b.Copy(ctx, account, b.refs("INBOX", uids[0], uids[1]), "other", "Other")) }},
	} {
		if err := tc.run(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := told.take(); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tc.want) }) {
			t.Errorf("%s reported %q, want %q", tc.name, got, tc.want)
		}
	}
}

// What is reported of a folder is the same whatever it hides.
func TestProgressTellsNothingOfHiddenMail(t *testing.T) {
	e := mailtest.InMemory(t)
	var seen [2][]string
	for i, hidden := range []int{0, 700} {
		b := open(t, e, fmt.Sprint("progress-hidden-", i), allowing("bob@example.org"))
		b.Add("INBOX", letter{Subject: "shown"})
		b.Add("INBOX", slices.Repeat([]letter{{From: "eve@example.net"}}, hidden)...)
		var told progressTold
		ctx := mail.WithProgress(t.Context(), told.report)
		for _, run := range []func() error{
			func() error { return second(b.List(ctx, account, mailbox.ListQuery{})) },
			func() error { return second(b.Search(ctx, []string{account}, mailbox.SearchQuery{Attachments: true})) },
			func() error { return second(b.Thread(ctx, b.Ref("INBOX", 1), mailbox.ThreadQuery{})) },
		} {
			must(t, run())
		}
		// How often it is told is a matter of time, which a gateway makes even.
		seen[i] = slices.Compact(told.take())
	}
	if !slices.Equal(seen[0], seen[1]) || len(seen[0]) != 1 {
		t.Errorf("with hidden mail %q, without %q", seen[1], seen[0])
	}
}
