package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// view draws a result in its own way. It is false for one that has none, or nothing to show in it, which is then drawn
// like any other.
func (p *painter) view(result any) bool {
	switch r := result.(type) {
	case *commands.MailListResult:
		p.messages(r.Account, r.Folder, r.Messages)
	case *commands.MailSearchResult:
		p.messages(r.Account, r.Folder, r.Messages)
	case *commands.MailWatchResult:
		p.messages(r.Account, r.Folder, r.Messages)
	case *commands.MailThreadResult:
		p.thread(r)
	case *commands.MailGetResult:
		p.mails(r)
	case *commands.MailAccountsResult:
		p.rows(tableOf("Account,Address,Protocol,Server,Mode", r.Accounts, func(a *commands.AccountEntry) []string {
			return []string{Line(a.ID), Line(a.Email), text(a.Protocol), Line(a.Host), text(a.Mode)}
		}))
	case *commands.MailFoldersResult:
		p.rows(tableOf("Folder,Role,Messages,Unread", r.Folders, func(f *commands.FolderEntry) []string {
			return []string{Line(f.Name), Line(f.Role), number(f.Messages), number(f.Unread)}
		}))
	case *commands.MailVerifyResult:
		if !r.OK {
			return false
		}
		p.said += fmt.Sprintf(" to %s:%d, account %s, within %d ms", Line(r.Server.Host), r.Server.Port, Line(r.Account), r.LatencyMS)
	case *commands.MailMoveResult:
		p.said += " to " + Line(r.To)
		p.undoes(r.Undo)
	case *commands.MailCopyResult:
		if p.said += " to " + Line(r.To); r.ToAccount != r.Account {
			p.said += " of " + Line(r.ToAccount)
		}
		p.undoes(r.Undo)
	case *commands.MailMarkReadResult:
		p.undoes(r.Undo)
	case *commands.MailFlagsResult:
		p.undoes(r.Undo)
	case *commands.MailUnsubscribeResult:
		p.lists(r.Lists)
	case *commands.MailRunResult:
		p.lists(r.Lists)
		p.undoes(r.Undo)
	case *commands.MailUndoResult:
		p.undone(r)
	case *commands.MailPlanResult:
		p.header("Plan", Line(r.ID))
		if p.lists(r.Lists); r.Plan != nil {
			p.plan(r.Plan)
		}
		p.line("")
		if r.NeedsApproval {
			p.wrapped("", "", "A person decides first, since "+Line(r.Why)+".")
		}
	case *commands.MailDeleteResult, *commands.MailAckResult, admin.GrantRemoveResult, admin.ResumeResult: // the sentence says all
	case admin.AccountRemoveResult:
		return r.LeftInKeyring == ""
	case admin.AuditVerifyResult:
		return r.OK
	case admin.VaultCheckResult:
		return r.OK
	case *commands.MailSendResult:
		p.sent(&r.Sending, slices.Concat(r.Asks, []string{r.Hint})...)
	case *commands.OutboxDecided:
		p.sent(&r.Sending)
	case *commands.MailDraftResult:
		p.sent(&commands.Sending{}, r.Hint)
	case *commands.MailRawResult:
		p.quoted(string(r.Source), bodyMark, "", p.Width)
	case *commands.MailAttachmentResult:
		p.attachment(r)
	case *commands.OutboxListResult:
		p.rows(tableOf("Id,State,Created,?Account,?By,~To,~Subject", r.Messages, func(m *commands.OutboxEntry) []string {
			return []string{Line(m.ID), stateOf(m.State), p.date(m.Created), Line(m.Account), Line(m.Principal), text(m.Recipients), Line(m.Subject)}
		}))
	case *commands.OutboxShowResult:
		p.outgoing(r)
	case *admin.AccountListResult:
		p.accounts(r)
	case admin.AccountShowResult:
		p.account(&r.Account)
	case *admin.AccountAddResult:
		p.account(&r.Account)
	case *admin.AccountEditResult:
		p.account(&r.Account)
	case *admin.RuleListResult:
		p.rules(r)
	case admin.ConfigListResult:
		p.rows(tableOf("Setting,Value,Meaning", r.Settings, func(s *admin.SettingShown) []string {
			return []string{Line(s.Name), Line(s.Value), Line(s.Description)}
		}))
	case admin.SettingShown:
		p.setting(&r)
	case *admin.GrantListResult:
		p.rows(tableOf("Name,Accounts,Profile,Identity,Extensions,Expired,Expires", r.Grants, func(g *admin.GrantDetail) []string {
			return []string{Line(g.Name), text(g.Accounts), Line(g.Profile), Line(g.Identity), text(g.Extensions), where(g.Expired, "yes"), p.date(g.Expires)}
		}))
	case *admin.GrantAddResult:
		p.grant(r)
	case *admin.PolicyShowResult:
		p.policy(r)
	case *commands.PolicyExplainResult:
		p.explained(r)
	case *admin.AuditListResult:
		p.audit(r)
	case admin.DoctorResult:
		p.doctor(r)
	case admin.StopResult:
		p.said = sentence(p.said) + p.advice(" 'resume' lets everything go on, with the administrator's key")
		p.rows(tableOf("Id,Account,Kind", r.Leaving, func(o *admin.Outgoing) []string { return []string{Line(o.ID), Line(o.Account), text(o.Kind)} }))
	case discovery.VersionResult:
		p.line(Line(r.Implementation.Name), " ", Line(r.Implementation.Version), ", ACLI ", Line(r.ACLIVersion))
	case discovery.HelpResult:
		p.help(&r)
	case *agents.Description:
		p.describe(r)
	default:
		_, p.exact = r.(discovery.SchemaResult)
		return false
	}
	return true
}

