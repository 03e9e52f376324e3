// Package graph hands messages over to Microsoft Graph (POST /me/sendMail with the message in
// MIME), with the outcomes of package smtp: taken, not sent, or unknown.
//
// The request is written here rather than by net/http. What counts is what a general client
// does not tell: that the last bytes of the message leave alone and last, so that until then
// nothing can have been sent, and whether an answer came. A redirect is never followed.
package graph

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
)

const (
	// maxRequest bounds the body of a request, in bytes: Graph takes four megabytes.
	maxRequest = 4_000_000
	maxAnswer  = 64 << 10 // bytes of an answer
	block      = 32 << 10 // bytes of the message that leave in one write

	blockTime = 3 * time.Minute      // for each write
	endTime   = 5 * time.Minute      // for the answer
	parting   = time.Second          // for an answer that came before the end
	listening = 2 * time.Millisecond // before the end leaves
)

var (
	errAnswer = wire.Cause(wire.KindProtocol, "the service's answer is not that of sendMail")
	errTooBig = wire.Cause(wire.KindLimit, "server sent more than is allowed")
	errClosed = wire.Cause(wire.KindClosed, "connection is closed")
)

// Session has an access token that is good for sending and a connection for the first message;
// each further one has its own. It is not safe for concurrent use.
type Session struct {
	target wire.Target
	token  wire.Credential
	conn   net.Conn // that of Dial, for the first request; nil when it was used
}

// Dial gets an access token and reaches the service. The error is a *wire.Error, or what
// Login.Credential returned.
func Dial(ctx context.Context, target wire.Target) (*Session, error) {
	s := &Session{target: target.WithDefaults()}
	if err := s.login(ctx); err != nil {
		return nil, err
	}
	c, err := wire.Connect(ctx, s.target)
	if err != nil {
		return nil, err
	}
	s.conn = c
	return s, nil
}

func (s *Session) login(ctx context.Context) error {
	c, err := s.target.Login.Credential(ctx)
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil || c.Token == "" {
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Permanent: true, Err: err}
	}
	s.token = c
	return nil
}

// Extensions is empty: the service has none.
func (s *Session) Extensions() []string { return nil }

// Close forgets the token, and closes a connection that was not used.
func (s *Session) Close() error {
	s.token = wire.Credential{}
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}

// Check reports a message that the service would not take, or whose header it may read in
// another way than the caller: its recipients are those. The error is a *smtp.SendError.
func (s *Session) Check(e smtp.Envelope, message []byte) error {
	if failed := smtp.Sendable(&e, message); failed != nil {
		return notSent(failed, false)
	}
	if n := base64.StdEncoding.EncodedLen(len(message)); n > maxRequest {
		return notSent(&wire.Error{Stage: smtp.StageCheck, Kind: wire.KindTooLarge,
			Err: fmt.Errorf("message has %d bytes, and the service takes %d", len(message), maxRequest/4*3)}, false)
	}
	return nil
}

// Send hands a message over, as smtp.Session.Send does. Its recipients are those of its header,
// Bcc included; of the envelope only the funcs count. A token that is refused is replaced once.
func (s *Session) Send(ctx context.Context, e smtp.Envelope, message []byte) (*smtp.Receipt, error) {
	if err := s.Check(e, message); err != nil {
		return nil, err
	}
	gate := e.BeforeData
	e.BeforeData = func() (err error) {
		if gate != nil {
			err, gate = gate(), nil
		}
		return err
	}
	body := base64.StdEncoding.AppendEncode(nil, message)
	receipt, err := s.send(ctx, e, body)
	if wire.WorthRetry(err) {
		if failed := s.login(ctx); failed != nil {
			return nil, err
		}
		receipt, err = s.send(ctx, e, body)
	}
	return receipt, err
}

func (s *Session) send(ctx context.Context, e smtp.Envelope, body []byte) (*smtp.Receipt, error) {
	raw := s.conn
	if s.conn = nil; raw == nil {
		var err error
		if raw, err = wire.Connect(ctx, s.target); err != nil {
			failed, _ := errors.AsType[*wire.Error](err)
			return nil, notSent(failed, !failed.Permanent)
		}
	}
	c := wire.Bound(raw, maxAnswer, errTooBig)
	defer func() { _ = c.End(errClosed) }()
	defer c.Until(ctx)()
	br := bufio.NewReader(c)
	if e.BeforeData != nil {
		if err := e.BeforeData(); err != nil {
			return nil, &smtp.SendError{Outcome: smtp.NotSent, Err: err}
		}
	}
	if err := s.target.Begin(ctx); err != nil {
		return nil, notSent(wire.Broken(smtp.StageData, c.End(err)), true)
	}
	head := fmt.Sprintf("POST /v1.0/me/sendMail HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
		s.target.Host, s.token.Token, len(body))
	if err := c.Send([]byte(head), blockTime); err != nil {
		return nil, s.early(ctx, c, br, err)
	}
	last := len(body) - min(len(body), 4)
	for at := 0; at < last; at += block {
		part := body[at:min(at+block, last)]
		if err := c.Send(part, blockTime); err != nil {
			return nil, s.early(ctx, c, br, err)
		}
		if e.Sent != nil {
			e.Sent((at + len(part)) / 4 * 3)
		}
	}
	c.Deadline(time.Now().Add(listening))
	if _, err := br.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, s.early(ctx, c, br, cmp.Or(err, error(errAnswer)))
	}
	if ctx.Err() != nil {
		return nil, notSent(wire.Broken(smtp.StageMessage, c.End(ctx.Err())), true)
	}
	if err := c.Send(body[last:], blockTime); err != nil {
		return nil, unknown(wire.Broken(smtp.StageEnd, c.End(err)))
	}
	c.Deadline(time.Now().Add(endTime))
	return s.answer(ctx, c, br)
}

