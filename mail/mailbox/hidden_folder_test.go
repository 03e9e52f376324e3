package mailbox_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// hiddenFolderDoors are the methods to which the name of a folder can be told, or which look
// at all of them.
var hiddenFolderDoors = map[string]func(ctx context.Context, b *box, folder string) (any, error){
	"folders": func(ctx context.Context, b *box, _ string) (any, error) {
		return b.Folders(ctx, account, mailbox.FolderQuery{Counts: true})
	},
	"folders by name": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Folders(ctx, account, mailbox.FolderQuery{Pattern: f + "*", Counts: true})
	},
	"folders of a level": func(ctx context.Context, b *box, _ string) (any, error) {
		return b.Folders(ctx, account, mailbox.FolderQuery{Pattern: "%"})
	},
	"folders after": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Folders(ctx, account, mailbox.FolderQuery{After: f})
	},
	"list": func(ctx context.Context, b *box, f string) (any, error) {
		return b.List(ctx, account, mailbox.ListQuery{Folder: f})
	},
	"search": func(ctx context.Context, b *box, _ string) (any, error) {
		return b.Search(ctx, []string{account}, mailbox.SearchQuery{Text: "walls"})
	},
	"search of it": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Search(ctx, []string{account}, mailbox.SearchQuery{Folders: []string{f}, Text: "walls"})
	},
	"search of two": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Search(ctx, []string{account}, mailbox.SearchQuery{Folders: []string{"INBOX", f}, Text: "walls"})
	},
	"watch": func(ctx context.Context, b *box, f string) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return b.Watch(ctx, account, mailbox.WatchQuery{Folder: f})
	},
	"thread of INBOX": func(ctx context.Context, b *box, _ string) (any, error) {
		return b.Thread(ctx, b.Ref("INBOX", 1), mailbox.ThreadQuery{Chars: 100})
	},
	"copy to it": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Copy(ctx, account, b.refs("INBOX", 1), "", f)
	},
	"copy away to it": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Copy(ctx, "far", []mail.Ref{{Protocol: mail.IMAP, Account: "far", Folder: "INBOX", UID: 1}}, account, f)
	},
	"trash from it": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Trash(ctx, account, b.refs(f, 1))
	},
	"move to it": func(ctx context.Context, b *box, f string) (any, error) {
		return b.Move(ctx, account, b.refs("INBOX", 1), f)
	},
}

// A hidden folder, and one below it, is answered like a folder that does not exist, word for
// word, by every door; what is in it is found by none.
func TestAHiddenFolderDoesNotExist(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		answers := func(exists bool) map[string]string {
			user := fmt.Sprintf("hidden%v", exists)
			b := open(t, e, user, writable)
			secret, below, only := b.In("Secret"), b.In("Secret/Deeper"), b.In("Case/Files")
			a := b.Dir.Known[account]
			a.HideFolders = []string{secret, only}
			b.Dir.Set(a)
			a.Name = "far"
			b.Dir.Set(a)
			b.remembering()
			b.Add("INBOX", letter{Subject: "plan", Extra: "Message-ID: <1@x>\r\n", Body: "walls"})
			for _, f := range []string{secret, below, only} {
				if exists {
					must(t, b.Admin.Create(f, nil).Wait())
					b.Add(f, letter{Subject: "Re: plan", Extra: "Message-ID: <2@x>\r\nReferences: <1@x>\r\n", Body: "walls"})
				}
			}
			told := map[string]string{}
			// Which names are hidden is no matter of the server.
			names := []string{secret, below, strings.ToLower(secret), only}
			if e.Name != "in memory" {
				names = names[:testmain.Rounds(2, 4)]
			}
			for _, f := range names {
				doors := map[string]func(context.Context, *box, string) (any, error){}
				for name, door := range hiddenFolderDoors {
					doors[name] = door
				}
				for _, name := range append(readers, "flags") {
					doors[name] = func(_ context.Context, b *box, f string) (any, error) { return nil, b.through(name, b.Ref(f, 1)) }
				}
				for name, door := range doors {
					for range 2 {
						v, err := door(t.Context(), b, f)
						told[f+" "+name] = plainly(v, err, user)
					}
				}
			}
			return told
		}
		with, without := answers(true), answers(false)
		if len(with) != len(without) || len(with) < 2*len(hiddenFolderDoors) {
			t.Fatalf("%d answers and %d", len(with), len(without))
		}
		for name, got := range with {
			if want := without[name]; got != want {
				t.Errorf("%s:\nhidden  %s\nmissing %s", name, got, want)
			}
			if strings.Contains(got, "Re: plan") {
				t.Errorf("%s shows it: %s", name, got)
			}
		}
	})
}

var changing = regexp.MustCompile(`UIDValidity:\d+|Date:\S+ \S+|UIDNext:\d+|imap:\w+:[^ ]*|0x[0-9a-f]+|\([0-9. +]* secs\)\.?`)

// plainly is an answer without what differs from mailbox to mailbox.
func plainly(v any, err error, user string) string {
	text := told(nil, err)
	if e := (*mail.Error)(nil); err != nil && fmt.Sprintf("%T", err) == fmt.Sprintf("%T", e) {
		e = err.(*mail.Error)
		text += fmt.Sprintf("|%s|%s|%q|%s", e.Detail, e.Missing, e.Known, e.Reason)
	}
	switch v := v.(type) {
	case *mailbox.FolderList:
		if v != nil {
			for _, f := range v.Folders {
				f.Attributes = slices.DeleteFunc(f.Attributes, func(a string) bool { return strings.HasSuffix(a, "arked") }) // changes with time
				text += fmt.Sprintf("|%s %s %s %q %v", f.Name, f.Delimiter, f.Role, f.Attributes, f.Counts != nil)
			}
		}
	case *mailbox.Thread:
		if v != nil {
			for _, m := range v.Messages {
				text += "|" + m.Subject + " " + m.Text
			}
		}
	default:
		text += fmt.Sprintf("|%+v", v)
	}
	return changing.ReplaceAllString(strings.ReplaceAll(text, user, "USER"), "*")
}

// A hidden folder has no role: it is not where drafts go. What is sent is still kept there.
func TestAHiddenFolderHasNoRole(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "hiddenroles", writable)
		b.folders("Sent", "Drafts")
		b.Dir.Edit(func(a *mail.Account) { a.HideFolders = []string{b.In("Sent"), b.In("Drafts")} })
		own := func(role string) *mailbox.OwnMessage {
			return &mailbox.OwnMessage{Role: role, Once: "1@x", Source: []byte("From: a@example.org\r\nMessage-ID: <1@x>\r\nSubject: kept\r\n\r\nx\r\n")}
		}
		if put, err := b.File(t.Context(), "mail draft", account, own("drafts")); err != mailbox.ErrNoRole {
			t.Errorf("a draft: %+v %v", put, err)
		}
		for range 2 {
			must(t, second(b.File(t.Context(), "mail send", account, own("sent"))))
			if p, err := b.List(t.Context(), account, mailbox.ListQuery{Folder: b.In("Sent")}); err == nil {
				t.Errorf("listed: %+v", p)
			}
		}
		b.want("Sent", "kept")
		b.want("Drafts")
		list, err := b.Folders(t.Context(), account, mailbox.FolderQuery{})
		if err != nil || slices.ContainsFunc(list.Folders, func(f mailbox.Folder) bool { return f.Role == "sent" || f.Role == "drafts" }) {
			t.Errorf("%+v %v", list, err)
		}
	})
}
