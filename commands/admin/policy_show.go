package admin

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

type policyShowArgs struct {
	Account string `json:"account,omitempty" acli:"form=account,rare" jsonschema_description:"Only this account; all of them if left out"`
}

// PolicyShowResult answers policy show.
type PolicyShowResult struct {
	Principal         string          `json:"principal"`
	Admin             bool            `json:"admin"`
	Profile           string          `json:"profile"`
	Stopped           string          `json:"stopped,omitempty"` // since when and by whom everything is; empty where it is not
	Deny              []string        `json:"deny"`
	CommandsPerMinute int             `json:"commands_per_minute"`
	SendsPerHour      int             `json:"sends_per_hour"`
	ChangesPerHour    int             `json:"changes_per_hour"`
	AsksInClient      bool            `json:"asks_in_client"`
	Accounts          []AccountPolicy `json:"accounts"`
}

// AccountPolicy is what an account may be used for.
type AccountPolicy struct {
	ID            string    `json:"account_id"`
	Mode          mail.Mode `json:"mode"`
	MayChange     bool      `json:"may_change"`
	AskChanges    *int      `json:"ask_changes,omitempty"` // messages within ten minutes, before a person decides about more
	MaySend       bool      `json:"may_send"`
	NeedsApproval bool      `json:"sends_need_approval,omitempty"`
	ReplyUnasked  bool      `json:"replies_may_go_unasked,omitempty"`
	MayDestroy    bool      `json:"may_destroy"`
	DestroyAsks   bool      `json:"destroying_needs_approval,omitempty"`
	GivesCodes    bool      `json:"gives_codes,omitempty"`
	InboundList   bool      `json:"inbound_list"`
	JudgesSenders bool      `json:"judges_senders,omitempty"`
	SubjectFilter bool      `json:"subject_filter"`
	Outbound      ListShown `json:"outbound_list"`
	AllowFolders  []string  `json:"allow_folders,omitempty"`
	HidesFolders  bool      `json:"hides_folders,omitempty"`
	HideFolders   []string  `json:"hide_folders,omitempty"` // for the administrator alone
}

func PolicyShow(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "policy show",
		Summary: "What you may do",
		Details: "It says so for each account. For incoming mail it shows only whether there are rules: their entries would tell what is hidden. " +
			"It shows the whole outbound list, so that you know whom you may write to. " +
			"asks_in_client says whether a client that can ask its person does so about what needs approval. " +
			"ask_changes is how many messages you may change within ten minutes, by one command or many; more wait for a person.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"policy show"},
	}, func(ctx context.Context, call *discovery.Call, args *policyShowArgs) (*PolicyShowResult, error) {
		call.Account = args.Account
		r := &PolicyShowResult{Principal: call.Principal, Admin: call.Admin, Profile: call.Profile, Deny: []string{}, Accounts: []AccountPolicy{}}
		settings, err := argument.Settings(ctx, d.Store)
		if err != nil {
			return nil, err
		}
		for path := range strings.SplitSeq(settings["deny"], ",") {
			if path != "" {
				r.Deny = append(r.Deny, path)
			}
		}
		r.CommandsPerMinute, _ = strconv.Atoi(settings["commands_per_minute"]) // the vault keeps integers
		r.SendsPerHour, _ = strconv.Atoi(settings["sends_per_hour"])
		r.ChangesPerHour, _ = strconv.Atoi(settings["changes_per_hour"])
		r.AsksInClient = settings[AskSetting] == "on" && !call.Unasked
		stopped, err := d.Store.Stopped(ctx, vault.StopTime)
		if err != nil {
			return nil, err
		}
		if stopped != nil {
			r.Stopped = answer.Capital(stopped.Error())
		}
		accounts, err := d.doctorAccounts(ctx, args.Account)
		if err != nil {
			return nil, err
		}
		for i := range accounts {
			r.Accounts = append(r.Accounts, policyOf(&accounts[i], call.Admin))
		}
		return r, nil
	})
}