// number is a count that may not be known.
func number(n *uint32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// where is a word for what is so, and empty else.
func where(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

// sent tells what became of a message in a sentence, and where more of it is.
func (p *painter) sent(s *commands.Sending, hints ...string) {
	if s.State == mail.OutboxAccepted && s.SentCopy == mail.SentFiled {
		p.said = sentence(p.said) + " A copy is in the folder for sent mail"
	}
	for _, h := range hints {
		if h != "" {
			p.wrapped("", "", p.advice(sentence(Line(h))))
		}
	}
	if s.ID != "" {
		p.said = sentence(p.said) + p.advice(" See it with 'outbox show "+Line(s.ID)+"'")
	}
}

// attachment shows text as text, and of anything else what it is and how to save it.
func (p *painter) attachment(r *commands.MailAttachmentResult) {
	p.hanging("", styleBold, fmt.Sprintf("%s, %s, %s", cmp.Or(Line(r.Filename), "(no name)"), Line(r.ContentType), size(r.Size)))
	switch content := string(r.Content); {
	case r.Content != nil && strings.HasPrefix(r.ContentType, "text/") && utf8.ValidString(content) && !strings.Contains(content, "\x00"):
		p.quoted(content, bodyMark, "", p.Width)
	case r.Text != "":
		p.quoted(r.Text, bodyMark, "", p.Width)
	case r.SavedTo != "":
		p.said = "Saved as " + Line(r.SavedTo)
	case r.Content != nil:
		p.said = ""
		which := " " + p.Quote(p.id(r.ID)) + " " + Line(r.PartID)
		p.columns([][2]string{{p.typed("save") + which, "keeps it"}, {p.typed("open") + which, "looks at it"}})
	}
}

// serverOf is the one that an account reads from.
func serverOf(a *admin.AccountDetail) mail.Endpoint {
	if a.Protocol == mail.POP3 {
		return a.POP3
	}
	return a.IMAP
}

// accounts draws what tells accounts apart, one in a row; 'account show' has the rest.
func (p *painter) accounts(r *admin.AccountListResult) {
	if len(r.Accounts) > 0 {
		p.said = sentence(p.said) + " 'postern init' adds another"
	}
	p.rows(tableOf("Account,Address,Server,Mode,Mail from,Writes to", r.Accounts, func(a *admin.AccountDetail) []string {
		server := serverOf(a)
		place := Line(server.Host)
		if !slices.Contains([]uint16{993, 143, 995, 110}, server.Port) {
			place += fmt.Sprintf(":%d", server.Port)
		}
		return []string{Line(a.Name), Line(a.Email), place, text(a.Mode), entries(a.AllowIn, 1), writes(a, 1)}
	}))
}

// entries is whom a list of an account lets pass, at most so many by name; 0 means all of them.
func entries(l admin.ListShown, most int) string {
	names := slices.Concat(l.Entries, l.Verified)
	switch {
	case !l.Enabled || slices.Contains(names, "*") && !slices.Contains(l.Verified, "*"):
		return "everybody"
	case len(names) == 0:
		return "nobody"
	case most > 0 && len(names) > most:
		return fmt.Sprintf("%d on the list", len(names))
	}
	return text(names)
}

// writes is whom an account may write to in its mode.
func writes(a *admin.AccountDetail, most int) string {
	if a.Mode == mail.ReadOnly || a.Mode == mail.Draft {
		return "nobody"
	}
	return entries(a.AllowOut, most)
}

// account draws one account with everything but its secrets.
func (p *painter) account(a *admin.AccountDetail) {
	at := func(e mail.Endpoint) string {
		if e.IsZero() {
			return ""
		}
		return fmt.Sprintf("%s:%d, %s", Line(e.Host), e.Port, text(e.Security))
	}
	sends, deletes := at(a.SMTP), map[string]string{"on": "for good too", "off": "nothing for good", "before": "for good, unasked"}[a.Destroy]
	if a.Submission != "" {
		sends = "with Microsoft Graph"
	}
	if a.Mode == mail.ReadOnly {
		deletes = "nothing"
	}
	p.record([][2]string{{"Account", Line(a.Name)}, {"Address", Line(a.Email)}, {"Reads", text(a.Protocol) + " " + at(serverOf(a))}, {"Sends", sends},
		{"Login", Line(a.Username) + ", " + text(a.Auth)}, {"Mode", text(a.Mode)}, {"Deletes", deletes},
		{"Shows mail from", entries(a.AllowIn, 0)}, {"Writes to", writes(a, 0)},
		{"Changes", where(a.AskChanges != nil, strings.TrimPrefix(asksAbove(a.AskChanges), ", "))},
		{"Codes", map[mail.Codes]string{mail.CodesMask: "hidden", mail.CodesGive: "hidden, and given by 'mail code'", mail.CodesShow: "shown"}[a.Codes]},
		{"Trusts", where(a.CustomCA, "only the certificates given for it, not those of the system")}, {"Own addresses", text(a.OwnAddresses)}, {"Display name", Line(a.DisplayName)}, {"Sent copy", where(a.SentCopy != mail.SentAuto, text(a.SentCopy))}, {"Helper", text(a.Helper)}, {"Oauth", where(!a.OAuth.IsZero(), text(valueOf(a.OAuth)))},
		{"Allow folders", text(a.AllowFolders)}, {"Hide folders", text(a.HideFolders)}, {"Subject pattern", Line(a.SubjectPattern)}, {"Process backlog", where(a.ProcessBacklog, "yes")},
		{"Authserv ids", text(a.AuthServIDs)}, {"Judges senders", where(a.JudgesSenders, "yes")}}, "")
}

// rules draws a list of an account, one entry a line.
func (p *painter) rules(r *admin.RuleListResult) {
	heading := map[string]string{"in": "Agents see messages of", "out": "Agents may write to", "allow": "Agents may file into, beside the account's own folders", "hide": "Agents do not see"}[r.List]
	if !r.Enabled {
		heading = "The list, which is off"
	}
	if len(r.Entries)+len(r.Verified) > 0 {
		p.wrapped("", styleBold, heading+" (account "+Line(r.Account)+"):")
	}
	for _, e := range r.Entries {
		p.line("  ", Line(e))
	}
	for _, e := range r.Verified {
		p.line("  ", Line(e), ", verified")
	}
	if len(r.Senders) > 0 {
		p.line("")
		p.rows(tableOf("Of the newest 50 from,Verified,Forged,Unknown", r.Senders, func(s *admin.SenderReport) []string {
			return []string{Line(s.Entry), fmt.Sprint(s.Verified), fmt.Sprint(s.Failed), fmt.Sprint(s.Unknown)}
		}))
		return
	}
	if n := len(r.Added); n > 0 {
		p.said = fmt.Sprintf("Added %d: %s", n, p.said)
	}
	if n := len(r.Removed); n > 0 {
		p.said = fmt.Sprintf("Removed %d: %s", n, p.said)
	}
	if len(r.Absent) > 0 {
		p.wrapped("", styleBold, "The server has no folder of this name now: "+text(r.Absent)+".")
	}
	who := entries(admin.ListShown{Enabled: r.Enabled, Entries: r.Entries, Verified: r.Verified}, 0)
	if addresses := r.List == "in" || r.List == "out"; addresses && (who == "everybody" || who == "nobody") {
		p.said = sentence(p.said) + " It lets " + who + " pass"
	}
}

func (p *painter) setting(s *admin.SettingShown) {
	bounds := ""
	if s.Minimum != nil && s.Maximum != nil {
		bounds = fmt.Sprintf("%d to %d", *s.Minimum, *s.Maximum)
	}
	p.record([][2]string{{"Setting", Line(s.Name)}, {"Value", cmp.Or(Line(s.Value), "(none)")}, {"Default", Line(s.Default)}, {"Takes", bounds}, {"Meaning", Line(s.Description)}}, "")
	p.said = ""
}

// grant draws a new grant, and its token whole on a line of its own.
func (p *painter) grant(r *admin.GrantAddResult) {
	if g, ok := valueOf(r.Grant).(object); ok {
		p.object(g, "")
	}
	p.line("")
	p.wrapped("", "", "The token, which is shown this once:")
	p.line("")
	p.line(p.in(styleBold, Line(r.Token)))
	p.line("")
}

func (p *painter) policy(r *admin.PolicyShowResult) {
	p.record([][2]string{{"You are", Line(r.Principal) + where(r.Admin, ", the administrator")}, {"Profile", Line(r.Profile)}, {"Stopped", Line(r.Stopped)}, {"Not for agents", text(r.Deny)},
		{"Limits", fmt.Sprintf("%d commands a minute, %d messages sent and %d changed an hour", r.CommandsPerMinute, r.SendsPerHour, r.ChangesPerHour)}}, "")
	for _, a := range r.Accounts {
		const asks = " after a person's word"
		may := []string{"read", where(a.MayChange, "flag and file"+asksAbove(a.AskChanges)), where(a.MaySend, "send"+where(a.NeedsApproval, asks)), where(a.MayDestroy, "delete for good"+where(a.DestroyAsks, asks))}
		hides := []string{where(a.InboundList, "senders"), where(a.SubjectFilter, "subjects"), where(a.HidesFolders, "folders")}
		p.line("")
		p.record([][2]string{{"Account", Line(a.ID)}, {"Mode", text(a.Mode)}, {"Agents may", text(may)},
			{"Rules hide", text(hides)}, {"Writes to", where(a.MaySend, entries(a.Outbound, 0))}, {"Folders", text(a.AllowFolders)}, {"Hidden", text(a.HideFolders)}}, "")
	}
}

// asksAbove says how many changes go unasked, behind what may be done; empty for any number.
func asksAbove(n *int) string {
	switch {
	case n == nil:
		return ""
	case *n == 0:
		return ", each after a person's word"
	}
	return fmt.Sprintf(", more than %d messages in ten minutes after a person's word", *n)
}

func (p *painter) explained(r *commands.PolicyExplainResult) {
	command := cmp.Or(Line(r.Command), "It")
	switch {
	case !r.Allowed:
		p.wrapped("", styleRed, command+" would be refused. "+Line(r.Message))
		p.wrapped("", "", p.advice(Line(r.Hint)))
	case r.NeedsApproval:
		p.wrapped("", "", command+" would wait for a person's word.")
		for _, s := range r.Asks {
			p.wrapped("  ", "", Line(s))
		}
	default:
		p.wrapped("", "", command+" would run.")
	}
}

func (p *painter) audit(r *admin.AuditListResult) {
	p.rows(tableOf("No,When,Who,?Account,Outcome,Command", r.Entries, func(e *admin.AuditShown) []string {
		outcome, command := "done", Line(e.Command)
		if !e.Success {
			outcome = strings.ToLower(strings.ReplaceAll(Line(e.ErrorCode), "_", " "))
		}
		if e.Count > 1 {
			outcome += fmt.Sprintf(" x%d", e.Count)
		}
		for _, s := range []string{e.Target, e.Reason} {
			if s != "" {
				command += "\n(" + Line(s) + ")"
			}
		}
		return []string{fmt.Sprint(e.Seq), p.when(e.Timestamp), Line(e.Principal), Line(e.Account), outcome, command}
	}))
}

func (p *painter) doctor(r admin.DoctorResult) {
	p.rows(tableOf("Check,State,What was found", r.Checks, func(c *admin.Check) []string {
		state, found := "ok", Line(c.Detail)
		if !c.OK {
			state = "FAILS"
		}
		if c.Hint != "" {
			found += "\n" + p.advice(Line(c.Hint))
		}
		return []string{Line(c.Name), state, found}
	}))
	if slices.ContainsFunc(r.Checks, func(c admin.Check) bool { return !c.OK }) {
		p.wrapped("", styleRed, sentence(p.said))
		p.said = ""
	}
}

// describe draws the agent mailbox in short: its commands, or one of them with its arguments.
func (p *painter) describe(d *agents.Description) {
	of := &d.CommandHelps
	if d.Commands != nil {
		of = d.Commands
	}
	page := &discovery.HelpResult{Command: "agent", Description: d.Description}
	for _, c := range []struct {
		name string
		help *agents.CommandHelp
	}{{"describe", of.Describe}, {"send", of.Send}, {"read", of.Read}, {"ack", of.Ack}, {"status", of.Status}, {"cleanup", of.Cleanup}} {
		switch {
		case c.help == nil:
		case d.Commands == nil:
			page = &discovery.HelpResult{Command: "agent " + c.name, Description: c.help.Description, Arguments: c.help.Args, Examples: c.help.Examples}
		default:
			first, _, _ := strings.Cut(c.help.Description, ". ")
			page.Commands = append(page.Commands, discovery.CommandHelp{Name: "agent " + c.name, Description: strings.TrimSuffix(first, ".")})
			p.said = "One of them with its arguments: '" + p.typed("agent describe send") + "'"
		}
	}
	p.help(page)
}
