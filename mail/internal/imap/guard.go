package imap

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// budget bounds one operation.
type budget struct {
	bytes, answers int64
	spared         int64 // of the bytes, those that may not be used for now
}

// idleBudget bounds the data that a server may send while no command runs.
var idleBudget = budget{bytes: 256 << 10, answers: 10_000}

// guard is the net.Conn that the protocol library sees. It bounds all incoming data,
// decides which commands may go out, and closes the connection on the first breach, whose
// cause it keeps. It ignores the library's own deadlines: they do not follow the caller's
// context.
type guard struct {
	raw    net.Conn // closing it ends everything at once, also in the middle of TLS
	target *wire.Target

	mu       sync.Mutex
	conn     net.Conn // raw, or TLS over it
	cause    error    // the first reason this connection ended; nil while it lives
	active   bool     // an operation is in progress
	silence  time.Duration
	budget   budget // the rest of this operation's budget
	received int64  // bytes since the operation began
	bye      string
	stop     func() bool

	scan   scanner // touched by the reader only
	mend   *mender // between scan and the reader; nil while lines are read by a dialog
	in     []byte  // buffer for the mender's input
	login  *pendingLogin
	filter filter // touched by writers; they take turns

	// Touched by the session's own goroutine.
	corked   bool // hold the bytes that are written
	declared bool // the last SEARCH left with one

	idling atomic.Pointer[idling] // the IDLE in progress

	writing sync.Mutex // each write leaves whole, and in its order
	held    []byte     // goes out in front of the next write; guarded by writing

	warnings atomic.Int64 // untagged NO and BAD
}

func newGuard(conn net.Conn, cfg *Config) *guard {
	g := &guard{raw: conn, target: &cfg.Target, conn: conn, silence: cfg.Socket, budget: idleBudget}
	g.scan = scanner{limits: cfg.Limits, tagged: g.filter.answered, bye: g.setBye, warned: func() { g.warnings.Add(1) }}
	g.grant(NoChange)
	return g
}

// grant sets the changes that the session may make from here on.
func (g *guard) grant(to Grant) { g.filter.grant(verbsOf(to), to != NoChange) }

// changed reports whether a command that changes something has left in this operation,
// or since the grant that it began with.
func (g *guard) changed() bool {
	g.filter.mu.Lock()
	defer g.filter.mu.Unlock()
	return g.filter.changed
}

func (g *guard) setBye(text string) {
	g.mu.Lock()
	g.bye = text
	g.mu.Unlock()
}

// begin arms the guard for one operation: its context, silence and budget.
func (g *guard) begin(ctx context.Context, silence time.Duration, allowed budget) {
	g.leaveIdle()
	g.filter.begin()
	g.mu.Lock()
	g.active, g.silence, g.budget, g.received = true, silence, allowed, 0
	_ = g.conn.SetReadDeadline(time.Now().Add(silence))
	g.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { g.end(ctx.Err()) })
	g.mu.Lock()
	g.stop = stop
	g.mu.Unlock()
}

// finish disarms the guard. The connection stays open for the next operation.
func (g *guard) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil && !g.stop() && g.cause == nil {
		// The context ended just now and is about to close the connection; the
		// next operation must not be blamed for it.
		g.cause = ErrClosed
		_ = g.raw.Close()
	}
	g.stop = nil
	g.active, g.budget = false, idleBudget
	_ = g.conn.SetReadDeadline(time.Time{})
}

// patience changes how long the server may be silent.
func (g *guard) patience(silence time.Duration) {
	g.mu.Lock()
	g.silence = silence
	g.mu.Unlock()
}

// renew gives the operation in progress a fresh budget.
func (g *guard) renew(allowed budget) {
	g.mu.Lock()
	g.budget = allowed
	g.mu.Unlock()
}

// narrow limits the operation in progress to so many bytes, until widen or until its budget
// is renewed.
func (g *guard) narrow(bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.spared = max(g.budget.bytes-bytes, 0)
}

// widen takes back what narrow did.
func (g *guard) widen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.spared = 0
}

// end closes the connection for a reason; only the first reason is kept.
func (g *guard) end(cause error) {
	g.mu.Lock()
	if g.cause == nil {
		g.cause = cause
	}
	g.mu.Unlock()
	_ = g.raw.Close()
}

// reason returns the reason the connection ended, nil while it lives.
func (g *guard) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// answered reports whether the server sent anything but its goodbye in this operation.
func (g *guard) answered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.received > 0 && g.bye == ""
}

// putTLS puts TLS over the connection.
func (g *guard) putTLS(conn net.Conn) {
	g.mu.Lock()
	g.conn = conn
	g.mu.Unlock()
}

// Read gives the protocol library the mender's output, and a dialog the bytes as received.
// The library reads no more after an error, so a login has its outcome then.
func (g *guard) Read(p []byte) (int, error) {
	m := g.mend
	if m == nil {
		return g.receive(p)
	}
	err := error(nil)
	if len(m.out) > 0 {
		err = g.reason() // the library may take long over the rest
	}
	for err == nil && len(m.out) == 0 {
		if g.in == nil {
			g.in = make([]byte, 16<<10)
		}
		m.out = m.spare[:0]
		_, err = g.receive(g.in)
		m.spare = m.out
	}
	if err != nil {
		_ = g.login.outcome(err)
		return 0, err
	}
	n := copy(p, m.out)
	m.out = m.out[n:]
	return n, nil
}

