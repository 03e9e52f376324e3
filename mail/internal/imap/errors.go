package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Kind says what kind of failure an Error is.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"        // the server did not accept the login
	KindConnection  Kind = "connection"  // no connection, or it broke
	KindCertificate Kind = "certificate" // the server's certificate was not accepted
	KindTimeout     Kind = "timeout"     // a deadline passed, or the server fell silent
	KindCanceled    Kind = "canceled"    // the caller gave up
	KindProtocol    Kind = "protocol"    // the server said something that is not IMAP, or we must not
	KindRefused     Kind = "refused"     // the server answered NO or BAD
	KindLimit       Kind = "limit"       // the server sent more than the limits allow
	KindClosed      Kind = "closed"      // the server ended the connection, or the pool is closed
)

// Stage is what was being done when an operation failed.
type Stage string

// The stages.
const (
	StageConnect  Stage = "connect"
	StageTLS      Stage = "tls"
	StageGreeting Stage = "greeting"
	StageAuth     Stage = "auth"
	StageNoop     Stage = "noop"
	StageExamine  Stage = "examine"
	StageList     Stage = "list"
	StageStatus   Stage = "status"
	StageSearch   Stage = "search"
	StageFetch    Stage = "fetch"
	StageIdle     Stage = "idle"
)

// Error is a failure of the wire. It holds no secret and no raw protocol beyond
// one bounded line.
type Error struct {
	Op        string // "dial" or "lend"
	Stage     Stage
	Kind      Kind
	Code      string // the server's response code, such as AUTHENTICATIONFAILED
	Text      string // the server's own words, cleaned, at most 256 characters
	Permanent bool   // trying again without a change cannot help
	OutOfStep bool   // the connection can no longer be used
	Err       error  // the cause; may be nil

	again   bool // a login that was refused is worth another try
	plainly bool // a SEARCH that was refused is worth another try without its CHARSET
}

// Error says what happened in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("imap ")
	b.WriteString(string(e.Stage))
	b.WriteString(": ")
	switch {
	case e.Kind == KindRefused || e.Kind == KindAuth && e.Text != "":
		b.WriteString("server refused")
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		b.WriteString(string(e.Kind))
	}
	if e.Code != "" {
		b.WriteString(" [" + e.Code + "]")
	}
	if e.Text != "" {
		b.WriteString(": " + e.Text)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// LimitError names the bound a server went over.
type LimitError struct {
	What string // "line", "literal", "string", "nesting", "bytes"
	Max  int64
}

func (e *LimitError) Error() string { return "server went over the limit on " + e.What }

// The causes a guard closes a connection for, besides a LimitError and the end
// of a context.
var (
	// ErrForbidden is the cause when a session was asked to send a command that
	// its mode does not allow. No byte of it left.
	ErrForbidden = errors.New("command is not allowed in a read-only session")
	// ErrClosed is the cause when the pool or session was closed.
	ErrClosed = errors.New("session is closed")

	errSilence  = errors.New("server fell silent")
	errNotIMAP  = errors.New("server answer is not IMAP")
	errBadWrite = errors.New("command is malformed")
	errGaveUp   = errors.New("answer could not be understood")
)

// temporary are the response codes that promise a later attempt may work (RFC
// 9051 section 7.1).
var temporary = map[string]bool{"UNAVAILABLE": true, "INUSE": true, "LIMIT": true, "SERVERBUG": true, "CONTACTADMIN": true}

// kindOf classifies an error of the network or TLS; unknown causes are KindConnection.
func kindOf(err error) Kind {
	var (
		limit  *LimitError
		netErr net.Error
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &limit):
		return KindLimit
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errSilence):
		return KindTimeout
	case errors.Is(err, ErrForbidden), errors.Is(err, errNotIMAP), errors.Is(err, errBadWrite), errors.Is(err, errGaveUp), errors.As(err, &record):
		return KindProtocol
	case errors.Is(err, ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return KindClosed
	case wire.BadCertificate(err):
		return KindCertificate
	case errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	}
	return KindConnection
}

// refusal turns a server's NO or BAD into an Error.
func refusal(stage Stage, e *goimap.Error) *Error {
	code := strings.ToUpper(wire.Clean(string(e.Code)))
	return &Error{Stage: stage, Kind: KindRefused, Code: code, Text: wire.Clean(e.Text), Permanent: !temporary[code], Err: e}
}
