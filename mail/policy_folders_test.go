package mail_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

func policyWith(t *testing.T, change func(*mail.Account)) *mail.Policy {
	t.Helper()
	a := mail.Account{Mode: mail.ReadWrite}
	change(&a)
	p, err := mail.CompilePolicy(&a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHiddenFoldersAreHiddenByEveryName(t *testing.T) {
	p := policyWith(t, func(a *mail.Account) { a.HideFolders = []string{"HR/Reviews", "INBOX.Private", "Été", "Salaries/"} })
	for name, hidden := range map[string]bool{
		"HR/Reviews": true, "hr/reviews": true, "HR/Reviews/2026": true, "INBOX/HR/Reviews": true, "HR/Reviews/": true, "HR": false, "HR/Reviews2": false, "x/HR/Reviews": false,
		"Private": true, "INBOX.Private": true, "inbox.private.x": true, "INBOX": false, "INBOXPrivate": false, "": false,
		"Salaries": true, "Salaries/2026": true, "INBOX.salaries": true, "Salaries2": false,
		"été": true, "Ete\u0301": false, "E\u0301te\u0301": true,
	} {
		if p.HidesFolder(name) != hidden {
			t.Errorf("%q hidden: %v", name, !hidden)
		}
	}
	if !p.AboveHidden("HR") || p.AboveHidden("HR/Reviews") || p.AboveHidden("H") || !p.HidesFolders() {
		t.Error("what is above a hidden folder")
	}
	if none := policyWith(t, func(*mail.Account) {}); none.HidesFolders() || none.HidesFolder("HR") || none.AllowsFolder("HR") {
		t.Error("a policy without folders hides or allows some")
	}
	var zero *mail.Policy
	if !zero.HidesFolder("INBOX") || !zero.HidesFolders() || zero.AllowsFolder("INBOX") || zero.MayGive(p) || p.MayGive(zero) {
		t.Error("no policy allows something")
	}
	p = policyWith(t, func(a *mail.Account) { a.AllowFolders = []string{"Public/board"} })
	if !p.AllowsFolder("Public/board") || p.AllowsFolder("Public/board/x") || p.AllowsFolder("Public") {
		t.Error("allowed are others than that folder")
	}
	for _, a := range []mail.Account{{HideFolders: []string{"inbox"}}, {HideFolders: []string{"INBOX/"}}, {HideFolders: []string{"/"}}, {HideFolders: []string{"a\nb"}}, {AllowFolders: []string{""}}} {
		a.Name, a.Protocol, a.Username, a.Auth, a.Mode = "x", mail.IMAP, "x", mail.AuthPassword, mail.ReadOnly
		if a.IMAP = (mail.Endpoint{Host: "x", Port: 993, Security: mail.TLS}); a.Validate() == nil {
			t.Errorf("%+v is taken", a)
		}
	}
}

// What may not leave one account does not leave by another.
func TestMayGive(t *testing.T) {
	of := func(spec string) *mail.Policy {
		return policyWith(t, func(a *mail.Account) {
			if spec == "board" {
				a.AllowFolders, spec = []string{"Public/board"}, "draft"
			}
			words := strings.Fields(spec)
			if a.Mode = mail.Mode(words[0]); spec != "RW off" {
				a.AllowOut = mail.AllowList{Enabled: true, Entries: words[1:]}
			}
		})
	}
	for _, c := range testmain.Table[struct {
		From, To string
		May      bool
	}](t, "testdata/cases/may_give.txt") {
		if of(c.From).MayGive(of(c.To)) != c.May {
			t.Errorf("%s to %s: %v", c.From, c.To, !c.May)
		}
	}
}
