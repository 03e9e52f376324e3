package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type allowInAddArgs struct {
	allowEntriesArgs
	Verified *bool `json:"verified,omitempty" jsonschema_description:"Whether a message also has to be verified as the sender's; that is so unless it is said where the account judges senders, but for *"`
}

// SenderReport is how the newest messages of a sender would fare: only verified ones pass.
type SenderReport struct {
	Entry    string `json:"entry"`
	Verified int    `json:"verified"`
	Failed   int    `json:"failed"`
	Unknown  int    `json:"unknown"`
}

// reportTime is how long the server may take for what is only told beside an answer.
const reportTime = 5 * time.Second

// allowInAdd adds entries to the inbound list. One that is on it stays as it is unless
// --verified says otherwise.
func allowInAdd(d *Deps) *discovery.Command {
	spec := inbound.spec("add", "Add entries to the list",
		"Entries that are on the list already are not added twice. Of an entry with --verified only messages pass that the account's own mail server found genuine; "+
			"the answer says how the newest 50 of each such sender in INBOX would fare.",
		"ann@example.org", "@example.org bob@example.com", "@bank.example --verified")
	return argument.Command(spec, func(ctx context.Context, call *discovery.Call, args *allowInAddArgs) (*RuleListResult, error) {
		var added []string // those that demand a verified sender
		r, err := d.ruleList(ctx, call, args.AccountOption, inbound, func(a *mail.Account, r *RuleListResult) error {
			p, err := mail.CompilePolicy(a)
			if err != nil {
				return err
			}
			if args.Verified != nil && *args.Verified && !p.Judges() {
				return &discovery.Fault{Code: discovery.ValidationError, Message: "Nothing says whose word on senders counts for this account, so that no message would be verified.",
					Hint: fmt.Sprintf("'account edit %s --authserv-id ID' says it, and doctor proposes an ID where it can.", a.Name)}
			}
			added = nil
			for _, e := range args.normal {
				verified := p.Judges() && e != "*"
				if args.Verified != nil {
					verified = *args.Verified
				} else if slices.Contains(a.AllowIn.Entries, e) || slices.Contains(a.AllowIn.Verified, e) {
					continue
				}
				to, other := &a.AllowIn.Entries, &a.AllowIn.Verified
				if verified {
					to, other = other, to
				}
				*other = slices.DeleteFunc(slices.Clone(*other), func(o string) bool { return o == e })
				if slices.Contains(*to, e) {
					continue
				}
				*to, r.Added = append(slices.Clone(*to), e), append(r.Added, e)
				if verified {
					added = append(added, e)
				}
			}
			return nil
		})
		if err == nil && len(added) > 0 {
			r.Senders = d.fare(ctx, r.Account, added)
		}
		return r, err
	})
}

// fare tells how the newest messages of each sender would fare, as far as the server says so
// soon.
func (d *Deps) fare(ctx context.Context, account string, entries []string) (all []SenderReport) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	for _, e := range entries {
		n, err := d.Mailboxes.JudgeSender(ctx, account, e)
		if err != nil {
			return all
		}
		all = append(all, SenderReport{e, n[mail.Verified], n[mail.Failed], n[mail.Unknown]})
	}
	return all
}

// fared says in words how many messages would not pass; empty where all would.
func fared(all []SenderReport) string {
	var hidden []string
	for _, s := range all {
		if n := s.Failed + s.Unknown; n > 0 {
			hidden = append(hidden, fmt.Sprintf("%d of %s of %s", n, answer.Count(n+s.Verified, "message", "messages"), s.Entry))
		}
	}
	if len(hidden) == 0 {
		return ""
	}
	return "Not verified, and so hidden while the list is on: " + strings.Join(hidden, ", ") + ". --verified=false lets an entry pass unverified."
}
