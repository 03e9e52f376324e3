package mail_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// userBox is one user's mailbox on a server, as a test uses it: Mailboxes to read
// with, and a connection of its own to change things behind their back.
type userBox struct {
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

func openBox(t testing.TB, e endpoint, user string, change ...func(*mail.Account)) *userBox {
	t.Helper()
	a := settings(e.host, e.port, user)
	for _, c := range change {
		c(&a)
	}
	d := &directory{accounts: map[string]mail.Account{account: a}, password: servertest.Password}
	m := mail.NewMailboxes(mail.MailboxesOptions{Directory: d})
	t.Cleanup(func() { _ = m.Close() })
	return &userBox{Mailboxes: m, t: t, dir: d, admin: e.admin(t, user), root: e.root}
}

func dialIMAP(t testing.TB, address, user string) *imapclient.Client {
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
		return dialIMAP(t, s.IMAPAddr(), user)
	}}
}

// courier is a real server of another make: without MOVE and ESEARCH, and with
// every folder below INBOX.
func courier(t testing.TB) endpoint {
	t.Helper()
	s := servertest.Courier(t, servertest.CourierConfig{})
	return endpoint{name: "courier", host: s.Host, port: s.IMAPPort, root: "INBOX.", admin: func(t testing.TB, user string) *imapclient.Client {
		return dialIMAP(t, net.JoinHostPort(s.Host, fmt.Sprint(s.IMAPPort)), user)
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
		return dialIMAP(t, ln.Addr().String(), user)
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
func (b *userBox) in(folder string) string {
	if b.root == "" || strings.EqualFold(folder, "INBOX") || strings.HasPrefix(folder, b.root) {
		return folder
	}
	return b.root + strings.ReplaceAll(folder, "/", ".")
}

// again does something twice when the server says that the fault was its own, as
// Dovecot does when it looks at a folder that somebody is removing.
func (b *userBox) again(do func() error) error {
	err := do()
	var refused *imap.Error
	if errors.As(err, &refused) && refused.Code == imap.ResponseCodeServerBug {
		err = do()
	}
	return err
}

// add appends letters and returns their UIDs.
func (b *userBox) add(folder string, letters ...letter) []uint32 {
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
func (b *userBox) remove(folder string, uids ...uint32) {
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

func (b *userBox) ref(folder string, uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: account, Folder: b.in(folder), UID: uid}
}

func (b *userBox) get(folder string, uid uint32, q mail.GetQuery) *mail.Message {
	b.t.Helper()
	m, err := b.Get(b.t.Context(), b.ref(folder, uid), q)
	if err != nil {
		b.t.Fatalf("get UID %d: %v", uid, err)
	}
	return m
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

// renewable are Credentials that have one token after the other: the next one when
// one was refused.
type renewable struct {
	mu       sync.Mutex
	tokens   []string
	refusals int
	err      error
}

func (r *renewable) Credential(context.Context, *mail.Account) (mail.Credential, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return mail.Credential{}, r.err
	}
	return mail.Credential{Secret: mail.NewSecret([]byte(r.tokens[0])), Bearer: true}, nil
}

func (r *renewable) Refused(_ context.Context, _ *mail.Account, c mail.Credential) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals++
	if c.Bearer && c.Secret.Reveal() == r.tokens[0] && len(r.tokens) > 1 {
		r.tokens = r.tokens[1:]
	}
	return c.Secret.Reveal() != r.tokens[0]
}

func withOAuth(a *mail.Account) {
	a.Auth = mail.AuthOAuth2
	a.OAuth = mail.OAuth{Provider: "google", ClientID: "client"}
}
