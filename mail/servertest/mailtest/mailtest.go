// Package mailtest is shared by the tests of mail/mailbox and mail/outbox: a directory in
// memory, mailboxes on real and on in-memory servers, and messages for them.
package mailtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
)

// Directory is a Directory in memory.
type Directory struct {
	mu       sync.Mutex
	Known    map[string]mail.Account
	Password string
}

func (d *Directory) Accounts(context.Context) ([]mail.Account, error) { return nil, nil }

func (d *Directory) Account(_ context.Context, name string) (mail.Account, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.Known[name]
	if !ok {
		return a, mail.ErrNoAccount
	}
	return a, nil
}

func (d *Directory) Secret(context.Context, string) (mail.Secret, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return mail.NewSecret([]byte(d.Password)), nil
}

func (d *Directory) Set(a mail.Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Known[a.Name] = a
}

// Edit changes Account, or with another name makes one like it.
func (d *Directory) Edit(change func(*mail.Account)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.Known[Account]
	change(&a)
	d.Known[a.Name] = a
}

// Endpoint is a server that tests read from and write to.
type Endpoint struct {
	Name  string
	Host  string
	Port  uint16
	root  string // prefix of the names of folders other than INBOX
	tag   string // tells this test's users from others' on a shared server
	Admin func(t testing.TB, user string) *imapclient.Client
}

// User is how a user whom a test calls by this name is called on the server.
func (e Endpoint) User(name string) string { return name + e.tag }

// mine makes the users of an endpoint those of one test alone.
func (e Endpoint) mine() Endpoint {
	admin := e.Admin
	e.tag = servertest.User("")
	e.Admin = func(t testing.TB, user string) *imapclient.Client { return admin(t, e.User(user)) }
	return e
}

// Box is one user's mailbox on a server, as a test uses it: Mailboxes to read
// with, and a connection of its own to change things behind their back.
type Box struct {
	*mailbox.Client
	T     testing.TB
	Dir   *Directory
	Admin *imapclient.Client
	Root  string
}

const Account = "ann"

func Settings(host string, port uint16, user string) mail.Account {
	return mail.Account{Name: Account, Email: user + "@example.org", Protocol: mail.IMAP, Username: user, Auth: mail.AuthPassword, Mode: mail.ReadOnly,
		IMAP: mail.Endpoint{Host: host, Port: port, Security: mail.Plaintext}}
}

func Open(t testing.TB, e Endpoint, user string, change ...func(*mail.Account)) *Box {
	t.Helper()
	a := Settings(e.Host, e.Port, user)
	a.Username = e.User(user)
	for _, c := range change {
		c(&a)
	}
	d := &Directory{Known: map[string]mail.Account{Account: a}, Password: servertest.Password}
	m := mailbox.New(mailbox.Options{Directory: d})
	t.Cleanup(func() { _ = m.Close() })
	return &Box{Client: m, T: t, Dir: d, Admin: e.Admin(t, user), Root: e.root}
}

