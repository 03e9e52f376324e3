package servertest

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// CourierTree is the environment variable that names the directory Courier was
// unpacked below, for a machine where the package cannot be installed because it
// excludes Dovecot's: "/opt/courier" when /opt/courier/usr/bin/imapd is the
// program. When it is empty, / and /opt/courier are looked at.
const CourierTree = "POSTERN_COURIER"

// CourierCapability is what a CourierServer announces when nothing else is
// configured, which is what Debian configures. The server adds ACL, ACL2=UNION,
// ENABLE and UTF8=ACCEPT by itself.
const CourierCapability = "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE"

// CourierConfig says how a server differs from the plain one.
type CourierConfig struct {
	// Capability, unless empty, replaces CourierCapability.
	Capability string
	// CA signs the server's certificate; nil means a fresh one.
	CA *CA
	// Leaf says what the certificate claims.
	Leaf LeafOptions
}

// CourierServer is a running Courier-IMAP with mailboxes of its own. It differs from
// Dovecot in much that the protocol leaves open: it has no MOVE, no ESEARCH, no
// LIST-STATUS, no SPECIAL-USE, no CONDSTORE and no LITERAL+, its folders lie below "INBOX."
// with a dot between the levels, and it makes no folder by itself.
//
// Any user name logs in with Password. This package answers the login itself, since
// Courier's asks a daemon at a fixed place in the system; Courier's own programs answer
// before and after it. The fields do not change; the methods are safe for concurrent use.
type CourierServer struct {
	endpoint         // localhost
	IMAPPort  uint16 // plaintext, with STARTTLS
	IMAPSPort uint16 // TLS from the first byte
	Home      string // holds one directory per user, with a Maildir in it

	config    CourierConfig
	programs  courierPrograms
	dir       string
	mail      owner
	tls       *tls.Config
	listeners []net.Listener
	log       *os.File

	mu       sync.Mutex
	sequence int // of delivered messages
	stopped  bool
	open     map[net.Conn]bool
	busy     sync.WaitGroup
}

// Courier starts a server that lives as long as the test. When the test failed,
// the end of the server's log is added to the test's.
func Courier(t testing.TB, config CourierConfig) *CourierServer {
	t.Helper()
	server, err := StartCourier(config)
	return keep(t, "Courier", server, err)
}

// StartCourier starts a server that lives until Stop. The error matches
// ErrNotInstalled when there is no Courier-IMAP.
func StartCourier(config CourierConfig) (_ *CourierServer, err error) {
	if err := short(); err != nil {
		return nil, err
	}
	programs, err := findCourier()
	if err != nil {
		return nil, err
	}
	config.Capability = cmp.Or(config.Capability, CourierCapability)
	if config.CA == nil {
		if config.CA, err = NewCA(); err != nil {
			return nil, err
		}
	}
	leaf, err := config.CA.Leaf(config.Leaf)
	if err != nil {
		return nil, err
	}
	s := &CourierServer{
		endpoint: endpoint{Host: "localhost", CAPEM: config.CA.PEM(), CA: config.CA},
		config:   config, programs: programs, open: map[net.Conn]bool{},
		tls: &tls.Config{Certificates: []tls.Certificate{leaf}},
	}
	if s.mail, err = mailOwner(); err != nil {
		return nil, fmt.Errorf("start courier: %w", err)
	}
	if s.dir, err = os.MkdirTemp("", "courier-"); err != nil {
		return nil, fmt.Errorf("start courier: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start courier: %w", err), s.Stop())
		}
	}()
	s.Home = filepath.Join(s.dir, "home")
	// The mail's user must be able to enter, with any umask.
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Mkdir(s.Home, 0o755), os.Chmod(s.Home, 0o755), s.mail.give(s.Home)); err != nil {
		return nil, err
	}
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return nil, err
	}
	for i, port := range []*uint16{&s.IMAPPort, &s.IMAPSPort} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*port = uint16(l.Addr().(*net.TCPAddr).Port)
		s.listeners = append(s.listeners, l)
		s.busy.Go(func() { s.serve(l, i == 1) })
	}
	return s, nil
}

// courierPrograms is where the parts of a Courier-IMAP lie.
type courierPrograms struct {
	imapd     string // talks to a client that has logged in
	imaplogin string // talks to a client that has not
	libraries string // of a tree that is not the system's; empty otherwise
}

// gamServer is where Debian's library for watching files looks for its daemon.
const gamServer = "/usr/libexec/gam_server"

