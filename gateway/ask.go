package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// A command may need a person's word before it goes on (discovery.Question). The
// gateway keeps nothing of such a command: its Answer carries the question and a
// token, and a Request with the Reply runs the command string again, so that the person
// may take minutes without holding up a deadline, a place in line or memory.

// AskTime is how long a question can be answered.
const AskTime = 10 * time.Minute

// PersonViaClient names in records the person who answered a question. The client says that
// it was a person; the gateway cannot know.
const PersonViaClient = "person via client"

// Asked is a question that a person has to answer.
type Asked struct {
	Text string // what to show, see discovery.Question

	// State goes back with the Reply. It is bound to the principal, the
	// command string and AskTime, and good in this process alone.
	State string
}

// person is the name in records of the person who answered a question of the principal's.
// For a principal with a Scope it names the principal too.
func (p Principal) person() string {
	if p.Scope == nil {
		return PersonViaClient
	}
	return PersonViaClient + " of " + p.Name
}

// mayAsk reports whether the command can ask its question: only once, only when the command
// string is known, since it has to come back with the answer, and not for an Unasked
// principal.
func (x *execution) mayAsk() bool {
	return x.CanAsk && x.reply == nil && x.Line != "" && !x.Principal.Unasked
}

// The reasons that the audit log gives where a question was asked.
const (
	reasonAsked       = "asked"
	reasonAccepted    = "accepted"
	reasonNotAnswered = "not_answered"
	reasonForged      = "forged_answer"
)

// openReply takes the reply of a request for the command that the question was about, or
// returns why not.
func (x *execution) openReply(ctx context.Context) *discovery.Fault {
	inner, late, err := x.gateway.openState(ctx, x.Principal, x.Line, x.Reply.State)
	if err == nil && x.Principal.Unasked {
		err = errors.New("this principal cannot be asked")
	}
	if err != nil {
		return &discovery.Fault{Code: discovery.PermissionDenied, Reason: reasonForged, Err: err,
			Message: "The answer does not belong to a question about this command. Nothing was done.",
			Hint:    "Check which messages wait for a person before you run the command again."}
	}
	x.reply = &discovery.Reply{State: inner, Verdict: x.Reply.Verdict, By: x.Principal.person()}
	if late {
		x.reply.Verdict = discovery.Unanswered
	}
	return nil
}

// question takes the question out of what a command returned, when there is one.
// Where it cannot be asked, or has been, the command's answer is the one it gives
// for that.
func (x *execution) question(ctx context.Context, err error) error {
	var q *discovery.Question
	if !errors.As(err, &q) {
		return err
	}
	if x.mayAsk() {
		x.asked = &Asked{Text: q.Text, State: x.gateway.sealState(ctx, x.Principal, x.Line, q.State)}
	}
	return q.Otherwise
}

// attribute says in the audit entry that somebody was asked, or who answered.
func (x *execution) attribute(e *AuditEntry) {
	switch {
	case x.asked != nil:
		e.Allowed, e.Reason = true, reasonAsked
	case x.reply == nil:
	case x.reply.Verdict == discovery.Unanswered:
		if e.Reason == "" || e.Reason == notStarted { // a call that was cancelled meanwhile does not start again
			e.Allowed, e.Reason = true, reasonNotAnswered
		}
	default:
		e.Principal = x.reply.By
		if e.Reason == "" && x.reply.Verdict == discovery.Accepted {
			e.Reason = reasonAccepted
		}
	}
}

// sealState makes the token that carries a question's state through the client.
func (g *Gateway) sealState(ctx context.Context, p Principal, line, inner string) string {
	b := make([]byte, sha256.Size+8, sha256.Size+8+len(inner))
	binary.BigEndian.PutUint64(b[sha256.Size:], uint64(g.o.Now().Add(AskTime).UnixMilli()))
	b = append(b, inner...)
	copy(b, g.stateMAC(ctx, p, line, b[sha256.Size:]))
	return base64.RawURLEncoding.EncodeToString(b)
}

// openState returns what sealState was given. late means that its time is over.
func (g *Gateway) openState(ctx context.Context, p Principal, line, state string) (inner string, late bool, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || len(b) < sha256.Size+8 {
		return "", false, errors.New("the state is not a token")
	}
	sealed := b[sha256.Size:]
	if !hmac.Equal(b[:sha256.Size], g.stateMAC(ctx, p, line, sealed)) {
		return "", false, errors.New("the state is not authentic")
	}
	until := time.UnixMilli(int64(binary.BigEndian.Uint64(sealed)))
	return string(sealed[8:]), !g.o.Now().Before(until), nil
}

// stateMAC covers everything that a token is bound to. The parts are quoted, so that
// different parts never give the same bytes.
func (g *Gateway) stateMAC(ctx context.Context, p Principal, line string, sealed []byte) []byte {
	key := g.stateKey[:]
	if g.o.StateKey != nil {
		if shared, err := g.o.StateKey(g.o.Context(ctx, p)); err == nil {
			key = shared
		}
	}
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "question 1 admin %t %q %q %q", p.admin(), p.Name, line, sealed)
	return m.Sum(nil)
}

// newStateKey is the key of a process that has none which others have, see Options.StateKey.
func newStateKey() (key [32]byte) {
	_, _ = rand.Read(key[:]) // it never fails
	return key
}
