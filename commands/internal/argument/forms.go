package argument

import (
	"context"
	"maps"
	"regexp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// forms are those of the strings that several commands take.
var forms = map[string]discovery.Form{
	"name":          {Pattern: namePattern, Value: "NAME", Words: nameWords},
	"account":       {Pattern: namePattern, Value: "NAME", Words: nameWords, Account: accountNamed},
	"line":          {Pattern: linePattern, Words: lineWords},
	"folder":        {Pattern: linePattern, Value: "F", Words: lineWords, MinLength: 1, MaxLength: 256},
	"text":          {Pattern: regexp.MustCompile(`^[^\x00-\x08\x0b\x0c\x0e-\x1f]*$`), Words: "must hold no control characters but tabs and line ends"},
	"message":       {Pattern: linePattern, Value: "ID", Words: "must be a message id as the lists show it", Account: accountOfID},
	"id":            {Value: "ID", Account: accountOfID},
	"wait":          {Pattern: regexp.MustCompile(`^[1-9][0-9]{0,8}(ms|s|m)?$`), Words: "must be a number of seconds, or a time such as 50s, 500ms or 2m"},
	"secret":        {Pattern: regexp.MustCompile(`^(stdin|env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$`), Words: "must be stdin, env:NAME or file:PATH"},
	"outbox":        {Pattern: regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`), Value: "ID", Words: "must be an outbox_id as 'outbox list' shows it"},
	"change":        {Pattern: regexp.MustCompile(`^[a-z0-9]{1,64}$`), Value: "ID", Words: "must be the id of a change or a plan, as the answer about it had it"},
	"identity":      {Pattern: regexp.MustCompile(`^[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*$`), Value: "P:NAME", Words: "must be project:name, both of lower-case letters, digits and dashes"},
	"agent_message": {Pattern: regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`), Value: "ID", Words: "must be the id of a message, as 'agent read' shows it"},
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

const nameWords = "must be 1 to 64 letters, digits, dashes and underscores"

// accountNamed is an account's name as the audit entry of a command that did not run has it.
func accountNamed(name string) string { return namePattern.FindString(name) }

// accountOfID is the account that a message id names; empty for one that names none.
func accountOfID(id string) string {
	ref, _ := ParseID(id)
	return accountNamed(ref.Account)
}

var linePattern = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)

const lineWords = "must be one line without control characters"

// Command is discovery.New with our forms besides those that s has. What run does with mail tells its progress.
func Command[A, R any](s discovery.Spec, run func(context.Context, *discovery.Call, *A) (R, error)) *discovery.Command {
	all := maps.Clone(forms)
	maps.Copy(all, s.Forms)
	s.Forms = all
	return discovery.New(s, func(ctx context.Context, call *discovery.Call, args *A) (R, error) {
		return run(mail.WithProgress(ctx, call.Progress), call, args)
	})
}