// receive reads from the connection within the bounds.
func (g *guard) receive(p []byte) (int, error) {
	g.mu.Lock()
	if g.cause != nil {
		defer g.mu.Unlock()
		return 0, g.cause
	}
	conn := g.conn
	if g.active {
		_ = conn.SetReadDeadline(time.Now().Add(g.silence))
	}
	g.mu.Unlock()

	n, err := conn.Read(p)

	g.mu.Lock()
	g.received += int64(n)
	g.budget.bytes -= int64(n)
	g.mu.Unlock()
	before := g.scan.complete
	breach := g.scan.feed(p[:n])
	g.mu.Lock()
	g.budget.answers -= g.scan.complete - before
	switch {
	case breach != nil:
	case g.budget.bytes < g.budget.spared:
		breach = tooMuch("bytes")
	case g.budget.answers < 0:
		breach = tooMuch("answers")
	}
	g.mu.Unlock()
	if breach != nil {
		err = breach
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		err = errSilence
	}
	if err != nil {
		g.end(err)
		return 0, g.reason()
	}
	return n, nil
}

// mending puts a mender in front of the reader, which is the protocol library from here on.
// left is the input that the dialog read and did not use.
func (g *guard) mending(greeting string, left []byte, held *pendingLogin, login func([]byte) error) error {
	g.login = held
	g.mend = &mender{limit: g.scan.limits.Line, continues: g.filter.continues, login: login, out: []byte(greeting),
		asked: g.filter.asksCapabilities, opened: g.filter.opened.Load, idle: g.idleLine}
	// The scanner has seen these bytes, but the mender has not.
	rest := scanner{limits: g.scan.limits, mend: g.mend}
	if err := rest.feed(left); err != nil {
		return err
	}
	rest.tagged, rest.bye, rest.warned, rest.complete = g.scan.tagged, g.scan.bye, g.scan.warned, g.scan.complete
	g.scan = rest
	return nil
}

// Write sends only whole lines that the filter has allowed. It fails once the connection
// has ended, even if it would only hold the bytes: the library fails the commands it knows
// of when its reader ends, and a later one only when its line cannot be written.
func (g *guard) Write(p []byte) (int, error) {
	if cause := g.reason(); cause != nil {
		return 0, cause
	}
	// Text inside quotes is the search text.
	if before, _, found := bytes.Cut(p, []byte(" CHARSET UTF-8 ")); found && !g.filter.within && !bytes.ContainsRune(before, '"') {
		g.declared = true
	}
	out, err := g.filter.push(p)
	if err != nil {
		g.end(err)
		return 0, g.reason()
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	g.hold(out)
	if !g.corked || g.filter.within { // within, the library waits for the server
		err = g.sendHeld()
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// hold appends bytes to the held ones. The caller holds writing.
func (g *guard) hold(out []byte) {
	if len(g.held) > 0 {
		before := g.held
		out = slices.Concat(before, out)
		clear(before) // a login may be in it
	}
	g.held = out
}

// flush sends the held bytes. Any goroutine may call it. A failure ends the connection,
// and with it the commands.
func (g *guard) flush() {
	g.writing.Lock()
	defer g.writing.Unlock()
	_ = g.sendHeld()
}

// sendHeld is flush with its failure. The caller holds writing.
func (g *guard) sendHeld() error {
	out := g.held
	if g.held = nil; len(out) == 0 {
		return nil
	}
	defer clear(out) // a login may be in it
	// The operation's context ends the connection; the answer does not wait for the network.
	if err := g.target.Begin(context.Background()); err != nil {
		g.end(err)
		return g.reason()
	}
	return g.send(out)
}

// send writes at once, past the filter. The caller holds writing.
func (g *guard) send(out []byte) error {
	g.mu.Lock()
	if g.cause != nil {
		defer g.mu.Unlock()
		return g.cause
	}
	conn := g.conn
	if g.login != nil {
		g.login.sent.Store(true) // the first write begins with it
	}
	_ = conn.SetWriteDeadline(time.Now().Add(g.silence))
	g.mu.Unlock()
	if _, err := conn.Write(out); err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			err = errSilence
		}
		g.end(err)
		return g.reason()
	}
	return nil
}

// together sends the output of start in one write.
func (g *guard) together(start func()) {
	if !g.corked {
		defer g.flush()
	}
	g.cork(start)
}

// cork holds the output of start until the next write or flush.
func (g *guard) cork(start func()) {
	before := g.corked
	g.corked = true
	defer func() { g.corked = before }()
	start()
}

// Close is only for the library, which closes when it cannot parse an answer. All other
// code calls end with a reason.
func (g *guard) Close() error {
	g.end(errGaveUp)
	return nil
}

func (g *guard) LocalAddr() net.Addr              { return g.raw.LocalAddr() }
func (g *guard) RemoteAddr() net.Addr             { return g.raw.RemoteAddr() }
func (g *guard) SetDeadline(time.Time) error      { return nil }
func (g *guard) SetReadDeadline(time.Time) error  { return nil }
func (g *guard) SetWriteDeadline(time.Time) error { return nil }
