package servertest

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
)

var (
	shared    *DovecotServer
	sharedErr error
)

func TestMain(m *testing.M) {
	shared, sharedErr = StartDovecot(Config{})
	code := m.Run()
	if sharedErr == nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func server(t testing.TB) *DovecotServer {
	t.Helper()
	Check(t, sharedErr)
	return shared
}

func login(t testing.TB, s *DovecotServer, user string) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Login(user, Password).Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

var users atomic.Int64

// someone returns a user nobody has used, so that tests that share the server
// share no mailbox, run how often they may.
func someone() string { return fmt.Sprintf("user%d@example.org", users.Add(1)) }

func TestLoginOverTLS(t *testing.T) {
	c := login(t, server(t), "someone@example.org")
	if _, err := c.Select("INBOX", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	folders, err := c.List("", "*", &imap.ListOptions{ReturnSpecialUse: true}).Collect()
	if err != nil {
		t.Fatal(err)
	}
	special := map[string]bool{}
	for _, f := range folders {
		for _, a := range f.Attrs {
			special[string(a)+" "+f.Mailbox] = true
		}
	}
	for _, name := range []string{"Archive", "Drafts", "Junk", "Sent", "Trash"} {
		if !special[`\`+name+" "+name] {
			t.Errorf("no folder %s with its special use", name)
		}
	}
}

func TestLoginRefusesAnotherPassword(t *testing.T) {
	s := server(t)
	c, err := imapclient.DialStartTLS(s.IMAPAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var no *imap.Error
	if err := c.Login("someone@example.org", "wrong").Wait(); !errors.As(err, &no) || no.Type != imap.StatusResponseTypeNo {
		t.Fatalf("got %v, want NO", err)
	}
	if err := c.Login("someone@example.org", Password).Wait(); err != nil {
		t.Fatal("the right password afterwards:", err)
	}
}

func TestOAuthTokenLogsInUntilItExpires(t *testing.T) {
	s := server(t)
	const user = "token@example.org"
	for name, test := range map[string]struct {
		expires time.Time
		ok      bool
	}{
		"valid":   {time.Now().Add(time.Hour), true},
		"expired": {time.Now().Add(-time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = c.Authenticate(sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: user, Token: OAuthToken(user, test.expires)}))
			if ok := err == nil; ok != test.ok {
				t.Fatalf("got %v, want success %v", err, test.ok)
			}
		})
	}
}

// Bytes that a careless delivery would change: no final line end, dots, 8-bit
// octets, a bare CR, From at the start of a line, an empty body.
var exact = [][]byte{
	[]byte("Subject: one\r\n\r\nno line end"),
	[]byte("Subject: two\r\n\r\n.\r\n..\r\nFrom here\r\n"),
	[]byte("Subject: three\r\n\r\n\xff\xfe\x80 caf\xc3\xa9\r\n"),
	[]byte("Subject: four\r\n\r\na bare \r in a line\r\n"),
	[]byte("Subject: five\r\n\r\n"),
	[]byte("From a line without a colon\r\nSubject: six\r\n\r\nsix\r\n"),
}

func TestDeliverKeepsOrderAndBytes(t *testing.T) {
	s := server(t)
	for _, folder := range []string{"", "INBOX", "Sent", "Projects/2026", "Projects/Été"} {
		t.Run(folder, func(t *testing.T) {
			user := someone()
			s.Deliver(t, user, folder, exact[:4]...)
			s.Deliver(t, user, folder, exact[4:]...)
			c := login(t, s, user)
			selected, err := c.Select(cmp.Or(folder, "INBOX"), &imap.SelectOptions{ReadOnly: true}).Wait()
			if err != nil {
				t.Fatal(err)
			}
			if int(selected.NumMessages) != len(exact) {
				t.Fatalf("%d messages, want %d", selected.NumMessages, len(exact))
			}
			for i, want := range exact {
				section := &imap.FetchItemBodySection{Peek: true}
				got, err := c.Fetch(imap.UIDSetNum(imap.UID(i+1)), &imap.FetchOptions{
					BodySection: []*imap.FetchItemBodySection{section}, RFC822Size: true,
				}).Collect()
				if err != nil || len(got) != 1 {
					t.Fatalf("UID %d: %d messages, %v", i+1, len(got), err)
				}
				if body := got[0].FindBodySection(section); !bytes.Equal(body, want) {
					t.Errorf("UID %d: got %q, want %q", i+1, body, want)
				}
				if got[0].RFC822Size != int64(len(want)) {
					t.Errorf("UID %d: size %d, want %d", i+1, got[0].RFC822Size, len(want))
				}
			}
		})
	}
}

func TestDeliverReachesAnOpenSessionInOrder(t *testing.T) {
	s := server(t)
	const rounds, each = 20, 25
	user := someone()
	c := login(t, s, user)
	if _, err := c.Select("INBOX", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	// The session scans the folder all the time while mail arrives.
	stop, scanned := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				scanned <- nil
				return
			default:
			}
			if err := c.Noop().Wait(); err != nil {
				scanned <- err
				return
			}
		}
	}()
	for r := range rounds {
		batch := make([][]byte, each)
		for i := range batch {
			batch[i] = fmt.Appendf(nil, "Subject: %d\r\n\r\n", r*each+i+1)
		}
		s.Deliver(t, user, "INBOX", batch...)
	}
	close(stop)
	if err := <-scanned; err != nil {
		t.Fatal(err)
	}
	// FETCH shows what the session knows; this makes it look once more.
	if err := c.Noop().Wait(); err != nil {
		t.Fatal(err)
	}
	all := imap.UIDSet{}
	all.AddRange(1, 0)
	got, err := c.Fetch(all, &imap.FetchOptions{UID: true, Envelope: true}).Collect()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != rounds*each {
		t.Fatalf("%d messages, want %d", len(got), rounds*each)
	}
	for _, m := range got {
		if m.Envelope.Subject != fmt.Sprint(m.UID) {
			t.Errorf("UID %d holds message %s", m.UID, m.Envelope.Subject)
		}
	}
}

func TestDeliverRefusesNamesThatLeaveTheMailbox(t *testing.T) {
	s := server(t)
	for _, name := range [][2]string{{"../x", "INBOX"}, {"", "INBOX"}, {"u", "../x"}, {"u", "a.b"}, {"u", "a//b"}, {"u", "/a"}} {
		if err := s.deliver(name[0], name[1], [][]byte{[]byte("x")}); err == nil {
			t.Errorf("user %q, folder %q: accepted", name[0], name[1])
		}
	}
}

func TestHiddenCapabilities(t *testing.T) {
	plain := login(t, server(t), "caps@example.org").Caps()
	if !plain.Has(imap.CapMove) || !plain.Has(imap.CapUIDPlus) {
		t.Fatal("the plain server lacks MOVE or UIDPLUS")
	}
	s := Dovecot(t, Config{HideCapabilities: []string{"move", "UIDPLUS"}})
	hidden := login(t, s, "caps@example.org").Caps()
	for c := range plain {
		if want := c != imap.CapMove && c != imap.CapUIDPlus; hidden.Has(c) != want {
			t.Errorf("%s: announced %v, want %v", c, !want, want)
		}
	}
	exactly := login(t, Dovecot(t, Config{Capability: "IMAP4rev1 UIDPLUS"}), "caps@example.org").Caps()
	if !exactly.Has(imap.CapUIDPlus) || exactly.Has(imap.CapMove) || exactly.Has(imap.CapIdle) {
		t.Errorf("got %v, want IMAP4rev1 and UIDPLUS alone", exactly)
	}
}

// A change of Dovecot's own list would make HideCapabilities hide more than it
// was asked to.
func TestCapabilityListIsTheServersOwn(t *testing.T) {
	plain := login(t, server(t), "caps@example.org").Caps()
	for _, name := range strings.Fields(dovecotCapability) {
		if _, ok := plain[imap.Cap(name)]; !ok {
			t.Errorf("the server does not announce %s", name)
		}
	}
	for name := range plain {
		if !slices.Contains(strings.Fields(dovecotCapability), string(name)) {
			t.Errorf("the server announces %s too", name)
		}
	}
}

func TestRequireTLSRefusesPlaintextLogin(t *testing.T) {
	s := Dovecot(t, Config{RequireTLS: true})
	c, err := imapclient.DialInsecure(s.IMAPAddr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.Caps().Has(imap.CapLoginDisabled) {
		t.Error("LOGINDISABLED is not announced")
	}
	if err := c.Login("someone", Password).Wait(); err == nil {
		t.Error("login without TLS accepted")
	}
	if err := login(t, s, "someone").Noop().Wait(); err != nil {
		t.Error("login with TLS:", err)
	}
}

func TestBadCertificatesAreRefused(t *testing.T) {
	handshake := func(s *DovecotServer, config *tls.Config) error {
		c, err := imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: config})
		if err == nil {
			c.Close()
		}
		return err
	}
	t.Run("unknown authority", func(t *testing.T) {
		other, err := NewCA()
		if err != nil {
			t.Fatal(err)
		}
		err = handshake(server(t), &tls.Config{RootCAs: other.Pool(), ServerName: "localhost"})
		if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("expired", func(t *testing.T) {
		s := Dovecot(t, Config{Leaf: LeafOptions{NotAfter: time.Now().Add(-time.Minute)}})
		invalid := x509.CertificateInvalidError{}
		if err := handshake(s, s.ClientTLS()); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one of the caller's", func(t *testing.T) {
		ca, err := NewCA()
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := ca.Leaf(LeafOptions{NotBefore: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		s := Dovecot(t, Config{Certificate: &leaf})
		config := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
		invalid := x509.CertificateInvalidError{}
		if err := handshake(s, config); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
			t.Errorf("got %v, want not valid yet", err)
		}
		config.Time = func() time.Time { return time.Now().Add(2 * time.Hour) }
		if err := handshake(s, config); err != nil {
			t.Errorf("once it is valid: %v", err)
		}
	})
	t.Run("another host", func(t *testing.T) {
		s := Dovecot(t, Config{Leaf: LeafOptions{Hosts: []string{"mail.example.net"}}})
		if other := (x509.HostnameError{}); !errors.As(handshake(s, s.ClientTLS()), &other) {
			t.Error("accepted for localhost")
		}
	})
}

func TestStopEndsTheServer(t *testing.T) {
	s, err := StartDovecot(Config{})
	Check(t, err)
	c := login(t, s, "someone")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal("second call:", err)
	}
	if err := c.Noop().Wait(); err == nil {
		t.Error("a connection outlived the server")
	}
	if _, err := imapclient.DialInsecure(s.IMAPAddr(), nil); err == nil {
		t.Error("the port still answers")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestManyServersAtOnce(t *testing.T) {
	server(t)
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := Dovecot(t, Config{})
			user := fmt.Sprintf("user%d@example.org", i)
			s.Deliver(t, user, "INBOX", fmt.Appendf(nil, "Subject: %d\r\n\r\n", i))
			if got, err := login(t, s, user).Select("INBOX", nil).Wait(); err != nil || got.NumMessages != 1 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestPOP3ServesWhatWasDelivered(t *testing.T) {
	s := server(t)
	user := someone()
	s.Deliver(t, user, "INBOX", exact[0], exact[1])
	conn, err := tls.Dial("tcp", s.POP3SAddr(), s.ClientTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("USER " + user + "\r\nPASS " + Password + "\r\nSTAT\r\nQUIT\r\n")); err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\r\n+OK 2 %d\r\n", len(exact[0])+len(exact[1])); !strings.Contains(answer.String(), want) {
		t.Errorf("got %q, want %q in it", answer.String(), want)
	}
}

func BenchmarkStart(b *testing.B) {
	server(b)
	for b.Loop() {
		s, err := StartDovecot(Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	s := server(b)
	raw := make([][]byte, 10_000)
	for i := range raw {
		raw[i] = fmt.Appendf(nil, "Subject: %d\r\n\r\n%s\r\n", i, strings.Repeat("x", 500))
	}
	for b.Loop() {
		s.Deliver(b, "many@example.org", "INBOX", raw...)
	}
	b.ReportMetric(float64(b.N*len(raw))/b.Elapsed().Seconds(), "messages/s")
}
