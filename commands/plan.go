package commands

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// Plans, and changes about which a person decides first, stand in the outbox beside messages to
// send, and are shown, approved and refused by the same commands.

// doing are the words for what is done to messages: # is how many they are, > what the folder or
// the flags are. like is the command that does the same to messages that are named: who may not run
// it may not plan it.
var doing = map[mail.Doing]struct{ do, done, like string }{
	mail.DoTrash:    {"put # into the trash", "# put into the trash", "mail trash"},
	mail.DoArchive:  {"put # into the archive", "# put into the archive", "mail move"},
	mail.DoMove:     {"move # to >", "# moved to >", "mail move"},
	mail.DoCopy:     {"copy # to >", "# copied to >", "mail copy"},
	mail.DoFlags:    {"change the flags of #: >", "the flags of # changed: >", "mail flags"},
	mail.DoMarkRead: {"mark # as read", "# marked as read", "mail mark-read"},
	leave:           {like: "mail unsubscribe"},
}

// sentence puts an action into words, of do or done in doing.
func sentence(words string, a mail.Action, n int) string {
	about := a.To
	for _, f := range a.Add {
		about += " +" + strings.TrimPrefix(f, `\`)
	}
	for _, f := range a.Remove {
		about += " -" + strings.TrimPrefix(f, `\`)
	}
	return strings.NewReplacer("#", answer.Count(n, "message", "messages"), ">", strings.TrimSpace(about)).Replace(words)
}

// planTitle names a plan in one line.
func planTitle(p *mail.Plan) string { return sentence(doing[p.Do].do, p.Action, p.Count) }

// PlanShown is what a plan would do, and to which messages.
type PlanShown struct {
	Does         string        `json:"does" acli:"untrusted"` // it names folders
	Messages     int           `json:"messages"`
	Folders      []PlanCount   `json:"folders"`
	OtherFolders int           `json:"other_folders,omitempty"`
	Oldest       string        `json:"oldest,omitempty" jsonschema:"format=date-time"`
	Newest       string        `json:"newest,omitempty" jsonschema:"format=date-time"`
	Senders      []PlanCount   `json:"senders"`
	OtherSenders int           `json:"other_senders,omitempty"`
	NotBulk      string        `json:"not_bulk,omitempty" jsonschema_description:"What among them is no bulk mail, and why"`
	Examples     []PlanExample `json:"examples"`
	Done         int           `json:"done,omitempty"`
	Gone         int           `json:"gone,omitempty" jsonschema_description:"Messages that left their folder since, and were left alone"`
	Left         int           `json:"left,omitempty" jsonschema_description:"Messages that are still as they were"`
}

// PlanCount is how many of the messages are of one sender or folder.
type PlanCount struct {
	Name     string `json:"name" acli:"untrusted"`
	Messages int    `json:"messages"`
}

// PlanExample is one of the messages, as it was shown when the plan was made.
type PlanExample struct {
	ID      string `json:"id"`
	Date    string `json:"date"`
	From    string `json:"from" acli:"untrusted"`
	Subject string `json:"subject" acli:"untrusted"`
	Marks   string `json:"marks"` // why it is no bulk mail
}

// shownPlan is all of a plan. The ids of the examples are long.
func shownPlan(p *mail.Plan) *PlanShown {
	s := &PlanShown{Does: planTitle(p), Messages: p.Count, OtherFolders: p.OtherFolders, Oldest: answer.UTC(p.Oldest), Newest: answer.UTC(p.Newest), OtherSenders: p.OtherSenders,
		NotBulk: notBulk(&p.Personal), Done: p.Outcome.Done, Gone: p.Outcome.Gone, Left: p.Outcome.Left}
	s.Folders = answer.Each(p.Folders, func(f *mail.PlanFolder) PlanCount { return PlanCount{f.Name, f.Count} })
	s.Senders = answer.Each(p.Senders, func(f *mail.PlanSender) PlanCount { return PlanCount{f.Address.String(), f.Count} })
	s.Examples = answer.Each(p.Examples, func(m *mail.PlanMessage) PlanExample {
		return PlanExample{m.ID, answer.UTC(m.Date), m.From.String(), m.Subject, strings.Join(m.Marks, " ")}
	})
	return s
}

// notBulk says what among the messages of a plan is no bulk mail; empty for nothing.
func notBulk(p *mail.Personal) string {
	var parts []string
	for _, is := range []struct {
		n    int
		what string
	}{{p.Flagged, "flagged"}, {p.Answered, "answered"}, {p.Known, "from people written to before"}, {p.Attachments, "with attachments"}, {p.Unlisted, "without the marks of a list"}} {
		if is.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", is.n, is.what))
		}
	}
	return strings.Join(parts, ", ")
}

// planBrief is a plan in a compact answer.
type planBrief struct {
	Does     string                        `json:"does,omitempty" acli:"untrusted"`
	In       string                        `json:"in,omitempty" acli:"untrusted"`
	From     *discovery.Table[planSender]  `json:"from,omitempty"`
	Dates    string                        `json:"dates,omitempty"`
	NotBulk  string                        `json:"not_bulk,omitempty"`
	Examples *discovery.Table[PlanExample] `json:"examples,omitempty"`
}

type planSender struct {
	Sender   string `json:"sender" acli:"untrusted"`
	Messages int    `json:"messages"`
}

// Bounds of what a compact answer has of a plan.
const (
	maxBriefSenders = 5
	maxBriefChars   = 48 // of a name or a subject
)

// brief writes the ids of the examples, of which there are at most so many, as an answer does.
func (s *PlanShown) brief(id func(string) string, examples int) planBrief {
	b := planBrief{Does: s.Does, NotBulk: s.NotBulk}
	var in []string
	for _, f := range s.Folders {
		in = append(in, fmt.Sprintf("%s %d", f.Name, f.Messages))
	}
	if s.OtherFolders > 0 {
		in = append(in, answer.Count(s.OtherFolders, "other", "others"))
	}
	if len(in) > 1 {
		b.In = strings.Join(in, ", ")
	} else if len(in) == 1 {
		b.In = s.Folders[0].Name
	}
	if s.Oldest != "" {
		b.Dates = answer.MinuteOf(s.Oldest) + " to " + answer.MinuteOf(s.Newest)
	}
	var from []planSender
	shown, rest := s.Senders[:min(len(s.Senders), maxBriefSenders)], s.Messages
	for _, f := range shown {
		from, rest = append(from, planSender{plain.Clip(f.Name, maxBriefChars), f.Messages}), rest-f.Messages
	}
	if others := s.OtherSenders + len(s.Senders) - len(shown); others > 0 {
		from = append(from, planSender{answer.Count(others, "other", "others"), rest})
	}
	var rows []PlanExample
	for _, m := range s.Examples[:min(len(s.Examples), examples)] {
		m.ID, m.Date, m.From, m.Subject = id(m.ID), answer.MinuteOf(m.Date), plain.Clip(m.From, maxBriefChars), plain.Clip(m.Subject, maxBriefChars)
		rows = append(rows, m)
	}
	if len(from) > 0 {
		senders := discovery.TableOf(from)
		b.From = &senders
	}
	if len(rows) > 0 {
		examples := discovery.TableOf(rows)
		b.Examples = &examples
	}
	return b
}

// planSummary is what became of a plan, in a sentence without its full stop.
func planSummary(state mail.OutboxState, p *mail.Plan) string {
	switch state {
	case mail.OutboxWaiting:
		return "It waits for a person; nothing was changed"
	case mail.OutboxQueued:
		return "It was not run yet; nothing was changed"
	case mail.OutboxDone, mail.OutboxPartly, mail.OutboxUnknown:
		s := answer.Capital(sentence(doing[p.Do].done, p.Action, p.Outcome.Done))
		for _, is := range []struct {
			n    int
			what string
		}{{p.Outcome.Gone, "had left their folder"}, {p.Outcome.Left, "left as they were"}} {
			if is.n > 0 {
				s += fmt.Sprintf("; %d %s", is.n, is.what)
			}
		}
		if n := p.Count - p.Outcome.Tried(); n > 0 {
			s += fmt.Sprintf("; %d not tried yet", n)
		}
		return s
	}
	return "Nothing was changed"
}

// notRun is the fault of a plan that was not carried out, or nil.
func notRun(o *mail.Outgoing) *discovery.Fault {
	f := &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf("The plan %s failed: nothing was changed.", o.ID), Hint: "Make it anew if it is still wanted.", Examples: []string{"outbox show " + o.ID}}
	if why := cmp.Or(o.Reason, o.Plan.Outcome.Reason); why != "" {
		f.Message += " " + plain.Clip(answer.Capital(why), 500)
	}
	if said, all := endOf(o); all {
		return said
	}
	switch o.State {
	case mail.OutboxUnknown:
		return nil
	case mail.OutboxCancelled, mail.OutboxExpired:
		f.Code, f.Message = discovery.Conflict, fmt.Sprintf("The plan %s is %s. Nothing was changed.", o.ID, o.State)
	}
	return f
}

// undoOf is the command that takes a change back; empty for none.
func undoOf(change string) string {
	if change == "" {
		return ""
	}
	return "mail undo " + change
}

// planQuestion is questionText for a plan.
func planQuestion(o *outbox.Decision) (question string, ok bool) {
	p, s := o.Plan, shownPlan(o.Plan)
	var b strings.Builder
	b.WriteString("Change these messages? Nothing is changed unless you approve it, and 'postern undo " + o.ID + "' takes it back.\n\n")
	questionRow(&b, "Does:", answer.Capital(harmless(s.Does)))
	questionRow(&b, "Account:", o.Account)
	for _, f := range s.Folders {
		questionRow(&b, "Folder:", fmt.Sprintf("%s, %d", quoted(f.Name), f.Messages))
	}
	if p.OtherFolders > 0 {
		questionRow(&b, "Folder:", answer.Count(p.OtherFolders, "other", "others"))
	}
	if s.Oldest != "" {
		questionRow(&b, "Dates:", answer.MinuteOf(s.Oldest)+" to "+answer.MinuteOf(s.Newest))
	}
	questionRow(&b, "Outbox:", o.ID)
	questionRow(&b, "Why:", o.Why())
	questionRow(&b, "No bulk:", cmp.Or(s.NotBulk, "none of them"))
	b.WriteString("\nWhat their senders wrote stands on the lines that begin with >:\n\n")
	line := func(text string) {
		for _, l := range wrapped(text, questionWidth) {
			b.WriteString("> " + l + "\n")
		}
	}
	for _, m := range p.Examples {
		line(strings.TrimSpace(dated(m.Date) + "  " + personShown(m.From) + "  " + strings.Join(m.Marks, " ")))
		line("    " + quoted(m.Subject))
	}
	for _, f := range p.Senders {
		line(fmt.Sprintf("%6d from %s", f.Count, personShown(f.Address)))
	}
	if p.OtherSenders > 0 {
		b.WriteString("and from " + answer.Count(p.OtherSenders, "other sender", "other senders") + "\n")
	}
	return b.String(), fits(b.String())
}

// dated is a date in a question.
func dated(t time.Time) string {
	if t.IsZero() {
		return "no date"
	}
	return answer.Minute(t)
}
