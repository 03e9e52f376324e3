package commands

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// sendArgs are how a letter is sent.
type sendArgs struct {
	Key    string `json:"idempotency-key,omitempty" acli:"rare" jsonschema:"minLength=1,maxLength=128,pattern=^[!-~]*$,example=invoice-2026-0117" form:"must be ASCII letters, digits and signs without spaces" jsonschema_description:"Any name; with it nothing is sent twice"`
	DryRun bool   `json:"dry-run,omitempty" acli:"rare" jsonschema_description:"Check, send nothing"`
}

type mailSendArgs struct {
	composeArgs
	sendArgs
	Draft string `json:"draft,omitempty" acli:"value=ID,rare" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Draft to send as it stands"`
}

func (a *sendArgs) how() *sendArgs { return a }

// Validate checks that there is somebody to send to, or a draft that says so.
func (a *mailSendArgs) Validate() error {
	if a.Draft != "" {
		if len(a.To)+len(a.CC)+len(a.BCC)+len(a.Attach) > 0 || a.Subject+a.BodyFile+a.ReplyTo+a.Key+a.As+a.AttachFrom != "" || a.Body != nil || a.Markdown {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "A draft is sent as it stands: nothing of a message can be given with --draft.",
				Hint: "'mail draft --append-to' adds text to it. It needs no --idempotency-key: the same draft never leaves twice."}
		}
		return a.about("--draft", a.Draft)
	}
	if len(a.To)+len(a.CC)+len(a.BCC) == 0 {
		return noRecipient
	}
	return a.composeArgs.Validate()
}

// sendTime is the default time limit of a send, in seconds: a caller that gives up after
// the last byte does not know whether the message left, and servers may take minutes then
// (RFC 5321 section 4.5.3.2.6).
const sendTime = 300

// MailSendResult answers mail send.
type MailSendResult struct {
	Sending
	Replayed      bool               `json:"replayed,omitempty"`
	DryRun        bool               `json:"dry_run,omitempty"`
	NeedsApproval bool               `json:"needs_approval,omitempty"` // the real send would wait for a person
	Issues        []answer.Issue     `json:"issues,omitempty"`         // what went wrong after it was sent
	Asks          []string           `json:"asks,omitempty"`           // why it would, in mode reply
	Hint          string             `json:"hint,omitempty" acli:"untrusted" jsonschema_description:"Why it would wait, and what may not be expected of an answer's recipients"`
	NextAction    *answer.NextAction `json:"next_action,omitempty"`

	to []string // whom a reply or a draft went to, in a compact answer
}

// sendingBrief is a message of the outbox and what happened to it. To is there where the
// command did not name them.
type sendingBrief struct {
	ID     string   `json:"id,omitempty"`
	Result string   `json:"result"`
	To     []string `json:"to,omitempty" acli:"untrusted"`
	answer.Rest
}

// Brief says what happened, or in a dry run would.
func (r *MailSendResult) Brief() sendingBrief {
	b := sendingBrief{r.ID, r.Summary(), r.to, (&answer.Outcome{Issues: r.Issues}).Rest(r.NextAction)}
	b.Hint = r.Hint
	return b
}

func mailSend(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "mail send",
		Also:    []string{"send"},
		Summary: "Send, once",
		Details: "One recipient outside the outbound list refuses it. " +
			"No answer: repeat it with the same --idempotency-key. Long ones: 'mail draft', then --draft.",
		Effect:   discovery.Send,
		Does:     "send",
		Needed:   []string{"to", "body"},
		Rare:     []string{"reply-to"},
		TooLong:  inPieces,
		Timeout:  sendTime,
		Examples: []string{"mail send --to ann@example.org --subject Lunch --body 'Shall we say noon?'", "mail send --draft Drafts/1"},
	}, func(ctx context.Context, call *discovery.Call, args *mailSendArgs) (*MailSendResult, error) {
		return d.send(ctx, call, args)
	})
}