func findCourier() (courierPrograms, error) {
	trees := []string{"/", "/opt/courier"}
	if tree := os.Getenv(CourierTree); tree != "" {
		trees = []string{tree}
	}
	for _, tree := range trees {
		p := courierPrograms{
			imapd:     filepath.Join(tree, "usr/bin/imapd"),
			imaplogin: filepath.Join(tree, "usr/lib/courier/courier/imaplogin"),
		}
		if _, err := exec.LookPath(p.imapd); err != nil {
			continue
		}
		if _, err := exec.LookPath(p.imaplogin); err != nil {
			continue // other packages have an imapd too
		}
		if tree != "/" {
			dirs, err := filepath.Glob(filepath.Join(tree, "usr/lib/*-linux-gnu"))
			if err != nil {
				return p, fmt.Errorf("courier: %w", err)
			}
			p.libraries = strings.Join(append(dirs, filepath.Join(tree, "usr/lib")), ":")
			// The package would have included it. Without it the library keeps trying to
			// reach it, and a test of seconds takes half a minute.
			if _, err := exec.LookPath(gamServer); err != nil {
				return p, fmt.Errorf("%s needs gamin, on which courier-imap depends: %w", p.imapd, errors.Join(err, ErrNotInstalled))
			}
		}
		cmd := exec.Command(p.imapd, "--version")
		cmd.Env = p.environment()
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Courier") {
			return p, fmt.Errorf("%s does not run (%w): %s", p.imapd, errors.Join(err, ErrNotInstalled), out)
		}
		return p, nil
	}
	return courierPrograms{}, fmt.Errorf("courier-imap: %w", ErrNotInstalled)
}

func (p courierPrograms) environment() []string {
	env := []string{"PATH=/usr/bin:/bin"}
	if p.libraries != "" {
		env = append(env, "LD_LIBRARY_PATH="+p.libraries)
	}
	return env
}

// IMAPAddr returns host:port of the plaintext IMAP listener, which also offers
// STARTTLS.
func (s *CourierServer) IMAPAddr() string { return s.address(s.IMAPPort) }

// IMAPSAddr returns host:port of the IMAP listener with TLS from the first byte.
func (s *CourierServer) IMAPSAddr() string { return s.address(s.IMAPSPort) }

// LogTail returns the end of the server's log, at most 16 kB.
func (s *CourierServer) LogTail() string { return logTail(s.dir, "log") }

// Stop ends the server with every connection to it, waits until its processes
// are gone, and removes what it kept. Further calls do nothing.
func (s *CourierServer) Stop() error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.stopped = true
	for _, l := range s.listeners {
		_ = l.Close()
	}
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.busy.Wait()
	var err error
	if s.log != nil {
		err = s.log.Close()
	}
	if err := errors.Join(err, os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("stop courier: %w", err)
	}
	return nil
}

// Deliver puts messages into a user's folder, or fails the test. Their UIDs
// follow the order of the arguments and of the calls, for a session that looks
// when the call is over. The messages are unseen and recent. A folder that does
// not exist is made; its name is in UTF-8 with / between the levels and has no
// dot in it, and the server calls it INBOX.name with dots; empty means INBOX.
//
// This server keeps lines with LF and shows them with CRLF, so that is how the
// bytes lie in Files; a message that holds a bare LF comes out longer.
func (s *CourierServer) Deliver(t testing.TB, user, folder string, raw ...[]byte) {
	t.Helper()
	if err := s.deliver(user, folder, raw); err != nil {
		t.Fatalf("deliver: %v", err)
	}
}

func (s *CourierServer) deliver(user, folder string, raw [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("the server is stopped")
	}
	dir, err := s.maildirs().folder(user, folder)
	if err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Base(dir), ".") {
		// The mark of a folder, for delivery programs.
		path := filepath.Join(dir, "maildirfolder")
		if err := errors.Join(os.WriteFile(path, nil, 0o600), s.mail.give(path)); err != nil {
			return err
		}
	}
	now := time.Now().Unix()
	for _, message := range raw {
		s.sequence++
		message = stored(message)
		name := fmt.Sprintf("%010d.%09d.test,S=%d", now, s.sequence, len(message))
		path := filepath.Join(dir, "tmp", name)
		if err := os.WriteFile(path, message, 0o600); err != nil {
			return err
		}
		if err := errors.Join(s.mail.give(path), os.Rename(path, filepath.Join(dir, "new", name))); err != nil {
			return err
		}
	}
	return nil
}

// stored returns a message as it lies on disk.
func stored(message []byte) []byte {
	return bytes.ReplaceAll(message, []byte("\r\n"), []byte("\n"))
}

// Files lists the messages of a user as [DovecotServer.Files] does.
func (s *CourierServer) Files(t testing.TB, user string) []File {
	t.Helper()
	files, err := s.maildirs().files(user)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (s *CourierServer) maildirs() maildirs { return maildirs{s.Home, s.mail} }
