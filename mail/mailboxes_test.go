package mail_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// directory is a Directory in memory.
type directory struct {
	mu       sync.Mutex
	accounts map[string]mail.Account
	password string
}

func (d *directory) Accounts(context.Context) ([]mail.Account, error) { return nil, nil }

func (d *directory) Account(_ context.Context, name string) (mail.Account, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.accounts[name]
	if !ok {
		return a, mail.ErrNoAccount
	}
	return a, nil
}

func (d *directory) Secret(context.Context, string) (mail.Secret, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return mail.NewSecret([]byte(d.password)), nil
}

func (d *directory) set(a mail.Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accounts[a.Name] = a
}

// endpoint is a server that tests read from and write to.
type endpoint struct {
	name  string
	host  string
	port  uint16
	root  string // what the names of folders beside INBOX begin with
	admin func(t testing.TB, user string) *imapclient.Client
}

// box is one user's mailbox on a server, as a test uses it: Mailboxes to read
// with, and a connection of its own to change things behind their back.
type box struct {
	*mail.Mailboxes
	t     testing.TB
	dir   *directory
	admin *imapclient.Client
	root  string
}

const account = "ann"

func settings(host string, port uint16, user string) mail.Account {
	return mail.Account{Name: account, Email: user + "@example.org", Protocol: mail.IMAP, Username: user, Auth: mail.AuthPassword, Mode: mail.ReadOnly,
		IMAP: mail.Endpoint{Host: host, Port: port, Security: mail.Plaintext}}
}

func open(t testing.TB, e endpoint, user string, change ...func(*mail.Account)) *box {
	t.Helper()
	a := settings(e.host, e.port, user)
	for _, c := range change {
		c(&a)
	}
	d := &directory{accounts: map[string]mail.Account{account: a}, password: servertest.Password}
	m := mail.NewMailboxes(mail.MailboxesOptions{Directory: d})
	t.Cleanup(func() { _ = m.Close() })
	return &box{Mailboxes: m, t: t, dir: d, admin: e.admin(t, user), root: e.root}
}

func login(t testing.TB, address, user string) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialInsecure(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Login(user, servertest.Password).Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

func dovecot(t testing.TB, c servertest.Config) (*servertest.DovecotServer, endpoint) {
	t.Helper()
	s := servertest.Dovecot(t, c)
	return s, endpoint{name: "dovecot", host: s.Host, port: s.IMAPPort, admin: func(t testing.TB, user string) *imapclient.Client {
		return login(t, s.IMAPAddr(), user)
	}}
}

// courier is a real server of another make: without MOVE and ESEARCH, and with
// every folder below INBOX.
func courier(t testing.TB) endpoint {
	t.Helper()
	s := servertest.Courier(t, servertest.CourierConfig{})
	return endpoint{name: "courier", host: s.Host, port: s.IMAPPort, root: "INBOX.", admin: func(t testing.TB, user string) *imapclient.Client {
		return login(t, net.JoinHostPort(s.Host, fmt.Sprint(s.IMAPPort)), user)
	}}
}

// inMemory is go-imap's own server, which knows any user.
func inMemory(t testing.TB) endpoint {
	t.Helper()
	users := imapmemserver.New()
	known := make(map[string]bool)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return users.NewSession(), nil, nil
		},
		Caps:         imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapUIDPlus: {}, imap.CapESearch: {}, imap.CapListExtended: {}, imap.CapListStatus: {}, imap.CapMove: {}},
		InsecureAuth: true,
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	return endpoint{name: "in memory", host: "127.0.0.1", port: port, admin: func(t testing.TB, user string) *imapclient.Client {
		if !known[user] {
			known[user] = true
			u := imapmemserver.NewUser(user, servertest.Password)
			if err := u.Create("INBOX", nil); err != nil {
				t.Fatal(err)
			}
			users.AddUser(u)
		}
		return login(t, ln.Addr().String(), user)
	}}
}

// endpoints are the servers that the same logic must work on.
func endpoints(t *testing.T) []endpoint {
	_, full := dovecot(t, servertest.Config{})
	_, plain := dovecot(t, servertest.Config{HideCapabilities: []string{"ESEARCH", "LIST-STATUS", "LIST-EXTENDED", "SPECIAL-USE", "SASL-IR", "LITERAL+"}})
	plain.name = "dovecot without extensions"
	return []endpoint{full, plain, courier(t), inMemory(t)}
}

