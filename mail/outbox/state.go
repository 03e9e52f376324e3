package outbox

import (
	"errors"
	"time"

	"github.com/postern-mail/postern/mail"
)

// The life of an entry. L is a lease: Attempt names the one attempt that may send
// the entry, until Until. Every row is one ChangeOutgoing, which nobody else comes
// between.
//
//	before          what happens                              after
//	-               Send, mode approve                        waiting
//	-               Send, mode RW; mode reply, unasked        queued L
//	-               Send, mode reply, with a reason to ask    waiting
//	queued          Send with the same key, mode RW; Approve  queued L
//	queued unasked  Send with the same key, mode reply        queued L
//	queued          Send with the same key, another mode      waiting
//	waiting         Approve                                   waiting L
//	unknown         Approve                                   unknown L
//	queued L        the policy asks by now                    waiting
//	any of these L  the gate: the message is about to leave   unknown L
//	any of these L  nothing left; may work later              waiting: waiting, unknown: unknown,
//	                                                          queued: with a key queued, else refused
//	any of these L  nothing left; refused for good            unknown: unknown, else refused
//	unknown L       no answer came to the last byte           unknown
//	anything        the server took it                        accepted, L until the copy is settled and the draft gone
//	waiting queued  Cancel, with and without L                cancelled
//	waiting         Reject, with and without L                rejected
//	unknown         Reject, no attempt under way              unknown, settled
//	accepted        copy and draft are tried (again): L       accepted
//
// What is no message to send, see work.go, has the same life without the wire: it is claimed and the
// gate is opened in one change, and its outcome is done, partly, refused, unknown, or what it was
// before where nothing was tried. A plan besides:
//
//	-               Plan                                      queued
//	-               HoldChange                                waiting
//	queued unknown  Run, beyond what goes unasked             waiting
//	queued unknown  Run, within it; approved before           unknown L
//	unknown L       the next piece begins                     unknown L, with what became of those before
//	unknown L       a piece would go beyond what goes unasked waiting
//	unknown L       it is cut off                             unknown
//
// Nothing runs a queued plan by itself, and nobody one that is queued longer than PlanWaits.
//
// What holds:
//
//  1. Bytes of a message leave only behind the gate, and the gate opens only for
//     the attempt that the entry names at that moment, in the transaction that
//     makes the entry unknown. A claim needs an entry without a living lease and
//     puts its own name there. So of two attempts that believe they have the
//     entry, because one was slow and its lease ran out, the gate lets one pass.
//     Clocks decide how soon another may try, never whether two may.
//  2. An entry at rest in waiting or queued, with a lease or without, has not
//     left: an attempt that crashed did so before the gate. It may be sent anew.
//  3. An entry in unknown may have left. Nothing but a person's Approve sends it
//     again, and that only when no attempt can be under way any more. It never
//     becomes anything that would be sent by itself: a second attempt that fails
//     leaves it unknown, since the first may have arrived.
//  4. accepted is the last word, whichever attempt says it: an attempt that lost its lease
//     behind the gate still says so, and stops the one that took over.
//  5. Nothing that waits for a person leaves otherwise than through Approve with
//     the digest of exactly its bytes and envelope.
//  6. What no person approved leaves only while the policy, looked at right before the wire,
//     lets it: in mode RW, and in mode reply as far as Unasked is the digest of exactly its
//     bytes and envelope. Only the step that adds an entry sets that.
//  7. Cancelled and rejected close the gate: an attempt under way finds its name
//     gone.
//  8. A plan that is unknown goes on by Run, too, since that changes nothing twice: how far it is
//     is kept before each piece, what has left its folder is left alone, and a copy that may have been
//     made is not made again: the context of an attempt ends before its lease. Approval is kept in Decided, and stands for the rest.
//  9. What of a plan no person approved is counted by the step that begins each piece, so that
//     no sequence of plans and commands passes the bound.

// attempt is one try to send an entry.
type attempt struct {
	id   string
	from mail.OutboxState // of the entry when it was claimed
}

var (
	// errNotHeld stops an attempt at the gate when it no longer holds the entry.
	errNotHeld = errors.New("the entry was taken back or taken over")
	// errBusy refuses a claim while another attempt has the entry.
	errBusy = errors.New("another attempt is under way")
	// errOver refuses to claim an entry that has ended.
	errOver = errors.New("the entry has come to its end")
)

// busy reports whether an attempt may be under way.
func busy(e *mail.Outgoing, now time.Time) bool { return e.Attempt != "" && now.Before(e.Until) }

func release(e *mail.Outgoing, now time.Time) {
	e.Attempt, e.Until, e.Changed = "", time.Time{}, now
}

// claim takes the lease.
func claim(e *mail.Outgoing, id string, now, until time.Time) (attempt, error) {
	if busy(e, now) {
		return attempt{}, errBusy
	}
	switch e.State {
	case mail.OutboxWaiting, mail.OutboxQueued, mail.OutboxUnknown:
	default:
		return attempt{}, errOver
	}
	if e.Settled {
		return attempt{}, errOver
	}
	e.Attempt, e.Until, e.Changed = id, until, now
	e.Attempts++
	return attempt{id: id, from: e.State}, nil
}

// pass is the gate.
func pass(e *mail.Outgoing, a attempt, now time.Time) error {
	if e.Attempt != a.id || e.Ended() {
		return errNotHeld
	}
	e.State, e.Changed = mail.OutboxUnknown, now
	return nil
}

// outcome is the outcome of an attempt.
type outcome struct {
	result    result
	code      int
	reason    string // of what is not accepted
	temporary bool   // of notSent: the same may work later
	stays     bool   // of notSent: it was no failure of the message, which stays what it was
	waits     bool   // of notSent: the policy asks a person by now, for these reasons
	asks      []mail.Ask
}

// result is what an attempt knows about the message.
type result int

// The results. The zero value claims nothing.
const (
	resultUnknown  result = iota // it may have left
	resultNotSent                // nothing left, or the server refused it
	resultAccepted               // the server has it
)

// conclude records an outcome. sent is the state of the copy of an accepted message; with
// SentPending, or a draft to remove, the attempt keeps the lease for that.
func conclude(e *mail.Outgoing, a attempt, o outcome, sent mail.SentState, now time.Time) (drop bool, err error) {
	if o.result == resultAccepted {
		if e.State == mail.OutboxAccepted {
			return false, nil
		}
		mine := e.Attempt == a.id
		until := e.Until
		release(e, now)
		e.State, e.Code, e.Reason, e.Temporary, e.Sent = mail.OutboxAccepted, o.code, "", false, sent
		if (sent == mail.SentPending || e.Draft != "") && mine {
			e.Attempt, e.Until = a.id, until
		}
		return sent != mail.SentPending, nil
	}
	if e.Attempt != a.id || e.Ended() {
		return false, errNotHeld
	}
	release(e, now)
	e.Code, e.Reason, e.Temporary = o.code, o.reason, false
	switch {
	case o.result == resultUnknown || a.from == mail.OutboxUnknown:
		e.State = mail.OutboxUnknown
		return false, nil
	case o.waits:
		e.Wait(o.asks...)
	case a.from == mail.OutboxWaiting && (o.temporary || o.stays):
		e.State, e.Temporary, e.Decided = mail.OutboxWaiting, o.temporary, ""
	case a.from == mail.OutboxQueued && e.Key != "" && (o.temporary || o.stays):
		e.State, e.Temporary, e.Decided = mail.OutboxQueued, o.temporary, ""
	default:
		e.State, e.Temporary = mail.OutboxRefused, o.temporary
	}
	return false, nil
}