func (a *mailSendArgs) request(ctx context.Context, d *Deps, call *discovery.Call) (account string, r outbox.Request, err error) {
	if account, err = d.composeIn(ctx, call, &a.composeArgs); err != nil {
		return "", r, err
	}
	if a.Draft != "" {
		call.Target, r.Stored = a.parent.String(), a.parent
		return account, r, nil
	}
	r.Draft, err = d.letter(ctx, call, account, &a.recipientArgs, &a.textArgs)
	r.Draft.Subject, r.Draft.ReplyTo = a.Subject, a.parent
	return account, r, err
}

// sending are the arguments of a command that sends.
type sending interface {
	how() *sendArgs
	// request is what the command asks the outbox for, and of which account.
	request(ctx context.Context, d *Deps, call *discovery.Call) (account string, r outbox.Request, err error)
}

// send runs a command that sends, goes on with it when a person was asked, or rehearses it.
func (d *Deps) send(ctx context.Context, call *discovery.Call, args sending) (*MailSendResult, error) {
	how := args.how()
	keyed := how.Key != ""
	if call.Reply != nil {
		o, err := d.decided(ctx, call, keyed)
		if err != nil {
			return nil, err
		}
		return sent(o)
	}
	account, r, err := args.request(ctx, d, call)
	if err != nil {
		return nil, err
	}
	r.Key, r.Principal = how.Key, call.Principal
	var o *mail.Outgoing
	var result *MailSendResult
	if how.DryRun {
		var foreseen *outbox.Decision
		foreseen, err = d.Outbox.Foresee(ctx, account, r, false)
		o, result = &foreseen.Outgoing, rehearsed(foreseen, keyed)
	} else if o, err = d.Outbox.Send(ctx, account, r); err == nil {
		noteOutgoing(call, o)
		if o.State == mail.OutboxWaiting {
			return nil, d.waits(ctx, call, o, keyed)
		}
		if result, err = sent(o); err != nil {
			return nil, err
		}
	}
	if refused, ok := errors.AsType[*mail.SendRefused](err); ok && r.Draft.ToSender && len(refused.Recipients) > 0 {
		call.Target += " " + recipientsTarget(refused.Recipients)
	}
	if err != nil {
		return nil, failedSend(call, o, err)
	}
	if r.Draft.ToSender || r.Stored != nil {
		result.to = result.Recipients
	}
	return result, nil
}

// rehearsed is the answer to a dry run. A state, and names that the real send makes, are left
// out.
func rehearsed(o *outbox.Decision, keyed bool) *MailSendResult {
	r := &MailSendResult{Sending: sendingOf(&o.Outgoing), DryRun: true, Replayed: o.Replayed, Hint: answerHint(o.Elsewhere, o.LeftOut)}
	if !o.Replayed {
		r.NeedsApproval, r.Asks = o.Waits(), o.Reasons()
		if len(o.Asks) > 0 {
			r.Hint = strings.TrimSpace("It would wait" + since(o.Asks) + ". " + r.Hint)
		}
		r.State, r.SentCopy = "", ""
		if !keyed {
			r.InternetMessageID = ""
		}
	}
	return r
}

// noteOutgoing notes for the audit entry which message it is about.
func noteOutgoing(call *discovery.Call, o *mail.Outgoing) {
	call.Account, call.Target = o.Account, "outbox "+o.ID+" "
	switch o.Kind {
	case mail.OutboxDelete:
		call.Target += deletionTitle(o)
	case mail.OutboxUnsubscribe:
		call.Target += unsubscriptionTitle(o)
	case mail.OutboxPlan:
		call.Target += planTitle(o.Plan)
	default:
		call.Target += recipientsTarget(o.Recipients)
	}
	if o.Unasked != "" {
		call.Target += " unasked"
	}
}

// since says why a person is asked in mode reply; it is empty in another mode.
func since(asks []mail.Ask) string {
	if len(asks) == 0 {
		return ""
	}
	return ", since " + asks[0].Sentence()
}

