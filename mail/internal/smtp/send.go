package smtp

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Envelope is the sender and recipients of a message; the message's own header does not
// count.
type Envelope struct {
	From       string   // local-part@domain, without angle brackets
	Recipients []string // 1 to MaxRecipients, as From; all of them get it, or nobody
	SMTPUTF8   bool     // the header has text beyond ASCII (RFC 6531)
	// BeforeData is called once when the server has taken every recipient, right before the
	// message is sent: from here on, records must say that it may have arrived. An error
	// stops the message, and is the cause of the SendError. The func may be nil.
	BeforeData func() error
	// Sent gets the number of bytes of the message that have left, now and then. It may not
	// block, and may be nil.
	Sent func(bytes int)
}

// Receipt is a server's promise to deliver a message, or to report that it cannot.
type Receipt struct {
	Reply int    // 2xx
	Code  string // enhanced status code, such as 2.0.0; empty without one
	Text  string // the server's own words, cleaned and bounded; often its name for the message
}

const (
	block = 32 << 10 // bytes of the message that leave in one write

	// listening is how long Send waits for unsolicited replies before the end of the
	// message leaves. A later reply is taken for the answer.
	listening = 2 * time.Millisecond
	// parting is how long the server has to say why it broke off.
	parting = time.Second
)

// Send hands a message over, to every recipient or to nobody. The message has CRLF
// at the end of each line, the last one too, at most 998 bytes between them and no
// zero byte; dots need no care.
//
// A Receipt means that the server took it. Else the error is a *SendError with its Outcome.
// NotSent: the server refused, or the connection ended before the end of the message left;
// a server drops what it has of a message without its end (RFC 5321 section 4.1.1.4).
// Unknown: the end left, or part of it may have, and no answer came back.
//
// The end of ctx closes the connection at any time. A Session can send another
// message as long as the server keeps the connection.
func (s *Session) Send(ctx context.Context, e Envelope, message []byte) (*Receipt, error) {
	if err := s.Check(e, message); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, notSent(wire.Broken(StageCheck, ctx.Err()))
	}
	defer s.conn.Until(ctx)()
	if err := s.envelope(&e, len(message), eightBit(message)); err != nil {
		return nil, err
	}
	if e.BeforeData != nil {
		if err := e.BeforeData(); err != nil {
			return nil, &SendError{Outcome: NotSent, Err: err}
		}
	}
	r, failed := s.command(StageData, "DATA", dataTime)
	if failed == nil && r.code != 354 {
		failed = s.no(StageData, r)
	}
	if failed != nil {
		return nil, notSent(failed)
	}
	// From here on the server is to be silent until it has the end of the message.
	spoke := s.conn.hear()
	defer func() { <-spoke }() // the server has spoken, or the connection has ended
	if failed := s.body(message, e.Sent, spoke); failed != nil {
		return nil, notSent(failed)
	}
	return s.end(ctx, spoke)
}

// no is the failure of a reply that ends the attempt. A reply that is neither positive nor
// a refusal, or the server's goodbye, also ends the connection.
func (s *Session) no(stage string, r reply) *wire.Error {
	if !r.refused() {
		return wire.Broken(stage, s.conn.End(errNotSMTP))
	}
	if r.code == 421 {
		_ = s.conn.End(errClosed)
	}
	return refusal(stage, r)
}

// envelope sends MAIL and RCPT, in one flight where the server allows it (RFC 2920), and
// collects every answer.
func (s *Session) envelope(e *Envelope, size int, eight bool) error {
	lines := make([]string, 0, 2+len(e.Recipients))
	if s.begun {
		lines = append(lines, "RSET") // a transaction begun before may have recipients
	}
	first := len(lines) // the MAIL
	lines = append(lines, s.mailFrom(e, size, eight))
	for _, to := range e.Recipients {
		lines = append(lines, "RCPT TO:<"+to+">")
	}
	together := s.offers("PIPELINING")
	if together {
		if !s.conn.quiet() {
			return notSent(wire.Broken(StageMail, s.conn.End(errEarly)))
		}
		if err := s.write(lines...); err != nil {
			return notSent(wire.Broken(StageMail, err))
		}
	}
	s.begun = true
	var refused []RefusedRecipient
	var failed *wire.Error // the first refusal
	for i, line := range lines {
		stage := StageMail
		if i > first {
			stage = StageRcpt
		}
		r, broken := s.next(stage, line, together)
		if broken != nil {
			if failed == nil {
				failed = broken
			}
			break
		}
		if r.positive() {
			continue
		}
		no := s.no(stage, r)
		if failed == nil {
			failed = no
		}
		if stage == StageRcpt && failed.Stage == StageRcpt && s.conn.Cause() == nil {
			refused = append(refused, RefusedRecipient{Address: e.Recipients[i-first-1], Reply: no.Reply, Code: no.Code, Text: no.Text})
		}
		if s.conn.Cause() != nil || stage == StageMail && !together {
			break
		}
	}
	if failed == nil && !s.conn.quiet() {
		failed = wire.Broken(StageRcpt, s.conn.End(errEarly))
	}
	if failed == nil {
		return nil
	}
	not := notSent(failed)
	not.Refused = refused
	for _, r := range refused {
		not.Temporary = not.Temporary && r.Reply < 500
	}
	return not
}

