package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault"
)

type auditListArgs struct {
	Account string `json:"account,omitempty" acli:"form=account" jsonschema_description:"Only entries of this account; all of them if left out"`
	Limit   int    `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=500,default=50" jsonschema_description:"At most this many, newest first"`
	Before  uint64 `json:"before-seq,omitempty" jsonschema:"minimum=1,maximum=9007199254740991" jsonschema_description:"Only entries with a smaller number"`
}

// AuditListResult answers audit list (000 section 7.2).
type AuditListResult struct {
	Entries    []AuditShown       `json:"entries"`
	HasMore    bool               `json:"has_more"`
	Truncated  bool               `json:"truncated,omitempty"`
	NextAction *answer.NextAction `json:"next_action,omitempty"`

	more func(seq uint64) *answer.NextAction // what goes on behind an entry
}

// AuditShown is one entry of the audit log (002 section 8.3).
type AuditShown struct {
	Seq        uint64 `json:"seq"`
	Timestamp  string `json:"timestamp" jsonschema:"format=date-time"`
	Principal  string `json:"principal"`
	Account    string `json:"account,omitempty"`
	Command    string `json:"command"`
	Parsed     string `json:"parsed_command,omitempty"`
	Target     string `json:"target,omitempty"`
	Changes    string `json:"changes,omitempty"` // of mailboxes: what 'mail undo' takes
	Success    bool   `json:"success"`
	Result     string `json:"result" jsonschema:"enum=allowed,enum=blocked"`
	Reason     string `json:"reason,omitempty"`
	ErrorCode  string `json:"error_code,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Count      int    `json:"count,omitempty"` // of the commands that it stands for, where it is not one
}

func auditList(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "audit list",
		Summary:  "List the commands that were run, newest first",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"audit list", "audit list --limit 10", "audit list --before-seq 100"},
	}, func(ctx context.Context, call *discovery.Call, args *auditListArgs) (*AuditListResult, error) {
		records, err := d.Store.Audit(ctx, vault.AuditQuery{Account: args.Account, Before: args.Before, Limit: args.Limit + 1})
		if err != nil {
			return nil, err
		}
		r := &AuditListResult{Entries: answer.Each(records[:min(args.Limit, len(records))], shownEntry), more: func(seq uint64) *answer.NextAction {
			following := *args
			following.Before = seq
			return answer.NextLine("There are more: show the ones before", call.Again(&following))
		}}
		if len(records) > args.Limit {
			r.goOn()
		}
		return r, nil
	})
}

// goOn says that there are more entries, and how to see them.
func (r *AuditListResult) goOn() {
	r.HasMore, r.NextAction = true, r.more(r.Entries[len(r.Entries)-1].Seq)
}

func shownEntry(e *vault.AuditRecord) AuditShown {
	s := AuditShown{Seq: e.Seq, Timestamp: e.Time.UTC().Format(time.RFC3339Nano), Principal: e.Principal, Account: e.Account, Command: e.Command,
		Parsed: e.Parsed, Target: e.Target, Changes: e.Changes, Success: e.Code == "", Result: "allowed", Reason: e.Reason, ErrorCode: e.Code,
		DurationMS: e.Duration.Milliseconds(), Count: e.Count}
	if !e.Allowed {
		s.Result = "blocked"
	}
	return s
}

// auditRow is an entry; Outcome is empty where the command did what it says.
type auditRow struct {
	Seq       uint64 `json:"seq"`
	Time      string `json:"time"`
	Principal string `json:"principal"`
	Account   string `json:"account"`
	Command   string `json:"command"`
	Target    string `json:"target"`
	Changes   string `json:"changes"`
	Outcome   string `json:"outcome"`
	Reason    string `json:"reason"`
}

// Brief is one row for each entry.
func (r *AuditListResult) Brief() answer.List[auditRow] {
	return answer.ListOf(r.Entries, (&answer.Outcome{}).Rest(r.NextAction), func(e *AuditShown) auditRow {
		time, _, _ := strings.Cut(e.Timestamp, ".")
		outcome := e.ErrorCode
		if e.Count > 1 {
			outcome += fmt.Sprintf(" x%d", e.Count)
		}
		return auditRow{e.Seq, strings.TrimSuffix(time, "Z") + "Z", e.Principal, e.Account, e.Command, e.Target, e.Changes, outcome, e.Reason}
	})
}

// Summary implements discovery.Summarizer.
func (r *AuditListResult) Summary() string {
	return answer.Count(len(r.Entries), "entry", "entries")
}

// Truncate implements discovery.Truncator.
func (r *AuditListResult) Truncate(fraction float64) bool {
	if !answer.Shorten(&r.Entries, &r.Truncated, fraction) {
		return false
	}
	r.goOn()
	return true
}
