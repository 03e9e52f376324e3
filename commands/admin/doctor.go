package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

type doctorArgs struct {
	Account string `json:"account,omitempty" acli:"form=account,rare" jsonschema_description:"Only this account; all of them if left out"`
}

// DoctorResult answers doctor (000 section 7.2a).
type DoctorResult struct {
	Status mail.Status `json:"status" jsonschema:"enum=ok,enum=partial,enum=failed"`
	Checks []Check     `json:"checks"`
}

// Check is the result of one check.
type Check struct {
	Name   string         `json:"name"`
	OK     bool           `json:"ok"`
	Detail string         `json:"detail"`
	Code   discovery.Code `json:"code,omitempty"`
	Hint   string         `json:"hint,omitempty"`
}

func doctor(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "doctor",
		Summary:  "Checks",
		Details:  "It connects and logs in, and sends nothing. For the administrator it reads headers of recent mail where nothing says yet whose word on senders counts, and proposes it.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"doctor", "doctor --timeout 60"},
	}, func(ctx context.Context, call *discovery.Call, args *doctorArgs) (DoctorResult, error) {
		call.Account = args.Account
		if err := d.Store.Check(ctx); err != nil {
			return DoctorResult{}, err
		}
		r := DoctorResult{Checks: []Check{{Name: "vault", OK: true, Detail: "The key opens it, and its policy is signed."}}}
		accounts, err := d.doctorAccounts(ctx, args.Account)
		if err != nil {
			return DoctorResult{}, err
		}
		stopped, err := d.Store.Stopped(ctx, vault.StopTime)
		switch {
		case err != nil:
			return DoctorResult{}, err
		case stopped != nil:
			f := answer.Faults(stopped)
			r.Checks = append(r.Checks, Check{Name: "stop", Detail: f.Message + " No server is asked.", Code: f.Code, Hint: f.Hint})
		default:
			r.Checks = append(r.Checks, d.checkServers(ctx, call, accounts)...)
		}
		if len(accounts) == 0 {
			r.Checks = append(r.Checks, Check{Name: "accounts", Detail: "There is no account yet.", Code: discovery.ConfigError,
				Hint: "The administrator adds one with 'postern init', which asks, or with 'account add'."})
		}
		r.Status = overall(r.Checks)
		if call.Admin && stopped == nil {
			working := slices.DeleteFunc(slices.Clone(accounts), func(a mail.Account) bool {
				return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.OK && c.Name == a.Name+" "+string(a.Protocol) })
			})
			r.Checks = append(r.Checks, d.proposals(ctx, working)...) // a refused password is not tried again
		}
		waiting, err := d.waiting(ctx, call, args.Account)
		if err != nil {
			return DoctorResult{}, err
		}
		r.Checks = append(r.Checks, waiting...)
		for _, look := range []func([]mail.Account) (Check, bool){rightsBefore, asksNow, alwaysAsked} {
			if check, ok := look(accounts); ok {
				r.Checks = append(r.Checks, check)
			}
		}
		if d.Checks != nil && args.Account == "" {
			more := d.Checks(ctx)
			if r.Status == mail.StatusOK && slices.ContainsFunc(more, func(c Check) bool { return !c.OK }) {
				r.Status = mail.StatusPartial
			}
			r.Checks = append(r.Checks, more...)
		}
		return r, nil
	})
}

func (d *Deps) doctorAccounts(ctx context.Context, only string) ([]mail.Account, error) {
	if only == "" {
		return d.Store.Accounts(ctx)
	}
	a, err := d.Store.Account(ctx, only)
	return []mail.Account{a}, err
}

// waiting tells how much waits for a person; a person is told of all of it, an agent of its
// own. It is nothing that fails.
func (d *Deps) waiting(ctx context.Context, call *discovery.Call, account string) ([]Check, error) {
	q := mail.OutboxQuery{Account: account, States: []mail.OutboxState{mail.OutboxWaiting}, Limit: mail.MaxOutboxLimit}
	hint := "'postern approve' shows each and asks."
	if !call.Admin && call.Principal != mail.PersonPrincipal {
		q.Principal, hint = call.Principal, "" // how a person decides is theirs to know
	}
	entries, _, err := d.Outbox.List(ctx, q)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return []Check{{Name: "waiting", OK: true, Detail: answer.Count(len(entries), "message waits", "messages wait") + " for a person.", Hint: hint}}, nil
}