// early is why a request stopped before its end: what the service said, if it is there, else
// the cause. Without its end the service cannot have taken it.
func (s *Session) early(ctx context.Context, c *wire.Bounded, br *bufio.Reader, cause error) error {
	if k := wire.KindOf(cause); k != wire.KindTimeout && k != wire.KindCanceled {
		c.Deadline(time.Now().Add(parting))
		var said *wire.Error
		if _, err := s.answer(ctx, c, br); errors.As(err, &said) && said.Reply >= 400 {
			failed, _ := errors.AsType[*smtp.SendError](err)
			failed.Outcome, failed.Temporary = smtp.NotSent, failed.Temporary || said.Reply >= 500
			return failed
		}
	}
	return notSent(wire.Broken(smtp.StageMessage, c.End(cause)), true)
}

// answer reads the answer to a whole request. 202 says that the service has the message
// (https://learn.microsoft.com/graph/api/user-sendmail). It has not with 3xx and 4xx, nor with
// 503 where it says when to come back (https://learn.microsoft.com/graph/throttling). Anything
// else says nothing.
func (s *Session) answer(ctx context.Context, c *wire.Bounded, br *bufio.Reader) (*smtp.Receipt, error) {
	var r *http.Response
	for range 5 { // an interim answer or two are allowed (RFC 9110 section 15.2)
		var err error
		if r, err = http.ReadResponse(br, &http.Request{Method: http.MethodPost}); err != nil {
			if cause := c.Cause(); cause != nil {
				err = cause
			} else if k := wire.KindOf(err); k == wire.KindConnection {
				err = errAnswer // it is no HTTP
			}
			return nil, unknown(wire.Broken(smtp.StageEnd, c.End(err)))
		}
		if r.StatusCode >= 200 {
			break
		}
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode == http.StatusAccepted {
		return &smtp.Receipt{Reply: r.StatusCode, Text: wire.Clean(r.Header.Get("request-id"))}, nil
	}
	w := &wire.Error{Stage: smtp.StageEnd, Kind: wire.KindRefused, Reply: r.StatusCode, OutOfStep: true}
	later := r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable || r.StatusCode == http.StatusRequestTimeout
	if r.StatusCode == http.StatusUnauthorized {
		w.Kind, w.Newer = wire.KindAuth, s.target.Login.Newer(ctx, s.token)
		return nil, notSent(w, false)
	}
	w.Code, w.Text = said(r.Body)
	after := r.Header.Get("Retry-After") // seconds, or a date (RFC 9110 section 10.2.3)
	if wait, err := strconv.Atoi(after); err == nil && wait > 0 && wait < 1e6 {
		w.Text = wire.Clean(fmt.Sprintf("%s It asks to wait for %d seconds.", w.Text, wait))
	}
	switch {
	case r.StatusCode/100 == 3 || r.StatusCode/100 == 4, r.StatusCode == http.StatusServiceUnavailable && after != "":
		w.Permanent = !later
		return nil, notSent(w, later)
	case r.StatusCode < 300:
		w.Kind, w.Err = wire.KindProtocol, errAnswer
	}
	return nil, unknown(w)
}

// said is the code and the words of an error, cleaned.
func said(body io.Reader) (code, text string) {
	var answer struct {
		Error struct{ Code, Message string }
	}
	b, _ := io.ReadAll(io.LimitReader(body, maxAnswer))
	_ = json.Unmarshal(b, &answer) // without one the status has to do
	return wire.Clean(answer.Error.Code), wire.Clean(answer.Error.Message)
}

func notSent(e *wire.Error, later bool) *smtp.SendError {
	return &smtp.SendError{Outcome: smtp.NotSent, Temporary: later, Err: e}
}

func unknown(e *wire.Error) *smtp.SendError { return &smtp.SendError{Err: e} }