func DialIMAP(t testing.TB, address, user string) *imapclient.Client {
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

func Dovecot(t testing.TB, c servertest.Config) (*servertest.DovecotServer, Endpoint) {
	t.Helper()
	s := servertest.Dovecot(t, c)
	return s, DovecotAt(s)
}

// Shared is Dovecot on the server that all tests of the program with this Config share. The
// users of a test are its own; Endpoint.User tells what the server calls them. Their addresses
// are those of Settings.
func Shared(t testing.TB, c servertest.Config) (*servertest.DovecotServer, Endpoint) {
	t.Helper()
	s := servertest.SharedDovecotWith(t, c)
	return s, DovecotAt(s).mine()
}

// SharedCourier is Courier as Shared is Dovecot.
func SharedCourier(t testing.TB) Endpoint {
	t.Helper()
	return CourierAt(servertest.SharedCourier(t)).mine()
}

// SharedCyrus is Cyrus as Shared is Dovecot.
func SharedCyrus(t testing.TB) Endpoint {
	t.Helper()
	s := servertest.SharedCyrus(t)
	return Endpoint{Name: "cyrus", Host: s.Host, Port: s.IMAPPort, Admin: func(t testing.TB, user string) *imapclient.Client {
		return DialIMAP(t, net.JoinHostPort(s.Host, strconv.Itoa(int(s.IMAPPort))), user)
	}}.mine()
}

// DovecotAt is a Dovecot that runs.
func DovecotAt(s *servertest.DovecotServer) Endpoint {
	return Endpoint{Name: "dovecot", Host: s.Host, Port: s.IMAPPort, Admin: func(t testing.TB, user string) *imapclient.Client {
		return DialIMAP(t, s.IMAPAddr(), user)
	}}
}

// Courier is a real server of another make: without MOVE and ESEARCH, and with
// every folder below INBOX.
func Courier(t testing.TB) Endpoint {
	t.Helper()
	return CourierAt(servertest.Courier(t, servertest.CourierConfig{}))
}

// CourierAt is a Courier that runs.
func CourierAt(s *servertest.CourierServer) Endpoint {
	return Endpoint{Name: "courier", Host: s.Host, Port: s.IMAPPort, root: "INBOX.", Admin: func(t testing.TB, user string) *imapclient.Client {
		return DialIMAP(t, s.IMAPAddr(), user)
	}}
}

// InMemory is go-imap's own server, which knows any user.
func InMemory(t testing.TB) Endpoint {
	t.Helper()
	users := imapmemserver.New()
	var mu sync.Mutex
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
	return Endpoint{Name: "in memory", Host: "127.0.0.1", Port: port, Admin: func(t testing.TB, user string) *imapclient.Client {
		mu.Lock()
		defer mu.Unlock()
		if !known[user] {
			known[user] = true
			u := imapmemserver.NewUser(user, servertest.Password)
			if err := u.Create("INBOX", nil); err != nil {
				t.Fatal(err)
			}
			users.AddUser(u)
		}
		return DialIMAP(t, ln.Addr().String(), user)
	}}
}

// withoutExtensions is the server that every client has to get on with.
var withoutExtensions = servertest.Config{HideCapabilities: []string{"ESEARCH", "LIST-STATUS", "LIST-EXTENDED", "SPECIAL-USE", "SASL-IR", "LITERAL+"}}

// SharedServers are real servers of different makes, which all tests of the program share: with
// many extensions and with few, and at night also the one with as many as it can hide.
func SharedServers(t testing.TB) []Endpoint {
	_, full := Shared(t, servertest.Config{})
	all := []Endpoint{full, SharedCourier(t)}
	if testmain.Rounds(0, 1) > 0 {
		_, plain := Shared(t, withoutExtensions)
		plain.Name = "dovecot without extensions"
		all = append(all, plain)
	}
	return all
}

// SharedEndpoints are SharedServers and the one in memory.
func SharedEndpoints(t testing.TB) []Endpoint { return append(SharedServers(t), InMemory(t)) }

// Letter is a message to append.
type Letter struct {
	From, Subject, Date string // date is the field's value; empty means no field
	Body                string
	Extra               string // whole header lines
	Flags               []imap.Flag
	Received            time.Time
	Raw                 []byte // the whole message, in place of those before Flags
}

func (l Letter) bytes() []byte {
	if l.Raw != nil {
		return l.Raw
	}
	var b bytes.Buffer
	if l.From == "" {
		l.From = "Bob <bob@example.org>"
	}
	fmt.Fprintf(&b, "From: %s\r\nTo: Ann <ann@example.org>\r\nSubject: %s\r\n", l.From, l.Subject)
	if l.Date != "" {
		fmt.Fprintf(&b, "Date: %s\r\n", l.Date)
	}
	b.WriteString(l.Extra + "\r\n" + l.Body)
	return b.Bytes()
}

// In returns the server's name for a folder's plain name.
func (b *Box) In(folder string) string {
	if b.Root == "" || strings.EqualFold(folder, "INBOX") || strings.HasPrefix(folder, b.Root) {
		return folder
	}
	return b.Root + strings.ReplaceAll(folder, "/", ".")
}

// Again repeats do once when the server reports a fault of its own, as Dovecot does when a
// folder is being removed.
func (b *Box) Again(do func() error) error {
	err := do()
	var refused *imap.Error
	if errors.As(err, &refused) && refused.Code == imap.ResponseCodeServerBug {
		err = do()
	}
	return err
}

// Add appends letters and returns their UIDs. It does not wait for one before it sends the next.
func (b *Box) Add(folder string, letters ...Letter) []uint32 {
	b.T.Helper()
	folder = b.In(folder)
	begin := func(l Letter) *imapclient.AppendCommand {
		raw := l.bytes()
		cmd := b.Admin.Append(folder, int64(len(raw)), &imap.AppendOptions{Flags: l.Flags, Time: l.Received})
		_, _ = cmd.Write(raw)
		_ = cmd.Close()
		return cmd
	}
	var began []*imapclient.AppendCommand
	for _, l := range letters {
		began = append(began, begin(l))
	}
	var uids []uint32
	for i, cmd := range began {
		var data *imap.AppendData
		err := b.Again(func() (err error) {
			if cmd == nil {
				cmd = begin(letters[i])
			}
			data, err = cmd.Wait()
			cmd = nil
			return err
		})
		if err != nil {
			b.T.Fatal(err)
		}
		uids = append(uids, uint32(data.UID))
	}
	return uids
}

// Remove expunges messages behind the reader's back.
func (b *Box) Remove(folder string, uids ...uint32) {
	b.T.Helper()
	var set imap.UIDSet
	for _, u := range uids {
		set.AddNum(imap.UID(u))
	}
	if _, err := b.Admin.Select(b.In(folder), nil).Wait(); err != nil {
		b.T.Fatal(err)
	}
	if err := b.Admin.Store(set, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}, nil).Close(); err != nil {
		b.T.Fatal(err)
	}
	if err := b.Admin.UIDExpunge(set).Close(); err != nil {
		b.T.Fatal(err)
	}
	_ = b.Admin.Unselect().Wait() // not every server knows it
}

