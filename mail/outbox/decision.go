package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
)

// Decision is what would happen to whom, and whether a person decides it: an entry of the outbox,
// or what a request would become as one. Whatever asks, shows or foresees an entry prints this
// value and decides nothing itself.
//
// The entry says what it answers (ReplyTo), why a person is asked (see Why), and with Digest what
// a yes stands for. HeaderFrom, To, CC, Subject, Body and Files are read from the bytes that
// leave, and not from the request. Recipients are the envelope's, whatever the header says.
type Decision struct {
	mail.Outgoing
	// Here tells whether the bytes are there: those of a message that ended are forgotten, and
	// those of one that is only foreseen are not kept. Body and Files are empty then.
	Here       bool
	HeaderFrom mail.Address // as the recipients see it
	Body       string       // the whole text
	Markdown   bool         // HTML that was made of exactly this text goes beside it
	HTML       string       // what a person sees of HTML that was not made of it; empty for none
	Files      []ShownFile  // all other parts

	// Step is what Approve would do with the entry now. Where it would do nothing, WhyNot says why,
	// in a sentence.
	Step   Step
	WhyNot string
	// New are recipients, none of them an own address, to whom no message of the account is known
	// to have gone before, as far back as the outbox reaches, see mail.KeepOutgoing. It is empty
	// where nothing would leave.
	New []string

	secrets codes.Found
	kept    string // the stored subject, in which codes are masked, where it is Coded
}

// Step is what Approve does with an entry.
type Step string

// The steps.
const (
	StepNone            Step = ""
	StepSend            Step = "send"
	StepSendAgain       Step = "send again" // it may have arrived already
	StepDelete          Step = "delete"
	StepDeleteRest      Step = "delete rest" // of the messages, some of which may be gone
	StepRun             Step = "run"         // a plan
	StepRunRest         Step = "run rest"    // of a plan that was begun
	StepUnsubscribe     Step = "unsubscribe"
	StepUnsubscribeRest Step = "unsubscribe rest" // of lists of which it is not known whether all were left
	StepFinish          Step = "finish"           // it was sent: its copy is filed, and its draft removed
)

// ShownFile is an attachment as it leaves.
type ShownFile struct {
	mail.FileName
	SHA256 string // of the decoded bytes, in hexadecimal
}

// Waits reports whether a person has to say yes before anything happens.
func (d *Decision) Waits() bool { return d.State == mail.OutboxWaiting }

// Why says in a clause what makes a person decide about an entry that waits.
func (d *Decision) Why() string {
	switch {
	case d.Kind == mail.OutboxDelete:
		return "a person decides about each deletion for good in " + d.Account
	case d.Kind == mail.OutboxUnsubscribe:
		return "a person decides about each list that " + d.Account + " leaves"
	case d.Plan != nil && d.Plan.Bound == 0:
		return "a person decides about each change of messages of " + d.Account
	case d.Plan != nil:
		return fmt.Sprintf("more than %d messages changed within ten minutes", d.Plan.Bound)
	}
	why := "mode approve: a person decides about each message of " + d.Account
	switch {
	case len(d.Asks) == 1 && d.Asks[0].InEveryMode():
		why = d.Asks[0].Sentence()
	case len(d.Asks) > 0:
		why = "mode reply: " + d.Asks[0].Sentence()
	}
	if d.Elsewhere && !slices.Contains(d.Asks[:min(1, len(d.Asks))], mail.AskElsewhere) {
		why += "; and it goes elsewhere than to the sender of the message that it answers, as that one asks"
	}
	return why
}

// Reasons are all that makes the entry wait, each a clause; none where the mode asks about each.
func (d *Decision) Reasons() (all []string) {
	for _, a := range d.Asks {
		all = append(all, a.Sentence())
	}
	return all
}

// next is what Approve does with an entry now, or why it does nothing.
func (b *Outbox) next(o mail.Operation, e *mail.Outgoing) (Step, error) {
	is, w := present(*e, b.now()), workOf(e.Kind)
	switch {
	case is.State == mail.OutboxAccepted && unfinished(&is):
		return StepFinish, nil
	case is.State == mail.OutboxAccepted:
		return StepNone, o.Conflict("The message was sent already.", mail.AdviceShowEntry).About(e.ID)
	case is.State != mail.OutboxWaiting && is.State != mail.OutboxQueued && is.State != mail.OutboxUnknown, is.Settled:
		return StepNone, notSent(o, &is)
	case busy(&is, b.now()):
		return StepNone, underWay(o, &is)
	case w != nil && is.State == mail.OutboxUnknown:
		return w.rest, nil
	case w != nil:
		return w.first, nil
	case is.State == mail.OutboxUnknown:
		return StepSendAgain, nil
	}
	return StepSend, nil
}

