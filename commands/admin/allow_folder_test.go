package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestFoldersAreAllowedAndHidden(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	*b.folders = mailbox.FolderList{Folders: []mailbox.Folder{{Name: "INBOX"}, {Name: "HR"}}}
	if got := b.Do(t, "hide folder add HR Hr2 --account other"); fmt.Sprint(got.Data["absent"]) != "[Hr2]" {
		t.Errorf("hidden, of which one is there: %v", got.Data)
	}
	if got := b.Data(t, "hide folder add Hr3 --account other"); !strings.Contains(got, "no folder of this name now: Hr3.") {
		t.Errorf("hidden, and not there: %s", got)
	}
	b.OK(t, "hide folder remove HR Hr2 Hr3 --account other")
	for _, rule := range []string{"allow", "hide"} {
		e := b.OK(t, rule+" folder add Public/board 'Board papers' Public/board --account work")
		if fmt.Sprint(e.Data["added"]) != "[Public/board Board papers]" || fmt.Sprint(e.Data["entries"]) != "[Public/board Board papers]" {
			t.Errorf("add: %v", e.Data)
		}
		b.Fails(t, rule+" folder remove Public/board Nowhere --account work", discovery.NotFound, "none was removed")
		if e = b.OK(t, rule+" folder remove 'Board papers' --account work"); fmt.Sprint(e.Data["removed"]) != "[Board papers]" {
			t.Errorf("remove: %v", e.Data)
		}
		if e = b.OK(t, rule+" folder list --account work"); fmt.Sprint(e.Data["entries"]) != "[Public/board]" {
			t.Errorf("list: %v", e.Data)
		}
		if e = b.OK(t, rule+" folder list --account other"); fmt.Sprint(e.Data["entries"]) != "[]" {
			t.Errorf("another account has %v", e.Data)
		}
		b.Fails(t, rule+` folder add "a\nb" --account work`, discovery.ValidationError, "cannot be used")
	}
	b.Fails(t, "hide folder add INBOX --account work", discovery.ValidationError, "INBOX cannot be hidden")
	if a, err := b.vault.Account(t.Context(), "work"); err != nil || fmt.Sprint(a.AllowFolders, a.HideFolders) != "[Public/board] [Public/board]" {
		t.Errorf("%+v %v", a, err)
	}
	for _, line := range []string{"policy show --account work", "account show work"} {
		if e := b.OK(t, line+" --full"); strings.Count(fmt.Sprint(e.Data), "Public/board") != 2 {
			t.Errorf("%s: %v", line, e.Data)
		}
	}
	// An agent is told what is allowed, and no name of what is hidden.
	b.OK(t, "hide folder add Secret --account work")
	b.OK(t, "allow folder add Secret --account work")
	b.OK(t, "hide folder remove Public/board --account work")
	b.Principal.Admin = false
	if e := b.OK(t, "policy show --account work --full"); strings.Contains(fmt.Sprint(e.Data), "Secret") || !strings.Contains(fmt.Sprint(e.Data), "allow_folders:[Public/board]") {
		t.Errorf("%v", e.Data)
	}
	for _, line := range []string{"hide folder list --account work", "allow folder add x --account work", "hide folder remove Secret --account work"} {
		b.Fails(t, line, discovery.PermissionDenied, "You may not run")
	}
}

// While everything is stopped the administrator can bound what goes on afterwards.
func TestListsAreChangedWhileEverythingIsStopped(t *testing.T) {
	n := 0
	for _, c := range admin.Commands(&admin.Deps{}) {
		if strings.HasPrefix(c.Path, "allow ") || strings.HasPrefix(c.Path, "hide ") {
			if n++; !c.Standing {
				t.Errorf("%s does not run", c.Path)
			}
		}
	}
	if n != 12 {
		t.Errorf("%d commands", n)
	}
}