func (b *Box) Ref(folder string, uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: Account, Folder: b.In(folder), UID: uid}
}

func (b *Box) Read(folder string, uid uint32, q mailbox.GetQuery) *mailbox.Message {
	b.T.Helper()
	m, err := b.Get(b.T.Context(), b.Ref(folder, uid), q)
	if err != nil {
		b.T.Fatalf("get UID %d: %v", uid, err)
	}
	return m
}

func WantKind(t testing.TB, err error, kind mail.Kind) *mail.Error {
	t.Helper()
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v (%+v), want kind %s", err, e, kind)
	}
	if e.Message == "" || e.Advice == "" || e.Account == "" || e.Op == "" {
		t.Errorf("incomplete error %+v", e)
	}
	return e
}

// Renewable are Credentials with several tokens: after a refusal the next one.
type Renewable struct {
	Mu       sync.Mutex
	Tokens   []string
	Refusals int
	Err      error
}

func (r *Renewable) Credential(context.Context, *mail.Account) (login.Credential, error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Err != nil {
		return login.Credential{}, r.Err
	}
	return login.Credential{Secret: mail.NewSecret([]byte(r.Tokens[0])), Bearer: true}, nil
}

func (r *Renewable) Refused(_ context.Context, _ *mail.Account, c login.Credential) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.Refusals++
	if c.Bearer && c.Secret.Reveal() == r.Tokens[0] && len(r.Tokens) > 1 {
		r.Tokens = r.Tokens[1:]
	}
	return c.Secret.Reveal() != r.Tokens[0]
}

func WithOAuth(a *mail.Account) {
	a.Auth = mail.AuthOAuth2
	a.OAuth = mail.OAuth{Provider: "google", ClientID: "client"}
}