// waits is the answer to a send that a person has to decide: a question where one
// can be asked, else that the message waits.
func (d *Deps) waits(ctx context.Context, call *discovery.Call, o *mail.Outgoing, keyed bool) error {
	f := approvalRequired(o, keyed)
	switch {
	case call.Principal == mail.PersonPrincipal && !call.Admin:
		f.Hint = "'postern approve' shows it and asks."
		f.Examples = []string{"outbox show " + o.ID}
	case call.Admin:
		f.Hint = fmt.Sprintf("On a terminal 'postern approve' shows it and asks; elsewhere 'outbox show %s' shows it, with the code that approves it.", o.ID)
		f.Examples = []string{"outbox show " + o.ID}
	}
	// A person is asked once about a message, so that repeating the command until one
	// click goes wrong leads nowhere.
	if !call.CanAsk || o.Replayed {
		return f
	}
	// Whatever fails from here on, the message waits, and that is the answer.
	if may, err := d.mayAsk(ctx, call); err != nil || !may {
		return f
	}
	shown, err := d.Outbox.Show(ctx, o.ID)
	if err != nil || shown.Digest != o.Digest || shown.State != mail.OutboxWaiting {
		return f
	}
	text, ok := questionText(shown)
	if !ok {
		f.Message += " It cannot be shown in a question, because it is too long or holds HTML or Markdown."
		return f
	}
	return &discovery.Question{Text: text, State: questionState(&shown.Outgoing), Otherwise: f}
}

// mayAsk reports whether the person is asked where the command came from. A client is what
// the setting trusts; the administrator at the prompt needs no trust.
func (d *Deps) mayAsk(ctx context.Context, call *discovery.Call) (bool, error) {
	if call.Admin {
		return true, nil
	}
	value, err := d.setting(ctx, admin.AskSetting)
	return value == "on", err
}

// questionState finds the entry that a question was about, as it was then: one yes is for one
// attempt. The client can read it, so the digest is not in it.
func questionState(o *mail.Outgoing) string {
	sum := sha256.Sum256([]byte(o.Digest))
	return fmt.Sprintf("%s %x %d", o.ID, sum[:16], o.Attempts)
}

// decided goes on with what a person was asked about, and returns the entry with the outcome.
// What happens is what they were shown: the entry with that digest. It never makes a new entry,
// so the same answer twice does it once.
func (d *Deps) decided(ctx context.Context, call *discovery.Call, keyed bool) (*mail.Outgoing, error) {
	id, rest, _ := strings.Cut(call.Reply.State, " ")
	call.Target = "outbox " + id
	shown, err := d.Outbox.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	o := &shown.Outgoing
	noteOutgoing(call, o)
	may, err := d.mayAsk(ctx, call)
	was, of, _ := strings.Cut(rest, " ")
	is, now, _ := strings.Cut(strings.TrimPrefix(questionState(o), id+" "), " ")
	switch {
	case err != nil:
		return nil, err
	case o.Principal != call.Principal || was != is:
		return nil, mail.ErrNoOutgoing // the state is authentic, so this is another vault
	case o.State != mail.OutboxWaiting:
		o.Replayed = true
		return o, nil
	case call.Reply.Verdict == discovery.Declined:
		if o, err = d.Outbox.Reject(ctx, id, call.Reply.By, ""); err != nil {
			return d.overtaken(ctx, id, err)
		}
		return o, nil
	case call.Reply.Verdict != discovery.Accepted || !may || of != now:
		return nil, approvalRequired(o, keyed) // one yes is for one attempt
	}
	if o, err = d.Outbox.Approve(ctx, id, o.Digest, call.Reply.By); err != nil {
		return d.overtaken(ctx, id, failedSend(call, o, err))
	}
	return o, nil
}

// overtaken answers for a message that somebody else decided or sent at the same moment,
// with its state.
func (d *Deps) overtaken(ctx context.Context, id string, err error) (*mail.Outgoing, error) {
	var m *mail.Error
	if !errors.As(err, &m) || m.Kind != mail.KindConflict {
		return nil, err
	}
	shown, showErr := d.Outbox.Show(ctx, id)
	if showErr != nil || shown.State == mail.OutboxWaiting {
		return nil, err
	}
	shown.Replayed = true
	return &shown.Outgoing, nil
}

