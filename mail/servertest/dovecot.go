package servertest

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
)

// Password logs in as any user.
const Password = "secret"

// Config says how a server differs from the plain one. The zero Config offers
// everything Dovecot can do.
type Config struct {
	// HideCapabilities are left out of what the server announces. It still
	// executes the commands behind them, as a real server with a proxy in front
	// does.
	HideCapabilities []string
	// Capability, unless empty, is exactly what the server announces after
	// login.
	Capability string
	// Storage says how the mail lies on disk.
	Storage Storage
	// CA signs the server's certificate; nil means a fresh one.
	CA *CA
	// Leaf says what the certificate claims.
	Leaf LeafOptions
	// Certificate, unless nil, is served as it is, and CA signs nothing.
	Certificate *tls.Certificate
	// Submission opens the sockets a PostfixServer needs for logins and delivery.
	Submission bool
	// All gives new users a folder All too, with the role \All. Nothing fills it.
	All bool
	// ACL makes the server enforce the Rights of folders.
	ACL bool
	// Others adds the namespaces of RFC 2342 besides a user's own, with ACL: Public/, with the
	// folders board and Sent (\Sent) that every user may change, and shared/NAME/, with what
	// other users Share.
	Others bool
	// Mechanisms are the ways to log in that the server offers; nil means PLAIN,
	// LOGIN, XOAUTH2 and OAUTHBEARER.
	Mechanisms []string
	// Introspection, unless empty, is where the server asks about every access
	// token (RFC 7662), as OAuthServer.Introspection names it; it must be plain
	// http. Otherwise the server checks signature and expiry by itself.
	Introspection string

	// ports chooses the ports of a start; nil means freePorts.
	ports func(host string, n int) ([]uint16, error)
}

// Storage is a format of mail on disk.
type Storage string

const (
	// Maildir is a file for each message, what Deliver writes and Files reads.
	Maildir Storage = ""
	// MDBox is a few large files with an index, which makes a large folder fast
	// to fill and to open. Deliver and Files fail on it.
	MDBox Storage = "mdbox"
)

// DovecotServer is a running Dovecot with mailboxes of its own. Any user name logs in with
// Password, and with the token of OAuthToken; the mailbox of a new user is empty except for
// the folders Archive, Drafts, Junk, Sent and Trash. Its fields do not change; its methods
// are safe for concurrent use.
type DovecotServer struct {
	endpoint         // localhost
	IMAPPort  uint16 // plaintext, with STARTTLS
	IMAPSPort uint16 // TLS from the first byte
	POP3Port  uint16 // plaintext, with STLS
	POP3SPort uint16 // TLS from the first byte
	Home      string // holds one directory per user, with a Maildir in it unless Config.Storage says otherwise

	*daemon
	store Storage
	takes bool // Config.Submission
	mail  owner

	mu       sync.Mutex
	sequence int // of delivered messages
	stopped  bool
}

// What Dovecot 2.3 announces after login when nothing is configured: there is
// no setting that takes one capability away, only one that replaces them all.
const dovecotCapability = "IMAP4rev1 SASL-IR LOGIN-REFERRALS ID ENABLE IDLE SORT SORT=DISPLAY " +
	"THREAD=REFERENCES THREAD=REFS THREAD=ORDEREDSUBJECT MULTIAPPEND URL-PARTIAL CATENATE UNSELECT " +
	"CHILDREN NAMESPACE UIDPLUS LIST-EXTENDED I18NLEVEL=1 CONDSTORE QRESYNC ESEARCH ESORT SEARCHRES " +
	"WITHIN CONTEXT=SEARCH LIST-STATUS BINARY MOVE SNIPPET=FUZZY PREVIEW=FUZZY PREVIEW STATUS=SIZE " +
	"SAVEDATE LITERAL+ NOTIFY SPECIAL-USE"

//go:embed dovecot.conf.tmpl
var dovecotConf string

var dovecotTemplate = template.Must(template.New("dovecot.conf").Option("missingkey=error").Parse(dovecotConf))

// Dovecot starts a server that lives as long as the test. When the test failed,
// the end of the server's log is added to the test's.
func Dovecot(t testing.TB, config Config) *DovecotServer {
	t.Helper()
	server, err := StartDovecot(config)
	return keep(t, "Dovecot", server, err)
}