// policyBrief is what the caller may do; what is left out is not so.
type policyBrief struct {
	Principal         string                     `json:"principal"`
	Admin             bool                       `json:"admin,omitempty"`
	Profile           string                     `json:"profile"`
	Stopped           string                     `json:"stopped,omitempty"`
	Deny              []string                   `json:"deny,omitempty"`
	CommandsPerMinute int                        `json:"commands_per_minute"`
	SendsPerHour      int                        `json:"sends_per_hour"`
	ChangesPerHour    int                        `json:"changes_per_hour"`
	AsksInClient      bool                       `json:"asks_in_client,omitempty"`
	Accounts          discovery.Table[policyRow] `json:"accounts"`
}

// policyRow is an account. May has the words read, change, send, reply, destroy and codes; AskChanges
// is empty where any number may be changed; Hides says which rules may
// hide messages; Recipients are those that may be written to, everybody where it is empty;
// Senders are judged where the account knows whose word on them counts;
// Folders are allowed although they are not the account's own, HideFolders are hidden.
type policyRow struct {
	Account      string    `json:"account"`
	Mode         mail.Mode `json:"mode"`
	May          string    `json:"may"`
	AskChanges   string    `json:"ask_changes"`
	Hides        string    `json:"hides"`
	Senders      string    `json:"senders"`
	Recipients   string    `json:"recipients"`
	AllowFolders []string  `json:"allow_folders"`
	HideFolders  []string  `json:"hide_folders"`
}

// Brief is one row for each account.
func (r *PolicyShowResult) Brief() policyBrief {
	b := policyBrief{r.Principal, r.Admin, r.Profile, r.Stopped, r.Deny, r.CommandsPerMinute, r.SendsPerHour, r.ChangesPerHour, r.AsksInClient, discovery.Table[policyRow]{}}
	var rows []policyRow
	for _, a := range r.Accounts {
		row := policyRow{Account: a.ID, Mode: a.Mode, May: "read", Hides: strings.TrimSpace(words(a.InboundList, "senders") + words(a.SubjectFilter, "subjects") + words(a.HidesFolders, "folders")),
			AllowFolders: a.AllowFolders, HideFolders: a.HideFolders}
		row.May += words(a.MayChange, "change") + words(a.MaySend && !a.NeedsApproval, "send") + words(a.MaySend && a.NeedsApproval, "send-when-approved") + words(a.ReplyUnasked, "reply") +
			words(a.MayDestroy && !a.DestroyAsks, "destroy") + words(a.MayDestroy && a.DestroyAsks, "destroy-when-approved") + words(a.GivesCodes, "codes")
		if a.AskChanges != nil {
			row.AskChanges = strconv.Itoa(*a.AskChanges)
		}
		if a.JudgesSenders {
			row.Senders = "judged"
		}
		if a.MaySend && a.Outbound.Enabled {
			row.Recipients = a.Outbound.brief()
		}
		rows = append(rows, row)
	}
	b.Accounts = discovery.TableOf(rows)
	return b
}

// words is a word behind a space if it applies.
func words(applies bool, word string) string {
	if !applies {
		return ""
	}
	return " " + word
}

func policyOf(a *mail.Account, admin bool) AccountPolicy {
	p, _ := mail.CompilePolicy(a) // a policy that cannot be made is nil and allows nothing
	allow, hide := a.AllowFolders, a.HideFolders
	if !admin {
		allow, hide = slices.DeleteFunc(slices.Clone(allow), p.HidesFolder), nil
	}
	var asks *int
	if n := p.AskChanges(); n >= 0 && p.MayFile() {
		asks = &n
	}
	send := p.MaySend() && !a.SMTP.IsZero()
	return AccountPolicy{ID: a.Name, Mode: a.Mode, MayChange: p.MayFile(), AskChanges: asks, MaySend: send, NeedsApproval: send && p.NeedsApproval(), ReplyUnasked: send && p.RepliesUnasked(),
		MayDestroy: p.MayDestroy(), DestroyAsks: p.MayDestroy() && p.DestroyNeedsApproval(), GivesCodes: p.GivesCodes(),
		InboundList: a.AllowIn.Enabled, JudgesSenders: p.Judges(), SubjectFilter: a.SubjectPattern != "", Outbound: shownList(a.AllowOut),
		AllowFolders: allow, HidesFolders: p.HidesFolders(), HideFolders: hide}
}
