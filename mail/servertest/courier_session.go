package servertest

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxLoginLiteral = 1 << 10
	courierEnd      = 5 * time.Second // until a program that does not end is killed
)

// courierSession is one connection of a client. Before the login its lines go to imaplogin,
// except those that ask for TLS or log in; after it all lines go to imapd.
type courierSession struct {
	server *CourierServer
	conn   net.Conn
	secure bool
	r      *bufio.Reader
	login  *courierProcess
}

func (s *CourierServer) serve(l net.Listener, implicit bool) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			_ = conn.Close()
			return
		}
		s.open[conn] = true
		s.busy.Go(func() {
			// The log says how it ended; a client that left is normal.
			if err := (&courierSession{server: s, conn: conn, secure: implicit}).run(implicit); err != nil {
				fmt.Fprintln(s.log, "session:", err)
			}
			_ = conn.Close()
			s.mu.Lock()
			delete(s.open, conn)
			s.mu.Unlock()
		})
		s.mu.Unlock()
	}
}

func (c *courierSession) run(implicit bool) (err error) {
	if implicit {
		if err := c.handshake(); err != nil {
			return err
		}
	}
	c.r = bufio.NewReader(c.conn)
	if err := c.before(true); err != nil {
		return err
	}
	defer func() { c.login.end() }()
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		tag, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		command, args, _ := strings.Cut(rest, " ")
		var user, password string
		switch command := strings.ToUpper(command); {
		case command == "STARTTLS" && !c.secure:
			if err := c.startTLS(tag); err != nil {
				return err
			}
			continue
		case command == "LOGIN":
			user, password, err = c.loginArguments(args)
		case command == "AUTHENTICATE":
			user, password, err = c.authenticatePlain(args)
		default:
			if _, err := io.WriteString(c.login.in, line); err != nil {
				return err
			}
			continue
		}
		if err != nil && !errors.Is(err, errLoginSyntax) {
			return err
		}
		if err == nil && password == Password {
			return c.after(tag, user)
		}
		answer := "Login failed."
		if err != nil {
			answer = "Error in IMAP command received by server."
		}
		if err := c.say(tag + " NO " + answer); err != nil {
			return err
		}
	}
}

func (c *courierSession) handshake() error {
	secure := tls.Server(c.conn, c.server.tls)
	if err := secure.Handshake(); err != nil {
		return err
	}
	c.conn, c.secure = secure, true
	return nil
}

// before starts the program for a client that has not logged in. Its greeting is
// swallowed when the client has had one.
func (c *courierSession) before(greet bool) error {
	p, err := c.server.start(c.secure, nil, c.server.programs.imaplogin, c.server.programs.imapd, "Maildir")
	if err != nil {
		return err
	}
	c.login = p
	if !greet {
		if _, err := p.out.ReadString('\n'); err != nil {
			p.end()
			return err
		}
	}
	p.copyTo(c.conn)
	return nil
}

func (c *courierSession) startTLS(tag string) error {
	// Bytes that came in the clear after the command are not part of the session that TLS
	// protects.
	if c.r.Buffered() > 0 {
		return errors.New("the client sent more in the clear after STARTTLS")
	}
	c.login.end()
	if err := c.say(tag + " OK Begin SSL/TLS negotiation now."); err != nil {
		return err
	}
	if err := c.handshake(); err != nil {
		return err
	}
	c.r.Reset(c.conn)
	return c.before(false)
}

