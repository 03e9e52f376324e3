package servertest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"
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
	// RequireTLS makes the server refuse a password on a connection without TLS
	// and announce LOGINDISABLED. Such a server listens on 127.0.0.2 and has
	// that as its Host, since Dovecot takes a client with the server's own
	// address for a secure one.
	RequireTLS bool
	// Storage says how the mail lies on disk.
	Storage Storage
	// CA signs the server's certificate; nil means a fresh one.
	CA *CA
	// Leaf says what the certificate claims.
	Leaf LeafOptions
	// Certificate, unless nil, is served as it is, and CA signs nothing.
	Certificate *tls.Certificate
	// Submission opens what a PostfixServer needs to have its users logged in and
	// its mail delivered.
	Submission bool
	// ACL has the server mind what Rights gives of a folder.
	ACL bool
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

// DovecotServer is a running Dovecot with mailboxes of its own. Any user name
// logs in with Password, and with the token of OAuthToken; the mailbox of a new
// user is empty but for the folders Archive, Drafts, Junk, Sent and Trash. Its
// fields do not change; its methods are safe for concurrent use.
type DovecotServer struct {
	Host      string // localhost, unless Config.RequireTLS
	IMAPPort  uint16 // plaintext, with STARTTLS
	IMAPSPort uint16 // TLS from the first byte
	POP3Port  uint16 // plaintext, with STLS
	POP3SPort uint16 // TLS from the first byte
	CAPEM     []byte // what a client must trust
	CA        *CA
	Home      string // holds one directory per user, with a Maildir in it unless Config.Storage says otherwise

	dir   string
	store Storage
	takes bool // Config.Submission
	mail  owner
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	err   error         // how it ended; read after done

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

const (
	startAttempts = 5                // each with other ports
	startTimeout  = 30 * time.Second // generous: many test binaries may start at once
	pollInterval  = 5 * time.Millisecond
)

//go:embed dovecot.conf.tmpl
var dovecotConf string

var dovecotTemplate = template.Must(template.New("dovecot.conf").Option("missingkey=error").Parse(dovecotConf))

var errPortTaken = errors.New("a port was taken meanwhile")

// Dovecot starts a server that lives as long as the test. When the test failed,
// the end of the server's log is added to the test's.
func Dovecot(t testing.TB, config Config) *DovecotServer {
	t.Helper()
	server, err := StartDovecot(config)
	Check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the Dovecot log:\n%s", server.LogTail())
		}
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// StartDovecot starts a server that lives until Stop. The error matches
// ErrNotInstalled when there is no Dovecot 2.3, or with Config.Submission none of
// its LMTP server.
func StartDovecot(config Config) (*DovecotServer, error) {
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
	for range startAttempts {
		var s *DovecotServer
		s, err = startOnce(program, config)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
	return nil, err
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

// makeDir makes a directory for a server. In t.TempDir the names of the sockets
// would be longer than a socket address can hold.
func makeDir(prefix string) (string, error) {
	parent := os.TempDir()
	if len(parent) > 40 {
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, prefix)
}

func startOnce(program string, config Config) (_ *DovecotServer, err error) {
	dir, err := makeDir("dovecot-")
	if err != nil {
		return nil, fmt.Errorf("start dovecot: %w", err)
	}
	s := &DovecotServer{
		Host:  "localhost",
		CAPEM: config.CA.PEM(),
		CA:    config.CA,
		Home:  filepath.Join(dir, "home"),
		dir:   dir,
		store: config.Storage,
		takes: config.Submission,
		done:  make(chan struct{}),
	}
	token := "dovecot-" + strings.ToLower(rand.Text())
	if err := s.configure(config, token); err != nil {
		return nil, errors.Join(fmt.Errorf("start dovecot: %w", err), os.RemoveAll(dir))
	}
	s.cmd = exec.Command(program, "-F", "-c", filepath.Join(dir, "dovecot.conf"))
	s.cmd.Dir = dir
	// A file and not a pipe: Wait would wait for every process that inherited it.
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start dovecot: %w", err), os.RemoveAll(dir))
	}
	defer output.Close()
	s.cmd.Stdout, s.cmd.Stderr = output, output
	prepare(s.cmd)
	started := make(chan error, 1)
	go func() {
		// The signal the kernel sends on a parent's death is bound to the thread
		// that started the child, so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.err = s.cmd.Wait()
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start dovecot: %w", err), os.RemoveAll(dir))
	}
	if err := s.await(token); err != nil {
		tail := s.LogTail()
		stopErr := s.Stop()
		if strings.Contains(tail, "Address already in use") {
			err = errPortTaken
		}
		return nil, errors.Join(fmt.Errorf("start dovecot: %w\n%s", err, tail), stopErr)
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

// await returns when the server answers. The token in its greeting tells it
// from another server that got the port first; the server binds all its ports
// before it serves any, so one greeting stands for the four.
func (s *DovecotServer) await(token string) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	for {
		err := greets(s.IMAPAddr(), token)
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("it ended: %w", s.err)
		case <-deadline.C:
			return fmt.Errorf("no greeting within %s: %w", startTimeout, err)
		case <-time.After(pollInterval):
		}
	}
}

// greets returns nil where the server at this address says the token in its
// first line.
func greets(address, token string) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.Contains(line, token) {
		return errors.New("another server answers on the port")
	}
	return nil
}

func (s *DovecotServer) address(port uint16) string {
	return net.JoinHostPort(s.Host, strconv.Itoa(int(port)))
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

// ClientTLS returns a configuration for a client that trusts this server alone.
func (s *DovecotServer) ClientTLS() *tls.Config {
	return &tls.Config{RootCAs: s.CA.Pool(), ServerName: s.Host}
}

// LogTail returns the last lines the server wrote to its log, at most 16 kB, and
// what it printed before it had one.
func (s *DovecotServer) LogTail() string {
	const most = 16 << 10
	var log []byte
	for _, name := range []string{"output", "dovecot.log"} {
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err.Error()
		}
		log = append(log, b...)
	}
	if len(log) > most {
		log = log[len(log)-most:]
		if i := bytes.IndexByte(log, '\n'); i >= 0 {
			log = log[i+1:]
		}
	}
	return string(log)
}

// Stop ends the server with every connection to it, waits until it is gone, and
// removes what it kept. Further calls do nothing.
func (s *DovecotServer) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	// All its processes at once: a graceful end takes Dovecot a second, and what
	// it would tidy up is removed below.
	reap(s.cmd.Process.Pid)
	_ = s.cmd.Process.Kill()
	<-s.done
	// A process whose end the line above began may still be adding a file.
	var remove error
	for range 200 {
		if remove = os.RemoveAll(s.dir); remove == nil {
			break
		}
		time.Sleep(pollInterval)
	}
	if remove != nil {
		return fmt.Errorf("stop dovecot: %w", remove)
	}
	return nil
}
