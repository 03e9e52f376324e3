package servertest

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// PostfixConfig says how a server differs from the plain one.
type PostfixConfig struct {
	// Dovecot logs the users in and gets the mail. It must have been started
	// with Config.Submission, and must be stopped after this server.
	Dovecot *DovecotServer
	// MessageSizeLimit is the largest message in bytes, which the server announces; zero
	// means 10,240,000.
	MessageSizeLimit int64
	// SMTPUTF8 makes the server announce that extension. The mail then goes to this
	// package's LMTP server, which stores it for Dovecot, since Dovecot's own lacks the
	// extension.
	SMTPUTF8 bool
	// Refuse are answers to RCPT by recipient, as in "550 5.1.1 no such user"
	// or "451 4.3.0 try later". A domain without @ stands for all its
	// addresses.
	Refuse map[string]string
	// Leaf says what the certificate claims, which Dovecot's CA signs.
	Leaf LeafOptions
	// Certificate, unless nil, is served as it is.
	Certificate *tls.Certificate
}

// PostfixServer is a running Postfix that takes mail in as a provider's
// submission server does (RFC 6409) and delivers all of it, whatever its domain,
// to the users of one DovecotServer: mail to ann@example.org is in the mailbox
// of the user of that name. Nothing leaves the machine.
//
// A client has to log in, over TLS, as at Dovecot: by PLAIN or LOGIN with Password, by
// XOAUTH2 or OAUTHBEARER with an access token. Any sender address may be used.
// Undeliverable mail comes back to the sender. Its fields do not change; its methods are
// safe for concurrent use.
type PostfixServer struct {
	endpoint               // localhost
	SubmissionPort  uint16 // plaintext, with STARTTLS, which must be used
	SubmissionsPort uint16 // TLS from the first byte

	*daemon
	programs postfixPrograms
	token    string
	lmtp     *lmtpServer // nil if Dovecot's is used
}

// Postfix starts a server that lives as long as the test. When the test failed,
// the end of the server's log is added to the test's.
func Postfix(t testing.TB, config PostfixConfig) *PostfixServer {
	t.Helper()
	server, err := StartPostfix(config)
	return keep(t, "Postfix", server, err)
}

// StartPostfix starts a server that lives until Stop. The error matches
// ErrNotInstalled when there is no Postfix that keeps its own log (3.4), and where
// it cannot run: for who is not root, and on another system than Linux.
func StartPostfix(config PostfixConfig) (*PostfixServer, error) {
	if err := short(); err != nil {
		return nil, err
	}
	programs, err := findPostfix()
	if err != nil {
		return nil, err
	}
	if config.Dovecot == nil || !config.Dovecot.takes {
		return nil, errors.New("start postfix: it needs a Dovecot that was started with Config.Submission")
	}
	if config.Dovecot.store != Maildir {
		return nil, errors.New("start postfix: the mail lies in " + string(config.Dovecot.store))
	}
	if config.Certificate == nil {
		leaf, err := config.Dovecot.CA.Leaf(config.Leaf)
		if err != nil {
			return nil, err
		}
		config.Certificate = &leaf
	}
	return untilTaken(func() (*PostfixServer, error) { return startPostfixOnce(programs, config) })
}

// postfixPrograms is where the parts of a Postfix lie and whom they run as.
type postfixPrograms struct {
	master, postqueue string
	owner, group      string
}

func findPostfix() (p postfixPrograms, err error) {
	var postconf string
	for _, name := range []string{"postconf", "/usr/sbin/postconf", "/usr/local/sbin/postconf"} {
		if postconf, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return p, fmt.Errorf("postfix: %w", ErrNotInstalled)
	}
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		return p, fmt.Errorf("postfix runs for root on Linux only: %w", ErrNotInstalled)
	}
	// The built-in settings, not those of this machine's own Postfix.
	names := []string{"mail_version", "daemon_directory", "command_directory", "mail_owner", "setgid_group"}
	out, err := exec.Command(postconf, append([]string{"-d", "-h"}, names...)...).Output()
	values := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(values) != len(names) {
		return p, fmt.Errorf("ask %s for its settings: %w", postconf, errors.Join(err, fmt.Errorf("%d of %d lines", len(values), len(names))))
	}
	major, rest, _ := strings.Cut(values[0], ".")
	minor, _, _ := strings.Cut(rest, ".")
	if n, err := strconv.Atoi(minor); major != "3" || err != nil || n < 4 {
		return p, fmt.Errorf("postfix is %s, not 3.4 or later: %w", values[0], ErrNotInstalled)
	}
	return postfixPrograms{
		master: filepath.Join(values[1], "master"), postqueue: filepath.Join(values[2], "postqueue"),
		owner: values[3], group: values[4],
	}, nil
}

func startPostfixOnce(programs postfixPrograms, config PostfixConfig) (*PostfixServer, error) {
	d, err := newDaemon("postfix", "log")
	if err != nil {
		return nil, err
	}
	s := &PostfixServer{
		endpoint: endpoint{Host: "localhost", CAPEM: config.Dovecot.CAPEM, CA: config.Dovecot.CA},
		daemon:   d, programs: programs, token: "postfix-" + strings.ToLower(rand.Text()),
	}
	if err := s.configure(config); err != nil {
		return nil, errors.Join(fmt.Errorf("start postfix: %w", err), s.Stop())
	}
	// In the foreground: it makes no daemon of itself, but a session. It binds all its
	// ports before it serves any, so one greeting stands for both.
	cmd := exec.Command(programs.master, "-s", "-c", s.conf())
	cmd.Env = s.environment()
	if err := d.start(cmd, greeting(s.SubmissionAddr(), s.token)); err != nil {
		return nil, errors.Join(err, s.lmtp.stop())
	}
	return s, nil
}

func (s *PostfixServer) environment() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "MAIL_CONFIG=" + s.conf(), "LANG=C"}
}

func (s *PostfixServer) conf() string { return filepath.Join(s.dir, "conf") }

// SubmissionAddr returns host:port of the listener with STARTTLS.
func (s *PostfixServer) SubmissionAddr() string { return s.address(s.SubmissionPort) }

// queue returns what the server still holds: an object of JSON for each message, as the
// program postqueue shows it. Unfinished messages of a client are not in it.
func (s *PostfixServer) queue() ([]string, error) {
	cmd := exec.Command(s.programs.postqueue, "-c", s.conf(), "-j")
	cmd.Env = s.environment()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the queue: %w: %s", err, errs.Bytes())
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// WaitQueueEmpty returns when the server holds no message any more: each has been
// delivered, or returned to its sender and delivered there. After half a minute it fails
// the test.
func (s *PostfixServer) WaitQueueEmpty(t testing.TB) {
	t.Helper()
	var queue []string
	// A message is gone from the queue before the log, which is in this directory,
	// says so.
	err := awaitChange([]string{s.dir}, startTimeout, func() (_ bool, err error) {
		queue, err = s.queue()
		return len(queue) == 0, err
	})
	if err != nil {
		t.Fatalf("wait for the queue: %v; it holds %q", err, queue)
	}
}

// Stop ends the server with every connection to it, waits until its processes
// are gone, and removes what it kept. Further calls do nothing.
func (s *PostfixServer) Stop() error { return errors.Join(s.stop(), s.lmtp.stop()) }