// StartDovecot starts a server that lives until Stop. The error matches
// ErrNotInstalled when there is no Dovecot 2.3, or with Config.Submission none of
// its LMTP server.
func StartDovecot(config Config) (*DovecotServer, error) {
	if err := short(); err != nil {
		return nil, err
	}
	program, err := dovecotProgram()
	if err != nil {
		return nil, err
	}
	if config.Submission {
		if err := findLMTP(); err != nil {
			return nil, err
		}
	}
	if config.CA == nil {
		if config.CA, err = NewCA(); err != nil {
			return nil, err
		}
	}
	if config.ports == nil {
		config.ports = freePorts
	}
	if config.Certificate == nil {
		leaf, err := config.CA.Leaf(config.Leaf)
		if err != nil {
			return nil, err
		}
		config.Certificate = &leaf
	}
	return untilTaken(func() (*DovecotServer, error) { return startOnce(program, config) })
}

// HasDovecot reports whether Dovecot is started where a test asks for it; where it is required, it
// is, and fails if it is not installed. It is for tests that cannot be skipped any more by then.
func HasDovecot() bool {
	_, err := dovecotProgram()
	return os.Getenv(RequireServers) != "" || err == nil && short() == nil
}

// dovecotProgram finds a Dovecot that reads the configuration we write. It also
// looks where an ordinary user's PATH does not.
func dovecotProgram() (string, error) {
	for _, name := range []string{"dovecot", "/usr/sbin/dovecot", "/usr/local/sbin/dovecot"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := exec.Command(path, "--version").Output()
		if err != nil {
			return "", fmt.Errorf("ask %s for its version: %w", path, err)
		}
		if !bytes.HasPrefix(version, []byte("2.3.")) {
			return "", fmt.Errorf("%s is %s, not 2.3: %w", path, bytes.TrimSpace(version), ErrNotInstalled)
		}
		return path, nil
	}
	return "", fmt.Errorf("dovecot: %w", ErrNotInstalled)
}

// findLMTP tells whether Dovecot's LMTP server is there, which Debian packs by
// itself.
func findLMTP() error {
	dir, err := exec.Command("doveconf", "-c", os.DevNull, "-h", "libexec_dir").Output()
	if err != nil {
		return fmt.Errorf("ask dovecot where its programs are: %w", err)
	}
	if _, err := exec.LookPath(filepath.Join(string(bytes.TrimSpace(dir)), "lmtp")); err != nil {
		return fmt.Errorf("dovecot's lmtp: %w", ErrNotInstalled)
	}
	return nil
}

func startOnce(program string, config Config) (*DovecotServer, error) {
	d, err := newDaemon("dovecot", "dovecot.log")
	if err != nil {
		return nil, err
	}
	s := &DovecotServer{
		endpoint: endpoint{Host: "localhost", CAPEM: config.CA.PEM(), CA: config.CA},
		Home:     filepath.Join(d.dir, "home"),
		daemon:   d,
		store:    config.Storage,
		takes:    config.Submission,
	}
	token := "dovecot-" + strings.ToLower(rand.Text())
	if err := s.configure(config, token); err != nil {
		return nil, errors.Join(fmt.Errorf("start dovecot: %w", err), d.stop())
	}
	// The server binds all its ports before it serves any, so one greeting stands for
	// the four.
	if err := d.start(exec.Command(program, "-F", "-c", filepath.Join(d.dir, "dovecot.conf")), greeting(s.IMAPAddr(), token)); err != nil {
		return nil, err
	}
	return s, nil
}

func capability(config Config) string {
	if config.Capability != "" || len(config.HideCapabilities) == 0 {
		return config.Capability
	}
	all := slices.DeleteFunc(strings.Fields(dovecotCapability), func(name string) bool {
		return slices.ContainsFunc(config.HideCapabilities, func(hidden string) bool { return strings.EqualFold(name, hidden) })
	})
	return strings.Join(all, " ")
}

// IMAPAddr returns host:port of the plaintext IMAP listener, which also offers
// STARTTLS.
func (s *DovecotServer) IMAPAddr() string { return s.address(s.IMAPPort) }

// IMAPSAddr returns host:port of the IMAP listener with TLS from the first byte.
func (s *DovecotServer) IMAPSAddr() string { return s.address(s.IMAPSPort) }

// POP3Addr returns host:port of the plaintext POP3 listener, which also offers
// STLS.
func (s *DovecotServer) POP3Addr() string { return s.address(s.POP3Port) }

// POP3SAddr returns host:port of the POP3 listener with TLS from the first byte.
func (s *DovecotServer) POP3SAddr() string { return s.address(s.POP3SPort) }

// Stop ends the server with every connection to it, waits until it is gone, and
// removes what it kept. Further calls do nothing.
func (s *DovecotServer) Stop() error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	return s.stop()
}
