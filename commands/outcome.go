package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// Issue is one thing that went wrong while the rest of an operation went on (001,
// shared output envelope).
type Issue struct {
	Code      discovery.Code `json:"code"`  // such as CONNECTION_FAILED
	Stage     string         `json:"stage"` // the step that failed: connect, auth, examine, search, fetch, parse
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	UID       uint32         `json:"uid,omitempty"`
	MessageID string         `json:"message_id,omitempty"`
}

// Outcome is how far an operation against a server got (001, shared output
// envelope).
type Outcome struct {
	Status     mail.Status `json:"status" jsonschema:"enum=ok,enum=partial,enum=failed"`
	Issues     []Issue     `json:"issues"`
	NextAction *NextAction `json:"next_action,omitempty"`

	IDs *idWriter `json:"-"` // shortens the ids of the issues in a compact answer; nil keeps them long
}

// NextAction is what a caller will likely want next; its command runs as written.
type NextAction struct {
	Instruction string        `json:"instruction"`
	Tool        string        `json:"tool" jsonschema:"enum=cli"`
	Arguments   NextArguments `json:"arguments"`
}

// NextArguments are the arguments of the one tool.
type NextArguments struct {
	Command string `json:"command"`
}

func next(instruction string, tokens ...string) *NextAction {
	for i := 1; i < len(tokens); i++ {
		// A name that begins with a hyphen would be taken for an option.
		if name := tokens[i-1]; (name == "--folder" || name == "--account") && strings.HasPrefix(tokens[i], "-") {
			tokens = slices.Replace(slices.Clone(tokens), i-1, i+1, name+"="+tokens[i])
		}
	}
	return nextLine(instruction, discovery.JoinCommand(tokens))
}

func nextLine(instruction, line string) *NextAction {
	return &NextAction{Instruction: instruction, Tool: "cli", Arguments: NextArguments{line}}
}

// withIssues adds to a summary that there are issues, which --fields may leave out of the
// answer.
func (o Outcome) withIssues(summary string) string {
	if len(o.Issues) == 0 {
		return summary
	}
	if summary == "" {
		return capital(string(o.Status)) + ", with " + count(len(o.Issues), "issue", "issues")
	}
	return summary + "; " + string(o.Status) + ", with " + count(len(o.Issues), "issue", "issues")
}

// maxIssues bounds the issues of an answer that are not about one message, such as the
// folders that a server does not open.
const maxIssues = 20

// outcome is partial when there are results beside the issues.
func outcome(issues []mail.Issue, obtained bool) Outcome {
	o := Outcome{Status: mail.StatusOK, Issues: []Issue{}}
	general, last := 0, Issue{}
	for _, i := range issues {
		told := Issue{Code: codeOf(i.Kind), Stage: i.Stage, Message: i.Message, Retryable: i.Retryable, UID: i.UID, MessageID: i.MessageID}
		if i.UID == 0 && i.MessageID == "" {
			if general++; general > maxIssues {
				last = told
				continue
			}
		}
		o.Issues = append(o.Issues, told)
	}
	if n := general - maxIssues; n > 0 {
		last.Message = fmt.Sprintf("Not told: %s, such as: %s", count(n, "further issue", "further issues"), last.Message)
		o.Issues = append(o.Issues, last)
	}
	if len(issues) > 0 {
		o.Status = mail.StatusFailed
		if obtained {
			o.Status = mail.StatusPartial
		}
	}
	return o
}

// rest is what a compact answer keeps of an outcome. more is the action that goes on
// where the answer ended; nil for none.
func (o *Outcome) rest(more *NextAction) Rest {
	var r Rest
	for _, i := range o.Issues {
		text := string(i.Code) + ": " + i.Message
		if i.MessageID != "" {
			text += " (" + o.shortID(i.MessageID) + ")"
		}
		r.Issues = append(r.Issues, text)
	}
	if more != nil {
		r.More = more.Arguments.Command
	}
	return r
}

// shortID is a long id as a compact answer writes it.
func (o *Outcome) shortID(id string) string {
	if ref, err := mail.ParseRef(id); err == nil && o.IDs != nil {
		return o.IDs.of(ref)
	}
	return id
}

// idWriter writes the ids of an answer.
type idWriter struct {
	account bool              // short ids name their account
	short   map[string]uint32 // UIDVALIDITY of the folders that have short ids, by shownKey
	own     map[string]string // the address of each account
	Issues  []mail.Issue      // tell of folders whose ids from before are void
}

// of is the id of a message in a compact answer.
func (w *idWriter) of(r mail.Ref) string {
	if v, ok := w.short[shownKey(r)]; ok && v == r.UIDValidity {
		return r.Short(w.account)
	}
	return r.String()
}

func shownKey(r mail.Ref) string { return r.Account + ":" + r.Folder }