// failedSend adds to a failure to send the state of the message, if there is one.
func failedSend(call *discovery.Call, o *mail.Outgoing, err error) error {
	if o == nil || o.ID == "" {
		return err
	}
	noteOutgoing(call, o)
	known := answer.Faults(err)
	if known == nil {
		return err
	}
	f := *known
	f.Err = err
	if f.Code == discovery.Conflict {
		return &f // somebody else has it, and may be sending it
	}
	switch {
	case o.Kind == mail.OutboxDelete:
		f.Message += fmt.Sprintf(" This time nothing was deleted; the outbox shows the deletion as %s.", o.ID)
	case o.Kind == mail.OutboxUnsubscribe:
		f.Message += fmt.Sprintf(" Nobody was asked; the outbox shows it as %s.", o.ID)
	case o.Kind == mail.OutboxPlan:
		f.Message += fmt.Sprintf(" This time nothing was changed; the outbox shows the plan as %s.", o.ID)
	case o.State == mail.OutboxWaiting:
		f.Message += fmt.Sprintf(" The message was not sent; it still waits in the outbox as %s.", o.ID)
	case o.State == mail.OutboxQueued:
		f.Message += fmt.Sprintf(" The message was not sent; it is kept in the outbox as %s.", o.ID)
		f.Hint = strings.TrimSuffix(f.Hint, ".") + "; the same command with the same --idempotency-key goes on with it."
		if o.Draft != "" {
			f.Hint = strings.Replace(f.Hint, " with the same --idempotency-key", "", 1)
		}
	case o.State == mail.OutboxRefused:
		f.Message += fmt.Sprintf(" The message was not sent; the outbox shows it as %s.", o.ID)
	}
	f.Examples = append(f.Examples, "outbox show "+o.ID)
	return &f
}

// sent is the answer about a message that does not wait: a success when the server
// took it, and for any other end a failure that says what is true.
func sent(o *mail.Outgoing) (*MailSendResult, error) {
	if o.State == mail.OutboxWaiting {
		return nil, approvalRequired(o, false)
	}
	if o.State != mail.OutboxAccepted {
		return nil, notSent(o)
	}
	r := &MailSendResult{Sending: sendingOf(o), Replayed: o.Replayed, Hint: answerHint(o.Elsewhere, o.LeftOut)}
	for _, i := range []*mail.Issue{o.Unmarked, o.DraftLeft} {
		if i != nil {
			r.Issues = append(r.Issues, answer.OutcomeOf([]mail.Issue{*i}, true).Issues...)
		}
	}
	if o.Sent == mail.SentFailed {
		r.NextAction = answer.Next("The message was sent, but its copy could not be filed: see why", "outbox", "show", o.ID)
	}
	return r, nil
}

// approvalRequired says that the message waits, and that a person decides. How they do is
// theirs to know: there is nothing in it to paste.
func approvalRequired(o *mail.Outgoing, keyed bool) *discovery.Fault {
	if o.Kind == mail.OutboxDelete {
		return &discovery.Fault{Code: discovery.ApprovalRequired,
			Message: fmt.Sprintf("Nothing was deleted yet: the deletion waits in the outbox as %s until a person decides.", o.ID),
			Hint:    fmt.Sprintf("Tell the person that %s waits for them, and go on with something else. It is kept for %d days; asking for the same again queues no second one.", o.ID, int(mail.DeletionWaits.Hours()/24))}
	}
	if o.Kind == mail.OutboxUnsubscribe {
		return &discovery.Fault{Code: discovery.ApprovalRequired,
			Message: fmt.Sprintf("No list was left yet: it waits in the outbox as %s until a person decides.", o.ID),
			Hint:    fmt.Sprintf("Tell the person that %s waits for them, and go on with something else. It is kept for %d days; asking for the same again queues no second one.", o.ID, int(mail.DeletionWaits.Hours()/24))}
	}
	if o.Kind == mail.OutboxPlan {
		f := &discovery.Fault{Code: discovery.ApprovalRequired,
			Message: fmt.Sprintf("Nothing was changed yet: it waits in the outbox as %s until a person decides, since more than %s changed within ten minutes.", o.ID, answer.Count(o.Plan.Bound, "message is", "messages are")),
			Hint:    fmt.Sprintf("Tell the person that %s waits for them, and go on with something else. It is kept for %d days; asking for the same again queues no second one.", o.ID, int(mail.DeletionWaits.Hours()/24))}
		if o.Plan.Held {
			f.Hint += " For more messages than these 'mail plan' asks once for all of them."
		}
		return f
	}
	retry := "sending it again would queue a second one"
	switch {
	case o.Draft != "":
		retry = "sending the same draft again queues no second one"
	case keyed:
		retry = "the same --idempotency-key queues no second one"
	}
	return &discovery.Fault{Code: discovery.ApprovalRequired,
		Message: strings.TrimSpace(fmt.Sprintf("Nothing was sent yet: the message waits in the outbox as %s until a person decides%s. ", o.ID, since(o.Asks)) + answerHint(o.Elsewhere, o.LeftOut)),
		Hint:    fmt.Sprintf("Tell the person that %s waits for them, and go on with something else. It is kept; %s.", o.ID, retry)}
}