// letter is a message to append.
type letter struct {
	from, subject, date string // date is the field's value; empty means no field
	body                string
	extra               string // whole header lines
	flags               []imap.Flag
	received            time.Time
}

func (l letter) bytes() []byte {
	var b bytes.Buffer
	if l.from == "" {
		l.from = "Bob <bob@example.org>"
	}
	fmt.Fprintf(&b, "From: %s\r\nTo: Ann <ann@example.org>\r\nSubject: %s\r\n", l.from, l.subject)
	if l.date != "" {
		fmt.Fprintf(&b, "Date: %s\r\n", l.date)
	}
	b.WriteString(l.extra + "\r\n" + l.body)
	return b.Bytes()
}

// in is what the server calls a folder that a test calls by a plain name.
func (b *box) in(folder string) string {
	if b.root == "" || strings.EqualFold(folder, "INBOX") || strings.HasPrefix(folder, b.root) {
		return folder
	}
	return b.root + strings.ReplaceAll(folder, "/", ".")
}

// again does something twice when the server says that the fault was its own, as
// Dovecot does when it looks at a folder that somebody is removing.
func (b *box) again(do func() error) error {
	err := do()
	var refused *imap.Error
	if errors.As(err, &refused) && refused.Code == imap.ResponseCodeServerBug {
		err = do()
	}
	return err
}

// add appends letters and returns their UIDs.
func (b *box) add(folder string, letters ...letter) []uint32 {
	b.t.Helper()
	folder = b.in(folder)
	var uids []uint32
	for _, l := range letters {
		raw := l.bytes()
		var data *imap.AppendData
		err := b.again(func() (err error) {
			cmd := b.admin.Append(folder, int64(len(raw)), &imap.AppendOptions{Flags: l.flags, Time: l.received})
			_, _ = cmd.Write(raw)
			_ = cmd.Close()
			data, err = cmd.Wait()
			return err
		})
		if err != nil {
			b.t.Fatal(err)
		}
		uids = append(uids, uint32(data.UID))
	}
	return uids
}

// remove expunges messages behind the reader's back.
func (b *box) remove(folder string, uids ...uint32) {
	b.t.Helper()
	var set imap.UIDSet
	for _, u := range uids {
		set.AddNum(imap.UID(u))
	}
	if _, err := b.admin.Select(b.in(folder), nil).Wait(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.admin.Store(set, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}, nil).Close(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.admin.UIDExpunge(set).Close(); err != nil {
		b.t.Fatal(err)
	}
	_ = b.admin.Unselect().Wait() // not every server knows it
}

func (b *box) list(q mail.ListQuery) *mail.Page {
	b.t.Helper()
	p, err := b.List(b.t.Context(), account, q)
	if err != nil {
		b.t.Fatalf("list %+v: %v (%v)", q, err, errors.Unwrap(err))
	}
	return p
}

func (b *box) ref(folder string, uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: account, Folder: b.in(folder), UID: uid}
}

func (b *box) get(folder string, uid uint32, q mail.GetQuery) *mail.Message {
	b.t.Helper()
	m, err := b.Get(b.t.Context(), b.ref(folder, uid), q)
	if err != nil {
		b.t.Fatalf("get UID %d: %v", uid, err)
	}
	return m
}

func uidsOf(p *mail.Page) []uint32 {
	out := []uint32{}
	for _, m := range p.Messages {
		out = append(out, m.Ref.UID)
	}
	return out
}

func wantKind(t testing.TB, err error, kind mail.Kind) *mail.Error {
	t.Helper()
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v (%+v), want kind %s", err, e, kind)
	}
	if e.Message == "" || e.Hint == "" || e.Account == "" || e.Op == "" {
		t.Errorf("incomplete error %+v", e)
	}
	return e
}

// settle fails the test when goroutines that began in it outlive it.
func settle(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for runtime.NumGoroutine() > before {
			select {
			case <-tick.C:
			case <-ctx.Done():
				buf := make([]byte, 1<<16)
				t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
				return
			}
		}
	})
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