// Show returns an entry with its content. The error matches ErrNoOutgoing when the entry
// does not exist, and is KindConflict when its bytes do not match Digest.
func (b *Outbox) Show(ctx context.Context, id string) (*Decision, error) {
	const op = "outbox show"
	e, err := b.o.Store.Outgoing(ctx, id)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	d := &Decision{Outgoing: present(e, b.now()), Here: true}
	if d.Step, err = b.next(mail.Operation{Op: op, Account: e.Account}, &e); err != nil {
		d.WhyNot = reasonOf(err)
	}
	if w := workOf(e.Kind); w != nil {
		return d, w.unchanged(op, &e)
	}
	switch raw, err := b.bytes(ctx, op, &e); {
	case errors.Is(err, mail.ErrNoOutgoing):
		if d.Here = false; d.Step != StepFinish || outstanding(e.Sent) { // a draft is removed without them
			d.Step, d.WhyNot = StepNone, cmp.Or(d.WhyNot, "The message is not kept any more.")
		}
	case err != nil:
		return nil, err
	default:
		d.read(contentOf(raw))
	}
	if d.Step == StepSend || d.Step == StepSendAgain {
		if d.New, err = b.newTo(ctx, &e); err != nil {
			return nil, wrapStore(ctx, op, err)
		}
	}
	return d, nil
}

// newTo is Decision.New.
func (b *Outbox) newTo(ctx context.Context, e *mail.Outgoing) ([]string, error) {
	o := mail.Operation{Account: e.Account}
	_, policy, _ := o.LookUp(ctx, b.o.Directory) // nil where the account is gone
	unknown := map[string]bool{}
	for _, r := range e.Recipients {
		if !policy.Owns(r) {
			unknown[addressKey(r)] = true
		}
	}
	_, _, err := b.o.Store.ListOutgoing(ctx, mail.OutboxQuery{Account: e.Account, States: []mail.OutboxState{mail.OutboxAccepted}, Limit: 1, Only: func(o *mail.Outgoing) bool {
		for _, r := range o.Recipients {
			delete(unknown, addressKey(r))
		}
		return len(unknown) == 0 // which ends the search
	}})
	return slices.DeleteFunc(slices.Clone(e.Recipients), func(r string) bool { return !unknown[addressKey(r)] }), err
}

// read shows a message that compose has built, or that was a draft.
func (d *Decision) read(c *content) {
	d.secrets, d.kept = c.secrets(), d.Subject
	h := c.Header
	d.To, d.CC = h.Addresses("To"), h.Addresses("Cc")
	if from := h.Addresses("From"); len(from) == 1 {
		d.HeaderFrom = from[0]
	}
	d.Subject, d.Body, d.Markdown, d.HTML = h.Text("Subject"), strings.Join(c.texts, "\n"), c.markdown, c.html
	for _, f := range c.files {
		sum := sha256.Sum256(f.Content)
		d.Files = append(d.Files, ShownFile{FileName: mail.FileName{Name: f.Name, Type: f.Type, Size: int64(len(f.Content))}, SHA256: hex.EncodeToString(sum[:])})
	}
}

// Mask hides codes and links that log in from an agent, which sees its own entries. The
// person who decides sees them. Of an entry that is Coded it hides the whole text: beside every
// number that an agent wrote above it, the hidden one would be told.
func (d *Decision) Mask() {
	if d.Coded && d.Here {
		d.Subject, d.Body, d.HTML, d.Files = d.kept, codes.HiddenCode, "", nil
		d.To, d.CC = nameless(d.To), nameless(d.CC)
		for _, f := range d.Attachments {
			d.Files = append(d.Files, ShownFile{FileName: f})
		}
		return
	}
	mask(&d.Outgoing, d.secrets)
	d.Body, d.HTML = d.secrets.MaskLines(d.Body), d.secrets.MaskLines(d.HTML)
	for i := range d.Files {
		d.Files[i].Name = d.secrets.Mask(d.Files[i].Name)
	}
}
