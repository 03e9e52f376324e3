// Package pop3 is the POP3 wire (RFC 1939, RFC 2449, RFC 2595, RFC 5034): a client
// that reads and cannot delete. It has no DELE, and writes nothing but the commands
// it names here.
//
// What a server sends is bounded in bytes, lines, messages and silence, and kept
// byte for byte but for the dots that the protocol adds. The package knows nothing
// of accounts or policy; only mail/mailbox imports it.
//
// It reads lines itself: net/textproto has no bound on a line and turns CRLF into
// LF, and a message must stay as it was delivered.
package pop3

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Config says where the mailbox is and how to log in.
type Config struct {
	wire.Target
	Socket      time.Duration // silence in the middle of an answer; 0 means 300 s
	MaxBytes    int64         // of all answers to one call; 0 means 64 MiB
	MaxMessages int           // in one mailbox; 0 means 100,000

	// Lease waits until no process on another machine has the mailbox open, and keeps them away
	// until release, or until held ends, which derives from ctx. nil where there are none.
	Lease func(ctx context.Context) (held context.Context, release func(), err error)
}

func (c Config) withDefaults() Config {
	c.Target = c.Target.WithDefaults()
	c.Socket = cmp.Or(c.Socket, 300*time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	c.MaxMessages = cmp.Or(c.MaxMessages, 100_000)
	return c
}

// maxReply bounds the line that begins an answer. RFC 2449 section 4 allows 512
// bytes; servers that greet with more are read too.
const maxReply = 4096

// Session is a mailbox that is open: it shows the messages that were there at the login
// (RFC 1939 section 4), so new messages need a new Session. It is not safe for
// concurrent use.
type Session struct {
	cfg   Config
	conn  *conn
	br    *bufio.Reader
	ctx   context.Context
	stop  func()
	caps  map[string][]string // by upper-case tag; nil where CAPA is not known
	ended bool
	words func(heard string) string // of a login in progress, see wire.Credential.Words; nil behind it
}

// Dial connects, upgrades where configured, and logs in; where the login is refused
// and there is a newer credential, it does so once more. The end of ctx closes the
// connection at any time until Close. Errors are *wire.Error, or what Login.Credential
// returned.
func Dial(ctx context.Context, cfg Config) (*Session, error) {
	cfg = cfg.withDefaults()
	s, err := dial(ctx, cfg)
	if wire.WorthRetry(err) {
		s, err = dial(ctx, cfg)
	}
	return s, err
}

func dial(ctx context.Context, cfg Config) (*Session, error) {
	conn, err := wire.Connect(ctx, cfg.Target)
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, ctx: ctx}
	s.over(conn)
	s.stop = s.conn.Until(ctx)
	if err := s.begin(ctx); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// over puts the session on a connection.
func (s *Session) over(c net.Conn) {
	s.conn = &conn{Bounded: wire.Bound(c, 0, errBudget), silence: s.cfg.Socket}
	s.br = bufio.NewReaderSize(s.conn, 2*maxReply)
}

func (s *Session) begin(ctx context.Context) error {
	s.conn.within(1<<20, time.Now().Add(s.cfg.Greeting))
	if _, err := s.reply(wire.StageGreeting); err != nil {
		return err
	}
	s.conn.within(1<<20, time.Time{})
	if s.cfg.Security == wire.StartTLS {
		if err := s.startTLS(ctx); err != nil {
			return err
		}
	}
	return s.login(ctx)
}

// startTLS upgrades (RFC 2595 section 4). The server is not asked whether it can:
// capabilities sent in the clear do not count.
func (s *Session) startTLS(ctx context.Context) error {
	if _, err := s.command(wire.StageTLS, "STLS"); err != nil {
		return err
	}
	if s.br.Buffered() > 0 {
		return &wire.Error{Stage: wire.StageTLS, Kind: wire.KindProtocol, Err: fmt.Errorf("%w: data in front of TLS", errNotPOP3)}
	}
	if err := s.conn.StartTLS(ctx, s.cfg.Target); err != nil {
		return err
	}
	s.br.Reset(s.conn)
	s.conn.within(1<<20, time.Time{})
	return nil
}

// Capabilities lists what the server offers, sorted, with the arguments of each;
// none where it does not know CAPA (RFC 2449 section 5).
func (s *Session) Capabilities() []string {
	var out []string
	for _, tag := range slices.Sorted(maps.Keys(s.caps)) {
		out = append(out, strings.Join(append([]string{tag}, s.caps[tag]...), " "))
	}
	return out
}

// Has reports whether the server offers a capability.
func (s *Session) Has(tag string) bool { _, ok := s.caps[tag]; return ok }

// Capability returns the arguments of a capability as one string, empty when it has
// none or is not offered.
func (s *Session) Capability(tag string) string { return strings.Join(s.caps[tag], " ") }

// Message is one message of the mailbox: its number in this session and the name
// that it keeps for ever (RFC 1939 section 7, UIDL).
type Message struct {
	Number int
	UIDL   string
	Size   int64 // octets as the server counts them; -1 where it did not say
}

// Messages lists the mailbox in the order of its numbers. Messages whose line cannot
// be read, whose name came before, or whose name is not valid (1 to 70 characters 0x21
// to 0x7E) are left out and counted.
func (s *Session) Messages(ctx context.Context) (list []Message, skipped int, err error) {
	err = s.call(ctx, "uidl", func() error {
		// Both leave at once where the server allows it.
		lines, err := s.listings("UIDL", "LIST")
		if err != nil {
			return err
		}
		sizes := make(map[int]int64, len(lines[1]))
		for _, l := range lines[1] {
			number, size, _ := strings.Cut(l, " ")
			n, errN := strconv.Atoi(number)
			octets, errO := strconv.ParseInt(strings.TrimSpace(size), 10, 64)
			if errN == nil && errO == nil && octets >= 0 {
				sizes[n] = octets
			}
		}
		seen := make(map[string]bool, len(lines[0]))
		numbers := make(map[int]bool, len(lines[0]))
		list = make([]Message, 0, len(lines[0]))
		for _, l := range lines[0] {
			number, name, _ := strings.Cut(l, " ")
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || !ValidUIDL(name) || seen[name] || numbers[n] {
				skipped++
				continue
			}
			seen[name], numbers[n] = true, true
			m := Message{Number: n, UIDL: name, Size: -1}
			if size, ok := sizes[n]; ok {
				m.Size = size
			}
			list = append(list, m)
		}
		slices.SortFunc(list, func(a, b Message) int { return a.Number - b.Number })
		return nil
	})
	return list, skipped, err
}

// ValidUIDL reports whether s can be the name of a message (RFC 1939 section 7).
func ValidUIDL(s string) bool {
	return len(s) >= 1 && len(s) <= 70 && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// listings sends commands whose answers are lists, and reads them.
func (s *Session) listings(commands ...string) (lists [][]string, err error) {
	err = s.inFlight(commands, func(i int) error {
		stage := strings.ToLower(commands[i])
		if _, err := s.reply(stage); err != nil {
			return err
		}
		lines, err := s.lines()
		lists = append(lists, lines)
		return s.conn.explain(s.ctx, stage, err)
	})
	return lists, err
}

// flight is how many commands may be on the way at once: few enough that their
// bytes fit any socket's buffer, so that neither side waits for the other.
const flight = 64

// inFlight sends commands, several at once where the server takes them so (RFC 2449
// section 6.6), and has the answer to each read.
func (s *Session) inFlight(commands []string, read func(i int) error) error {
	most := 1
	if s.Has("PIPELINING") {
		most = flight
	}
	for i := range commands {
		if i%most == 0 {
			if err := s.write(commands[i:min(i+most, len(commands))]...); err != nil {
				return err
			}
		}
		if err := read(i); err != nil {
			return err
		}
	}
	return nil
}

// Top reads the headers of messages and so many lines of their bodies (RFC 1939 section 7,
// TOP), in one flight where the server allows it. got is called for each in turn with the
// first keep bytes as delivered, CRLF line ends included, or with the *wire.Error of a
// server that refused that one. A server without TOP refuses.
func (s *Session) Top(ctx context.Context, numbers []int, lines, keep int, got func(number int, b []byte, err error)) error {
	return s.each(ctx, "top", numbers, keep, func(n int) string { return fmt.Sprintf("TOP %d %d", n, max(lines, 0)) }, got)
}

// Retrieve reads whole messages in the same way (RFC 1939 section 5, RETR).
func (s *Session) Retrieve(ctx context.Context, numbers []int, keep int, got func(number int, b []byte, err error)) error {
	return s.each(ctx, "retr", numbers, keep, func(n int) string { return fmt.Sprintf("RETR %d", n) }, got)
}

func (s *Session) each(ctx context.Context, stage string, numbers []int, keep int, command func(n int) string, got func(int, []byte, error)) error {
	commands := make([]string, len(numbers))
	for i, n := range numbers {
		commands[i] = command(n)
	}
	return s.call(ctx, stage, func() error {
		return s.inFlight(commands, func(i int) error {
			_, err := s.reply(stage)
			var b []byte
			if err == nil {
				if b, err = s.content(keep); err != nil {
					return err
				}
			}
			var refused *wire.Error
			if err != nil && !(errors.As(err, &refused) && refused.Kind == wire.KindRefused) {
				return err
			}
			got(numbers[i], b, err)
			return nil
		})
	})
}

// Check asks whether the connection is alive (RFC 1939 section 5, NOOP).
func (s *Session) Check(ctx context.Context) error {
	return s.call(ctx, "noop", func() error {
		_, err := s.command("noop", "NOOP")
		return err
	})
}

// Close says QUIT and closes the connection. No message was marked for deletion, so QUIT
// deletes none (RFC 1939 section 6).
func (s *Session) Close() error {
	if s.ended {
		return nil
	}
	s.conn.within(maxReply, time.Now().Add(2*time.Second))
	err := s.write("QUIT")
	if err == nil {
		_, err = s.reply("quit")
	}
	s.end()
	return err
}

func (s *Session) end() {
	s.ended = true
	s.stop()
	_ = s.conn.End(net.ErrClosed)
}

// call runs one exchange within the budget of bytes. The end of ctx closes the connection,
// and so does every failure that is not a refusal: the server's next reply would answer
// another command.
func (s *Session) call(ctx context.Context, stage string, fn func() error) error {
	if s.ended {
		return &wire.Error{Stage: stage, Kind: wire.KindConnection, Err: net.ErrClosed}
	}
	s.conn.within(s.cfg.MaxBytes, time.Time{})
	outer := s.ctx
	s.ctx = ctx
	stop := s.conn.Until(ctx)
	err := fn()
	s.ctx = outer
	if stop(); err == nil {
		err = s.conn.Cause()
	}
	err = s.conn.explain(ctx, stage, err)
	var e *wire.Error
	if err != nil && !(errors.As(err, &e) && e.Kind == wire.KindRefused) {
		s.end()
	}
	return err
}

// command sends one command and reads the line that answers it.
func (s *Session) command(stage, line string) (text string, err error) {
	if err := s.write(line); err != nil {
		return "", s.conn.explain(s.ctx, stage, err)
	}
	return s.reply(stage)
}

func (s *Session) write(lines ...string) error {
	err := s.cfg.Begin(s.ctx)
	if err == nil {
		err = s.conn.Send([]byte(strings.Join(lines, "\r\n")+"\r\n"), s.conn.silence)
	}
	if err != nil {
		err = s.conn.End(err)
	}
	return err
}

// reply reads the line that begins an answer: +OK, or -ERR as a *wire.Error.
func (s *Session) reply(stage string) (text string, err error) {
	line, err := s.line()
	if err != nil {
		return "", s.conn.explain(s.ctx, stage, err)
	}
	status, text, _ := strings.Cut(line, " ")
	switch strings.ToUpper(status) {
	case "+OK":
		return text, nil
	case "-ERR":
		e := &wire.Error{Stage: stage, Kind: wire.KindRefused, Text: s.shown(text)}
		if inner, ok := strings.CutPrefix(text, "["); ok {
			if code, rest, ok := strings.Cut(inner, "]"); ok {
				e.Code, e.Text = strings.ToUpper(s.shown(code)), s.shown(rest)
			}
		}
		return "", e
	}
	return "", &wire.Error{Stage: stage, Kind: wire.KindProtocol, Err: errNotPOP3}
}

// shown is what may be shown of a server's words.
func (s *Session) shown(heard string) string {
	if s.words != nil {
		return s.words(heard)
	}
	return wire.Clean(heard)
}

// line reads one line without its end, at most maxReply bytes.
func (s *Session) line() (string, error) {
	b, err := s.br.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || err == nil && len(b) > maxReply+2:
		return "", s.conn.End(errLine)
	case err != nil:
		return "", err
	}
	return string(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))), nil
}

