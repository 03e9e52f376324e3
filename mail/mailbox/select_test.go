package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// Select finds what Search finds, all of it, but for what is at its destination already; what the
// policy hides is not there, and what is masked is not found.
func TestSelectIsEveryMatchThatTheActionChanges(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "selected", func(a *mail.Account) {
			a.Mode, a.AllowIn = mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"@example.org"}}
		})
		for _, f := range []string{"Trash", "Box"} {
			must(t, b.Admin.Create(b.In(f), nil).Wait())
		}
		offers := slices.Repeat([]letter{{Subject: "offer", Extra: "List-Id: <l.example.org>\r\n"}}, 60)
		b.Add("INBOX", append(offers, letter{Subject: "offer", From: "eve@example.net"}, letter{Subject: "offer", Flags: []imap.Flag{imap.FlagAnswered}}, letter{Subject: "other"},
			letter{Subject: "Your code is 482913", Body: "Your code is 482913\r\n", Date: time.Now().Format(time.RFC1123Z)})...)
		b.Add("Box", letter{Subject: "Offer"})
		b.Add("Trash", letter{Subject: "offer"})
		for _, c := range []struct {
			q    mailbox.SearchQuery
			do   mail.Action
			want string
		}{
			{mailbox.SearchQuery{Subject: "offer"}, mail.Action{Do: mail.DoTrash}, "62, 1 answered, 60 bulk, 0 known of Box INBOX"},
			{mailbox.SearchQuery{Subject: "offer", Everywhere: true}, mail.Action{Do: mail.DoTrash}, "62, 1 answered, 60 bulk, 0 known of Box INBOX"},
			{mailbox.SearchQuery{Subject: "offer", Everywhere: true}, mail.Action{Do: mail.DoMove, To: b.In("Box")}, "62, 1 answered, 60 bulk, 0 known of INBOX Trash"},
			{mailbox.SearchQuery{Folders: []string{b.In("Trash")}}, mail.Action{Do: mail.DoTrash}, "invalid"},
			{mailbox.SearchQuery{Text: "482913"}, mail.Action{Do: mail.DoTrash}, "not_found"},
			{mailbox.SearchQuery{From: "eve"}, mail.Action{Do: mail.DoTrash}, "not_found"},
			{mailbox.SearchQuery{}, mail.Action{Do: mail.DoTrash}, "invalid"},
			{mailbox.SearchQuery{Subject: "offer", MaxMatches: 61}, mail.Action{Do: mail.DoTrash}, "invalid"},
			{mailbox.SearchQuery{Subject: "offer"}, mail.Action{Do: mail.DoMove, To: b.In("Nowhere")}, "not_found"},
			{mailbox.SearchQuery{Subject: "offer"}, mail.Action{Do: mail.DoMove, To: b.In("Drafts")}, "read_only"},
			{mailbox.SearchQuery{Subject: "offer"}, mail.Action{Do: mail.DoFlags, Add: []string{`\Deleted`}}, "invalid"},
		} {
			s, err := b.Select(t.Context(), account, c.q, c.do)
			if got := selected(s, err); got != c.want {
				t.Errorf("%+v, %+v: %s (%v), want %s", c.q, c.do, got, err, c.want)
			}
		}
		b.Dir.Edit(func(a *mail.Account) { a.Mode = mail.ReadOnly })
		_, err := b.Select(t.Context(), account, mailbox.SearchQuery{Subject: "offer"}, mail.Action{Do: mail.DoTrash})
		mailtest.WantKind(t, err, mail.KindReadOnly)
	})
}

// selected is what of a selection is compared.
func selected(s *mailbox.Selection, err error) string {
	if err != nil {
		var e *mail.Error
		errors.As(err, &e)
		return string(e.Kind)
	}
	var answered, bulk, known int
	var folders []string
	for _, m := range s.Messages {
		for _, c := range []struct {
			is bool
			n  *int
		}{{m.Answered, &answered}, {m.Bulk, &bulk}, {m.Known, &known}} {
			if c.is {
				*c.n++
			}
		}
		folders = append(folders, m.Ref.Folder[strings.LastIndexAny(m.Ref.Folder, "./")+1:])
	}
	slices.Sort(folders)
	return fmt.Sprintf("%d, %d answered, %d bulk, %d known of %s", len(s.Messages), answered, bulk, known, strings.Join(slices.Compact(folders), " "))
}
