package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

// MailDraftResult answers mail draft. The message id is there where the server
// told it.
type MailDraftResult struct {
	Account           string      `json:"account_id"`
	Folder            string      `json:"folder" acli:"untrusted"`
	ID                string      `json:"message_id,omitempty"`
	InternetMessageID string      `json:"internet_message_id"`
	Subject           string      `json:"subject" acli:"untrusted"`
	Size              int64       `json:"size_bytes"`
	NextAction        *NextAction `json:"next_action,omitempty"`

	short string // the id in a compact answer
}

// Brief says where the draft is.
func (r *MailDraftResult) Brief() sendingBrief { return sendingBrief{ID: r.short, Result: r.Summary()} }

func mailDraft(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "mail draft",
		Summary: "Leave it in Drafts",
		Details: "A person can send it from there. Nothing leaves, so the outbound list does not matter here and recipients can be left out.",
		Effect:  discovery.Write,
		Timeout: transferTime,
		Examples: []string{"mail draft --to ann@example.org --subject 'Lunch on Friday' --body 'Shall we say noon?'",
			"mail draft --reply-to 50 --to ann@example.org --body 'Thank you.'"},
	}, func(ctx context.Context, call *discovery.Call, args *composeArgs) (*MailDraftResult, error) {
		name, err := d.composeIn(ctx, call, args)
		if err != nil {
			return nil, err
		}
		m, err := d.draft(ctx, name, args)
		if err != nil {
			return nil, err
		}
		if err := d.charge(ctx, call, 1); err != nil {
			return nil, err
		}
		saved, err := d.Outbox.SaveDraft(ctx, name, m)
		if err != nil {
			return nil, err
		}
		if call.Target == "" {
			call.Target = saved.Folder
		}
		r := &MailDraftResult{Account: name, Folder: saved.Folder, InternetMessageID: saved.MessageID, Subject: saved.Subject, Size: saved.Size}
		switch {
		case saved.Hidden: // nothing shows it here
		case saved.Ref.UID != 0:
			r.ID = saved.Ref.String()
			r.short = d.shown(ctx, call, saved.Ref).of(saved.Ref)
			r.NextAction = next("See the draft", "mail", "get", r.ID)
		default:
			r.NextAction = next("See the drafts", "mail", "list", "--account", name, "--folder", saved.Folder)
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *MailDraftResult) Summary() string {
	return "The draft is in " + r.Folder + "; nothing was sent"
}