// after hands the client to the program that serves mail. What the client sent behind the
// login is lost: Courier's own program has read it before it becomes the other.
func (c *courierSession) after(tag, user string) error {
	c.login.end()
	maildirs := c.server.maildirs()
	if _, err := maildirs.folder(user, ""); err != nil {
		return c.say(tag + " NO Login failed.")
	}
	home, err := maildirs.user(user)
	if err != nil {
		return err
	}
	p, err := c.server.start(c.secure, []string{"IMAPLOGINTAG=" + tag, "AUTHENTICATED=" + user, "AUTHADDR=" + user, "HOME=" + home},
		c.server.programs.imapd, home+"/Maildir")
	if err != nil {
		return err
	}
	c.login = p // run ends it
	c.r.Reset(c.conn)
	p.copyTo(c.conn)
	go func() {
		// The connection ends with the program.
		<-p.copied
		_ = c.conn.Close()
	}()
	_, err = io.Copy(p.in, c.r)
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

func (c *courierSession) say(line string) error {
	_, err := io.WriteString(c.conn, line+"\r\n")
	return err
}

func (c *courierSession) line() (string, error) {
	line, err := c.r.ReadString('\n')
	if len(line) > 16<<10 {
		return "", errors.New("a line is too long")
	}
	return line, err
}

var errLoginSyntax = errors.New("what the client sent is not a login")

// loginArguments reads the two strings of LOGIN, of which each may be a
// synchronizing literal: this server has no LITERAL+.
func (c *courierSession) loginArguments(args string) (user, password string, err error) {
	for _, field := range []*string{&user, &password} {
		args = strings.TrimLeft(args, " ")
		switch {
		case strings.HasPrefix(args, `"`):
			var b strings.Builder
			i := 1
			for ; i < len(args) && args[i] != '"'; i++ {
				if args[i] == '\\' && i+1 < len(args) {
					i++
				}
				b.WriteByte(args[i])
			}
			if i >= len(args) {
				return "", "", errLoginSyntax
			}
			*field, args = b.String(), args[i+1:]
		case strings.HasPrefix(args, "{"):
			n, convErr := strconv.Atoi(strings.TrimSuffix(args[1:], "}"))
			if convErr != nil || n < 0 || n > maxLoginLiteral || !strings.HasSuffix(args, "}") {
				return "", "", errLoginSyntax
			}
			if err := c.say("+ OK"); err != nil {
				return "", "", err
			}
			b := make([]byte, n)
			if _, err := io.ReadFull(c.r, b); err != nil {
				return "", "", err
			}
			line, err := c.line()
			if err != nil {
				return "", "", err
			}
			*field, args = string(b), strings.TrimRight(line, "\r\n")
		default:
			*field, args, _ = strings.Cut(args, " ")
		}
	}
	if user == "" || password == "" || strings.TrimSpace(args) != "" {
		return "", "", errLoginSyntax
	}
	return strings.ToLower(user), password, nil
}

// authenticatePlain reads the response of AUTHENTICATE PLAIN, which may come
// with the command.
func (c *courierSession) authenticatePlain(args string) (user, password string, err error) {
	mechanism, response, initial := strings.Cut(args, " ")
	if !strings.EqualFold(mechanism, "PLAIN") {
		return "", "", errLoginSyntax
	}
	if !initial {
		if err := c.say("+ "); err != nil {
			return "", "", err
		}
		line, err := c.line()
		if err != nil {
			return "", "", err
		}
		response = strings.TrimRight(line, "\r\n")
	}
	b, decodeErr := base64.StdEncoding.DecodeString(response)
	parts := strings.Split(string(b), "\x00")
	if decodeErr != nil || len(parts) != 3 {
		return "", "", errLoginSyntax
	}
	return strings.ToLower(parts[1]), parts[2], nil
}

// courierProcess is one program that talks to one client.
type courierProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	copied chan struct{} // closed when copyTo has passed on all its output
	once   sync.Once
}

// start starts a program as the mail's user.
func (s *CourierServer) start(secure bool, env []string, argv ...string) (*courierProcess, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.Home
	cmd.Env = append(s.programs.environment(),
		"TCPREMOTEIP=127.0.0.1", "TCPREMOTEPORT=1", "PROTOCOL=IMAP",
		"IMAP_CAPABILITY="+s.config.Capability, "IMAP_CAPABILITY_TLS="+s.config.Capability+" AUTH=PLAIN",
		"IMAP_KEYWORDS=1", "IMAP_ACL=1", "IMAP_USELOCKS=1", "IMAP_MAILBOX_SANITY_CHECK=1", "IMAP_UMASK=022")
	if secure {
		cmd.Env = append(cmd.Env, "IMAP_TLS=1")
	} else {
		// imaplogin announces STARTTLS when it knows a program for it; the
		// command itself does not get so far.
		cmd.Env = append(cmd.Env, "IMAP_STARTTLS=YES", "COURIERTLS=/bin/false")
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = s.log
	runAs(cmd, s.mail)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &courierProcess{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// copyTo passes on the program's output until it ends.
func (p *courierProcess) copyTo(conn net.Conn) {
	p.copied = make(chan struct{})
	go func() {
		defer close(p.copied)
		_, _ = io.Copy(conn, p.out)
		// If the client is gone, the program goes on until its input ends, and must not
		// block on its output.
		_, _ = io.Copy(io.Discard, p.out)
	}()
}

// end closes the program's input, which ends it, and waits until it is gone.
func (p *courierProcess) end() {
	p.once.Do(func() {
		_ = p.in.Close()
		kill := time.AfterFunc(courierEnd, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		if p.copied != nil {
			<-p.copied
		}
		_ = p.cmd.Wait()
	})
}
