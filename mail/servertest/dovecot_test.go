package servertest

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

func login(t testing.TB, s interface {
	IMAPSAddr() string
	ClientTLS() *tls.Config
}, user string) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.Login(user, Password).Wait())
	return c
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

func TestDeliverReachesAnOpenSessionInOrder(t *testing.T) {
	t.Parallel()
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
	must(t, <-scanned)
	// FETCH shows what the session knows; this makes it look once more.
	must(t, c.Noop().Wait())
	all := imap.UIDSet{}
	all.AddRange(1, 0)
	got, err := c.Fetch(all, &imap.FetchOptions{UID: true, Envelope: true}).Collect()
	must(t, err)
	if len(got) != rounds*each {
		t.Fatalf("%d messages, want %d", len(got), rounds*each)
	}
	for _, m := range got {
		if m.Envelope.Subject != fmt.Sprint(m.UID) {
			t.Errorf("UID %d holds message %s", m.UID, m.Envelope.Subject)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

func server(t testing.TB) *DovecotServer {
	t.Helper()
	return SharedDovecot(t)
}

// someone returns a user nobody has used, so that tests that share the server
// share no mailbox, run how often they may.
func someone() string { return User("user") + "@example.org" }

func TestStopEndsTheServer(t *testing.T) {
	t.Parallel()
	dovecot, err := StartDovecot(Config{})
	Check(t, err)
	courier, err := StartCourier(CourierConfig{})
	Check(t, err)
	for dir, s := range map[string]interface {
		IMAPSAddr() string
		ClientTLS() *tls.Config
		Stop() error
	}{dovecot.dir: dovecot, courier.dir: courier} {
		c := login(t, s, "someone")
		must(t, s.Stop())
		if err := s.Stop(); err != nil {
			t.Fatal("second call:", err)
		}
		if err := c.Noop().Wait(); err == nil {
			t.Error("a connection outlived the server")
		}
		if _, err := imapclient.DialInsecure(s.IMAPSAddr(), nil); err == nil {
			t.Error("the port still answers")
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is still there: %v", err)
		}
	}
}

// Every reader, of either server, finds what was delivered, in its order and byte for
// byte, and Files lists it.
func TestDeliverKeepsOrderAndBytes(t *testing.T) {
	t.Parallel()
	d, c := server(t), SharedCourier(t)
	for _, test := range []struct {
		folder, name, courier string
	}{
		{"", "INBOX", "INBOX"}, {"Projects/Été", "Projects/Été", "INBOX.Projects.Été"},
	} {
		t.Run("Dovecot "+test.name, func(t *testing.T) {
			user := someone()
			d.Deliver(t, user, test.folder, exact[:4]...)
			d.Deliver(t, user, test.folder, exact[4:]...)
			checkDelivered(t, login(t, d, user), test.name, d.Files(t, user), test.name)
		})
		t.Run("Courier "+test.name, func(t *testing.T) {
			user := someone()
			c.Deliver(t, user, test.folder, exact[:3]...)
			c.Deliver(t, user, test.folder, exact[3:]...)
			checkDelivered(t, login(t, c, user), test.courier, c.Files(t, user), test.name)
		})
	}
}

// checkDelivered compares a folder of two names, the server's and that of Files, with
// what was delivered.
func checkDelivered(t *testing.T, c *imapclient.Client, name string, files []File, folder string) {
	t.Helper()
	if len(files) != len(exact) {
		t.Fatalf("%d files, want %d", len(files), len(exact))
	}
	for i, f := range files {
		if kept := sha256.Sum256(exact[i]); f.Folder != folder || f.Flags != "" || f.Sum != kept && f.Sum != sha256.Sum256(stored(exact[i])) {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	selected, err := c.Select(name, &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil || int(selected.NumMessages) != len(exact) {
		t.Fatalf("got %+v, %v", selected, err)
	}
	for i, want := range exact {
		section := &imap.FetchItemBodySection{Peek: true}
		got, err := c.Fetch(imap.UIDSetNum(imap.UID(i+1)), &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
		if err != nil || len(got) != 1 || !bytes.Equal(got[0].FindBodySection(section), want) {
			t.Errorf("UID %d: got %v, %v, want %q", i+1, got, err, want)
		}
	}
}

func TestNamesThatLeaveTheMailboxAreRefused(t *testing.T) {
	s := server(t)
	for _, name := range [][2]string{{"../x", "INBOX"}, {"", "INBOX"}, {"..", ""}, {"a\x00", ""}, {"u", "../x"}, {"u", "a.b"}, {"u", "a//b"}, {"u", "/a"}} {
		if err := s.deliver(name[0], name[1], [][]byte{[]byte("x")}); err == nil {
			t.Errorf("user %q, folder %q: accepted", name[0], name[1])
		}
		if _, err := s.files(name[0]); err == nil && name[0] != "u" {
			t.Errorf("files of user %q: accepted", name[0])
		}
	}
}

func TestAnnouncedCapabilities(t *testing.T) {
	t.Parallel()
	own := strings.Fields(dovecotCapability)
	for name, test := range map[string]struct {
		config Config
		want   []string
	}{
		// A change of Dovecot's own list would make HideCapabilities hide more than it
		// was asked to.
		"its own": {Config{}, own},
		"without some": {Config{HideCapabilities: []string{"move", "UIDPLUS"}}, slices.DeleteFunc(slices.Clone(own), func(s string) bool {
			return s == "MOVE" || s == "UIDPLUS"
		})},
		"exactly": {Config{Capability: "IMAP4rev1 UIDPLUS"}, []string{"IMAP4rev1", "UIDPLUS"}},
	} {
		got := login(t, SharedDovecotWith(t, test.config), someone()).Caps()
		for _, c := range test.want {
			if _, ok := got[imap.Cap(c)]; !ok {
				t.Errorf("%s: %s is not announced", name, c)
			}
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: announced are %v, want %q", name, got, test.want)
		}
	}
}