// rightsBefore tells which accounts still delete for good unasked, since they were made
// before the right existed. It is nothing that fails.
func rightsBefore(accounts []mail.Account) (Check, bool) {
	var names []string
	for _, a := range accounts {
		if p, err := mail.CompilePolicy(&a); err == nil && a.Destroy == mail.DestroyUnset && p.MayDestroy() {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return Check{}, false
	}
	return Check{Name: "rights", OK: true, Detail: "Older than the right to delete for good, and may do so unasked: " + strings.Join(names, ", ") + ".",
		Hint: fmt.Sprintf("The administrator settles it with 'account edit %s --destroy off' (or on).", names[0])}, true
}

// asksNow tells which accounts did not ask before there was AskChanges, and nobody has said since
// what they shall do. It is nothing that fails.
func asksNow(accounts []mail.Account) (Check, bool) {
	var names []string
	for _, a := range accounts {
		if p, err := mail.CompilePolicy(&a); err == nil && a.AskChanges == nil && !a.FromEnvironment && a.Protocol == mail.IMAP && p.MayFile() && p.AskChanges() >= 0 {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return Check{}, false
	}
	return Check{Name: "changes", OK: true, Detail: fmt.Sprintf("Now a person decides where an agent changes more than %d messages within ten minutes, which went unasked before: %s.", mail.UsualAskChanges, strings.Join(names, ", ")),
		Hint: fmt.Sprintf("The administrator leaves it so with 'account edit %s --ask-changes %d', or gives another number.", names[0], mail.AsksAsUsual)}, true
}

// alwaysAsked tells which accounts in mode reply let no reply go unasked, since they know nobody
// or nobody is known to judge senders for them. It is nothing that fails.
func alwaysAsked(accounts []mail.Account) (Check, bool) {
	var why []string
	for _, a := range accounts {
		p, err := mail.CompilePolicy(&a)
		if err != nil || !p.RepliesUnasked() {
			continue
		}
		if !p.Judges() {
			why = append(why, a.Name+", where nobody is known to judge senders")
		}
		if !slices.ContainsFunc(slices.Concat(a.AllowIn.Entries, a.AllowIn.Verified), func(e string) bool { return e != "*" }) {
			why = append(why, a.Name+", whose inbound list names nobody")
		}
	}
	if len(why) == 0 {
		return Check{}, false
	}
	return Check{Name: "replies", OK: true, Detail: "In mode reply, but every reply asks: " + strings.Join(why, "; ") + ".",
		Hint: "The administrator names people with 'allow in add', and who judges senders with 'account edit'."}, true
}

// proposals name what accounts that judge no sender could judge them by. It sets nothing, and
// nothing of it fails.
func (d *Deps) proposals(ctx context.Context, accounts []mail.Account) []Check {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	ids := make([]string, len(accounts))
	var wg sync.WaitGroup
	for i, a := range accounts {
		if p, err := mail.CompilePolicy(&a); err == nil && !p.Judges() && a.AuthServIDs == nil && a.Protocol == mail.IMAP && !a.FromEnvironment {
			wg.Go(func() { ids[i], _ = d.Mailboxes.AuthServID(ctx, a.Name) })
		}
	}
	wg.Wait()
	var checks []Check
	for i, a := range accounts {
		if ids[i] != "" {
			checks = append(checks, Check{Name: a.Name + " senders", OK: true, Detail: "Its server seems to say as " + plain.Line(ids[i]) + " whether senders are genuine, and nothing here believes it yet.",
				Hint: fmt.Sprintf("If that is the name of the account's own mail server, 'account edit %s --authserv-id %s' believes it.", a.Name, discovery.Quote(ids[i]))})
		}
	}
	return checks
}

// checkServers looks at every server at once, and gives up on those that do not
// answer a little before the command itself has to, so that the others are told.
func (d *Deps) checkServers(ctx context.Context, call *discovery.Call, accounts []mail.Account) []Check {
	ctx, cancel := mail.Sooner(ctx)
	defer cancel()
	type job struct {
		name, account string
		verify        func(context.Context, string) (*mail.Verification, error)
	}
	var jobs []job
	for _, a := range accounts {
		jobs = append(jobs, job{a.Name + " " + string(a.Protocol), a.Name, d.Mailboxes.Verify})
		if !a.SMTP.IsZero() {
			jobs = append(jobs, job{a.Name + " " + cmp.Or(string(a.Submission), "smtp"), a.Name, d.Outbox.Verify})
		}
	}
	checks := make([]Check, len(jobs))
	var wg sync.WaitGroup
	var done atomic.Int64
	for i, j := range jobs {
		wg.Go(func() {
			checks[i] = d.checkServer(ctx, j.name, j.account, j.verify)
			call.Progress(float64(done.Add(1)), float64(len(jobs)), "checked "+j.name)
		})
	}
	wg.Wait()
	return checks
}

func (d *Deps) checkServer(ctx context.Context, name, account string, verify func(context.Context, string) (*mail.Verification, error)) Check {
	v, err := verify(ctx, account)
	if err != nil {
		f := answer.Faults(err)
		if f == nil {
			f = &discovery.Fault{Code: discovery.ExecutionError, Message: "The check failed for a reason inside the program."}
		}
		return Check{Name: name, Detail: f.Message, Code: f.Code, Hint: f.Hint}
	}
	if len(v.Issues) > 0 {
		i := v.Issues[0]
		return Check{Name: name, Detail: i.Message, Code: answer.CodeOf(i.Kind), Hint: cmp.Or(answer.LoginHint(i, account), serverHint(i.Kind))}
	}
	did := "Logged in to"
	if v.Untried {
		did = "Got a token for Microsoft Graph, which only a message tries, and reached"
	}
	took := "" // where a person waits for it
	if v.Latency >= time.Second {
		took = fmt.Sprintf(" within %.1f s", v.Latency.Seconds())
	}
	return Check{Name: name, OK: true, Detail: fmt.Sprintf("%s %s:%d%s.", did, v.Server.Host, v.Server.Port, took)}
}

// serverHint says what to look at, by what went wrong.
func serverHint(k mail.Kind) string {
	if k == mail.KindCertificate {
		return "Check the account's host and port; a server with its own authority needs --ca-file."
	}
	return serverHints[answer.CodeOf(k)]
}

var serverHints = map[discovery.Code]string{
	discovery.ConnectionFailed: "Check the account's host, port and security.",
	discovery.Timeout:          "Try again, or allow more time with --timeout SECONDS (at most 300).",
	discovery.ExecutionError:   "Try again later; if it fails again, ask the operator of the server.",
}

// overall is failed when none of the servers works. The vault's own check, the
// first, has passed when there is an answer at all.
func overall(checks []Check) mail.Status {
	good := 0
	for _, c := range checks[1:] {
		if c.OK {
			good++
		}
	}
	switch good {
	case len(checks) - 1:
		return mail.StatusOK
	case 0:
		return mail.StatusFailed
	}
	return mail.StatusPartial
}

// Failed implements discovery.Checker: the login where only logins failed.
func (r DoctorResult) Failed() discovery.Code {
	var failed discovery.Code
	for _, c := range r.Checks {
		switch {
		case c.OK:
		case c.Code != discovery.AuthFailed:
			return discovery.ConnectionFailed
		default:
			failed = c.Code
		}
	}
	return failed
}

type doctorBrief struct {
	Status mail.Status `json:"status" jsonschema:"enum=ok,enum=partial,enum=failed"`
	discovery.Table[checkRow]
}

// checkRow is a check; Result is ok, or the code of what went wrong.
type checkRow struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
}

// Brief is one row for each check.
func (r DoctorResult) Brief() doctorBrief {
	var rows []checkRow
	for _, c := range r.Checks {
		row := checkRow{c.Name, string(cmp.Or(c.Code, discovery.ExecutionError)), c.Detail, c.Hint}
		if c.OK {
			row.Result = "ok"
		}
		rows = append(rows, row)
	}
	return doctorBrief{r.Status, discovery.TableOf(rows)}
}

// Summary implements discovery.Summarizer.
func (r DoctorResult) Summary() string {
	if r.Status == mail.StatusOK {
		return "Everything works"
	}
	return "Something does not work"
}