// lines reads the lines of a list up to the one that ends it.
func (s *Session) lines() ([]string, error) {
	var out []string
	for {
		l, err := s.line()
		switch {
		case err != nil:
			return nil, err
		case l == ".":
			return out, nil
		case len(out) == s.cfg.MaxMessages:
			return nil, s.conn.End(errAnswers)
		}
		out = append(out, strings.TrimPrefix(l, "."))
	}
}

// content reads the bytes of a message up to the line that ends it, without the
// dots that were put before lines that begin with one (RFC 1939 section 3), and
// returns the first of them. Lines may be of any length. Only CRLF ends a line here:
// servers count so when they put dots, and a message may hold a dot between bare
// line feeds.
func (s *Session) content(keep int) ([]byte, error) {
	var b []byte
	for start, last := true, byte(0); ; {
		chunk, err := s.br.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if start {
			if string(chunk) == ".\r\n" {
				return b, nil
			}
			chunk = bytes.TrimPrefix(chunk, []byte("."))
		}
		b = append(b, chunk[:min(len(chunk), keep-len(b))]...)
		// Where the buffer was full, the return can be the end of the chunk before.
		start = err == nil && (bytes.HasSuffix(chunk, []byte("\r\n")) || len(chunk) == 1 && last == '\r')
		if len(chunk) > 0 {
			last = chunk[len(chunk)-1]
		}
	}
}