func rejectedFault(o *mail.Outgoing) *discovery.Fault {
	why := ""
	if o.Reason != "" {
		why = " The person said: " + o.Reason
	}
	if said := map[mail.OutboxKind]string{mail.OutboxDelete: "deletion %s. Nothing was deleted.%s", mail.OutboxPlan: "change %s. Nothing was changed.%s", mail.OutboxUnsubscribe: "unsubscription %s. Nobody was asked.%s"}[o.Kind]; said != "" {
		return &discovery.Fault{Code: discovery.PermissionDenied, Reason: "declined",
			Message: fmt.Sprintf("A person decided against the "+said, o.ID, why), Hint: "Do not ask for it again unless the person wants it."}
	}
	return &discovery.Fault{Code: discovery.PermissionDenied, Reason: "declined",
		Message: fmt.Sprintf("A person decided against the message %s. It was not sent and will not be.%s", o.ID, why),
		Hint:    "Do not send it again unless the person asks for it."}
}

// notSent is the fault of a message that the server did not take, or may not have taken.
func notSent(o *mail.Outgoing) *discovery.Fault {
	f := &discovery.Fault{Code: discovery.ExecutionError, Examples: []string{"outbox show " + o.ID}}
	reason := ""
	if o.Reason != "" {
		reason = " " + strings.TrimSuffix(plain.Clip(answer.Capital(o.Reason), 500), ".") + "."
	}
	switch o.State {
	case mail.OutboxUnknown:
		f.Message = fmt.Sprintf("It is not known whether the message %s left: the connection ended before the server had answered.%s", o.ID, reason)
		f.Hint = "Look for it in the folder of sent messages, or ask the recipients, before anybody sends it again; it is never sent again by itself."
	case mail.OutboxRefused:
		f.Message = fmt.Sprintf("The message %s was not sent.%s", o.ID, reason)
		f.Hint = "Change what the server names, and send it again."
		if o.Temporary {
			f.Code, f.Hint = discovery.ConnectionFailed, "Nothing was sent; send it again later."
		}
	case mail.OutboxCancelled:
		f.Code, f.Message = discovery.Conflict, fmt.Sprintf("The message %s was cancelled before it left.", o.ID)
		f.Hint = "To send it after all, send it again, with another --idempotency-key if it had one."
	case mail.OutboxRejected:
		return rejectedFault(o)
	case mail.OutboxQueued:
		f.Code, f.Message = discovery.Conflict, fmt.Sprintf("The message %s is being sent at this moment, or waits to be.%s", o.ID, reason)
		f.Hint = "Check its state with 'outbox show' before you send anything again."
	default:
		f.Message, f.Hint = fmt.Sprintf("The message %s is in a state that this version does not know.", o.ID), "See it with 'outbox show'."
	}
	return f
}

// Summary implements discovery.Summarizer.
func (r *MailSendResult) Summary() string {
	to := answer.Count(len(r.Recipients), "recipient", "recipients")
	switch {
	case r.DryRun && r.Replayed:
		return "Nothing was sent; the key stands for a message that is " + string(r.State) + " already"
	case r.NeedsApproval:
		return "Nothing was sent; it would wait for a person, and then go to " + to
	case r.DryRun:
		return "Nothing was sent; it would go to " + to
	case r.Replayed:
		return "It was sent before, and was not sent again"
	}
	return "Sent to " + to
}

var noRecipient = &discovery.Fault{Code: discovery.ValidationError, Message: "There is no recipient.", Hint: "Name at least one with --to, --cc or --bcc."}