// next is the answer to a line that has been sent already, or is sent now.
func (s *Session) next(stage, line string, sent bool) (reply, *wire.Error) {
	if !sent {
		return s.command(stage, line, commandTime)
	}
	r, err := s.conn.reply(commandTime)
	if err != nil {
		return reply{}, wire.Broken(stage, err)
	}
	return r, nil
}

// mailFrom is the MAIL command, with the parameters (RFC 1870, RFC 6152, RFC 6531) that the
// message needs and the server offers.
func (s *Session) mailFrom(e *Envelope, size int, eight bool) string {
	line := "MAIL FROM:<" + e.From + ">"
	if s.offers("SIZE") {
		line += fmt.Sprintf(" SIZE=%d", size)
	}
	if eight {
		line += " BODY=8BITMIME"
	}
	if e.international() {
		line += " SMTPUTF8"
	}
	return line
}

// body sends all of the message but its last line end, which is held back to leave
// with the dot: until then the server has not even the whole of its last line. A
// line that begins with a dot gets another one (RFC 5321 section 4.5.2).
func (s *Session) body(message []byte, sent func(int), spoke <-chan struct{}) *wire.Error {
	rest := message[:len(message)-2]
	out := make([]byte, 0, block+2*maxTextLine)
	for len(rest) > 0 {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		rest = rest[len(line):]
		if line[0] == '.' {
			out = append(out, '.')
		}
		if out = append(out, line...); len(out) < block && len(rest) > 0 {
			continue
		}
		if err := s.conn.Send(out, blockTime); err != nil {
			return s.brokeOff(err, spoke)
		}
		out = out[:0]
		if sent != nil {
			sent(len(message) - len(rest))
		}
		select {
		case <-spoke:
			return s.brokeOff(errEarly, spoke)
		default:
		}
	}
	return nil
}

// end sends the end of the message, alone, and interprets the answer. From its first byte
// on only an answer tells the outcome.
func (s *Session) end(ctx context.Context, spoke <-chan struct{}) (*Receipt, error) {
	if s.conn.heard(spoke) {
		return nil, notSent(s.brokeOff(errEarly, spoke))
	}
	if ctx.Err() != nil {
		return nil, notSent(wire.Broken(StageMessage, s.conn.End(ctx.Err())))
	}
	if err := s.conn.write([]byte("\r\n.\r\n"), blockTime); err != nil {
		return nil, unknown(wire.Broken(StageEnd, err))
	}
	r, err := s.conn.reply(endTime)
	switch {
	case err != nil:
		return nil, unknown(wire.Broken(StageEnd, err))
	case r.refused():
		return nil, notSent(s.no(StageEnd, r))
	case !r.positive():
		return nil, unknown(s.no(StageEnd, r))
	}
	if next, _ := s.conn.br.Peek(min(3, s.conn.br.Buffered())); len(next) > 0 && string(next) != "421" {
		// There are several answers, and it is unknown which one counts.
		return nil, unknown(wire.Broken(StageEnd, s.conn.End(errEarly)))
	}
	s.begun = false
	return &Receipt{Reply: r.code, Code: r.enhanced, Text: r.text()}, nil
}

// brokeOff is why the message stopped in its middle: the server's refusal, if it sent one,
// else the cause given. The connection ends without the end of the message, so the server
// drops it.
func (s *Session) brokeOff(cause error, spoke <-chan struct{}) *wire.Error {
	if k := wire.KindOf(cause); k != wire.KindTimeout && k != wire.KindCanceled {
		s.conn.Deadline(time.Now().Add(parting))
		<-spoke
		if r, err := s.conn.reply(parting); err == nil && r.refused() {
			_ = s.conn.End(errClosed)
			return refusal(StageMessage, r)
		}
	}
	return wire.Broken(StageMessage, s.conn.End(cause))
}
