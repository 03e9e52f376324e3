package imap

import (
	"errors"
	"fmt"
	"strings"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// The stages of a session, besides those that every connection has.
const (
	StageNoop    = "noop"
	StageExamine = "examine"
	StageSelect  = "select"
	StageList    = "list"
	StageStatus  = "status"
	StageSearch  = "search"
	StageFetch   = "fetch"
	StageStore   = "store"
	StageCopy    = "copy"
	StageMove    = "move"
	StageExpunge = "expunge"
	StageAppend  = "append"
	StageIdle    = "idle"
)

// The reasons why a guard closes a connection, besides a limit and the end of a context.
var (
	// ErrForbidden is the cause when a session was asked to send a command that
	// its mode does not allow. No byte of it left.
	ErrForbidden = wire.Cause(wire.KindProtocol, "command is not allowed in a read-only session")
	// ErrClosed is the cause when the pool or session was closed.
	ErrClosed = wire.Cause(wire.KindClosed, "session is closed")

	errSilence  = wire.Cause(wire.KindTimeout, "server fell silent")
	errNotIMAP  = wire.Cause(wire.KindProtocol, "server answer is not IMAP")
	errUnasked  = fmt.Errorf("%w: answer to a command that was not sent", errNotIMAP)
	errBadWrite = wire.Cause(wire.KindProtocol, "command is malformed")
	errGaveUp   = wire.Cause(wire.KindProtocol, "answer could not be understood")
)

// errCharset is the cause when a server refused a SEARCH for its CHARSET, and the
// connection is lost with it.
var errCharset = errors.New("server does not know the charset")

// tooMuch is the cause when a server exceeded a limit: on a line, a literal, a string,
// nesting, bytes or answers.
func tooMuch(what string) error {
	return wire.Cause(wire.KindLimit, "server went over the limit on "+what)
}

// temporary are the response codes that promise a later attempt may work (RFC
// 9051 section 7.1).
var temporary = map[string]bool{"UNAVAILABLE": true, "INUSE": true, "LIMIT": true, "SERVERBUG": true, "CONTACTADMIN": true}

// refusal turns a server's NO or BAD into an Error.
func refusal(stage string, e *goimap.Error) *wire.Error {
	code := strings.ToUpper(wire.Clean(string(e.Code)))
	return &wire.Error{Stage: stage, Kind: wire.KindRefused, Code: code, Text: wire.Clean(e.Text), Permanent: !temporary[code]}
}

// impossible is the failure of a command that cannot be sent.
func impossible(stage string, err error) *wire.Error {
	return &wire.Error{Stage: stage, Kind: wire.KindRefused, Permanent: true, Err: err}
}

// Refusal returns the server's refusal of a command, or nil.
func Refusal(err error) *wire.Error {
	var w *wire.Error
	if errors.As(err, &w) && !w.OutOfStep {
		return w
	}
	return nil
}

// Refused reports whether the server refused a command.
func Refused(err error) bool { return Refusal(err) != nil }

// Unreadable reports whether an answer of the server could not be parsed or went over a
// bound, so that asking for less may help. The stage does not matter: commands leave
// together, and the first one waited for gets the failure.
func Unreadable(err error) bool {
	var w *wire.Error
	if !errors.As(err, &w) {
		return false
	}
	switch w.Stage {
	case wire.StageConnect, wire.StageTLS, wire.StageGreeting, wire.StageAuth:
		return false
	}
	return w.Kind == wire.KindProtocol || w.Kind == wire.KindLimit
}
