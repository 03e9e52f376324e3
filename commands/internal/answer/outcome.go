package answer

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

	IDs *IDs `json:"-"` // shortens the ids of the issues in a compact answer; nil keeps them long
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

// Next is the action that the words of a command are.
func Next(instruction string, tokens ...string) *NextAction {
	for i := 1; i < len(tokens); i++ {
		// A name that begins with a hyphen would be taken for an option.
		if name := tokens[i-1]; (name == "--folder" || name == "--account") && strings.HasPrefix(tokens[i], "-") {
			tokens = slices.Replace(slices.Clone(tokens), i-1, i+1, name+"="+tokens[i])
		}
	}
	return NextLine(instruction, discovery.JoinCommand(tokens))
}

// NextLine is the action that a command string is.
func NextLine(instruction, line string) *NextAction {
	return &NextAction{Instruction: instruction, Tool: "cli", Arguments: NextArguments{line}}
}

// WithIssues adds to a summary that there are issues, which --fields may leave out of the
// answer.
func (o Outcome) WithIssues(summary string) string {
	if len(o.Issues) == 0 {
		return summary
	}
	if summary == "" {
		return Capital(string(o.Status)) + ", with " + Count(len(o.Issues), "issue", "issues")
	}
	return summary + "; " + string(o.Status) + ", with " + Count(len(o.Issues), "issue", "issues")
}

// maxIssues bounds the issues of an answer that are not about one message, such as the
// folders that a server does not open.
const maxIssues = 20

// OutcomeOf is partial when there are results beside the issues.
func OutcomeOf(issues []mail.Issue, obtained bool) Outcome {
	o := Outcome{Status: mail.StatusOK, Issues: []Issue{}}
	general, last := 0, Issue{}
	for _, i := range issues {
		told := Issue{Code: CodeOf(i.Kind), Stage: i.Stage, Message: i.Message, Retryable: i.Retryable, UID: i.UID, MessageID: i.MessageID}
		if i.UID == 0 && i.MessageID == "" {
			if general++; general > maxIssues {
				last = told
				continue
			}
		}
		o.Issues = append(o.Issues, told)
	}
	if n := general - maxIssues; n > 0 {
		last.Message = fmt.Sprintf("Not told: %s, such as: %s", Count(n, "further issue", "further issues"), last.Message)
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

// Rest is what a compact answer keeps of an outcome. more is the action that goes on
// where the answer ended; nil for none.
func (o *Outcome) Rest(more *NextAction) Rest {
	var r Rest
	for _, i := range o.Issues {
		text := string(i.Code) + ": " + i.Message
		if i.MessageID != "" {
			text += " (" + o.ShortID(i.MessageID) + ")"
		}
		r.Issues = append(r.Issues, text)
	}
	if more != nil {
		r.More = more.Arguments.Command
	}
	return r
}

// ShortID is a long id as a compact answer writes it.
func (o *Outcome) ShortID(id string) string {
	if ref, err := mail.ParseRef(id); err == nil && o.IDs != nil {
		return o.IDs.Of(ref)
	}
	return id
}

// IDs writes the ids of an answer.
type IDs struct {
	Account bool              // short ids name their account
	Short   map[string]uint32 // UIDVALIDITY of the folders that have short ids, by FolderKey
	Issues  []mail.Issue      // tell of folders whose ids from before are void
}

// Of is the id of a message in a compact answer.
func (w *IDs) Of(r mail.Ref) string {
	if v, ok := w.Short[FolderKey(r)]; ok && v == r.UIDValidity {
		return r.Short(w.Account)
	}
	return r.String()
}

// FolderKey names a folder of an account among those of IDs.
func FolderKey(r mail.Ref) string { return r.Account + ":" + r.Folder }
