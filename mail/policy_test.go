package mail

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

var must = testmain.Must

func compiledPolicy(t *testing.T, a Account) *Policy {
	t.Helper()
	p, err := CompilePolicy(&a)
	must(t, err)
	return p
}

func inboundPolicy(t *testing.T, entries ...string) *Policy {
	t.Helper()
	return compiledPolicy(t, Account{Mode: ReadOnly, AllowIn: AllowList{Enabled: true, Entries: entries}})
}

func header(lines ...string) rfc5322.Header {
	return rfc5322.ParseHeader([]byte(strings.Join(lines, "\r\n") + "\r\n\r\n"))
}

func TestPolicyJudgesEveryFromField(t *testing.T) {
	p := inboundPolicy(t, "@corp.com")
	for _, tt := range testmain.Table[struct {
		Name  string
		Want  bool
		Lines []string
	}](t, "testdata/cases/from.txt") {
		if got := p.Visible(header(tt.Lines...)); got != tt.Want {
			t.Errorf("%s: visible %v, want %v", tt.Name, got, tt.Want)
		}
	}
}

func TestPolicySubjectPattern(t *testing.T) {
	p := compiledPolicy(t, Account{Mode: ReadOnly, SubjectPattern: `^\[Ticket [0-9]+\] Grüße$`})
	for _, c := range testmain.Table[struct {
		In   string
		Want bool
	}](t, "testdata/cases/subject.txt") {
		if got := p.Visible(header(c.In)); got != c.Want {
			t.Errorf("%q: visible %v, want %v", c.In, got, c.Want)
		}
	}
	if empty := compiledPolicy(t, Account{Mode: ReadOnly, SubjectPattern: `^$`}); !empty.Visible(header("From: a@b.c")) {
		t.Error("a message without a subject does not match the empty subject")
	}
	both := compiledPolicy(t, Account{Mode: ReadOnly, SubjectPattern: "x", AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com"}}})
	for _, c := range testmain.Table[struct {
		In   string
		Want bool
	}](t, "testdata/cases/subject_and_list.txt") {
		if got := both.Visible(header(c.In)); got != c.Want {
			t.Errorf("%q: visible %v, want %v", c.In, got, c.Want)
		}
	}
}

func TestPolicyShowsOwnMessagesOnlyAsOwn(t *testing.T) {
	p := compiledPolicy(t, Account{Mode: ReadOnly, Email: "Me@Corp.com", SubjectPattern: "^x", AllowIn: AllowList{Enabled: true, Entries: []string{"friend@example.org"}}})
	for _, c := range testmain.Table[struct {
		In   string
		Want bool
	}](t, "testdata/cases/own.txt") {
		h := header(c.In)
		if got := p.VisibleAsOwn(h); got != c.Want {
			t.Errorf("%q: visible as own %v, want %v", c.In, got, c.Want)
		}
		if p.Visible(h) != (c.In == "From: friend@example.org\r\nSubject: x") {
			t.Errorf("%q: the inbound list takes the account's own address", c.In)
		}
	}
	if nobody := inboundPolicy(t); nobody.VisibleAsOwn(header("From: a@b.c")) || nobody.VisibleAsOwn(header("From: ")) {
		t.Error("an account without an address has messages of its own")
	}
}

func TestPolicyFailsClosed(t *testing.T) {
	var none *Policy
	for name, p := range map[string]*Policy{"nil": none, "zero": {}} {
		if p.Visible(header("From: a@b.c")) || p.VisibleAsOwn(header("From: a@b.c")) || p.ShowsAll() || p.CheckSend([]string{"a@b.c"}) == nil {
			t.Errorf("a %s policy allows something", name)
		}
	}
	if _, err := CompilePolicy(nil); err == nil {
		t.Error("no account has a policy")
	}
	for name, a := range map[string]Account{
		"pattern":        {Mode: ReadWrite, SubjectPattern: "("},
		"inbound entry":  {Mode: ReadWrite, AllowIn: AllowList{Entries: []string{"@corp.com", "@*.corp.com"}}},
		"outbound entry": {Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{""}}},
	} {
		if p, err := CompilePolicy(&a); err == nil || p != nil {
			t.Errorf("a wrong %s was compiled", name)
		}
	}
	if p := inboundPolicy(t); p.Visible(header("From: a@b.c")) || p.ShowsAll() {
		t.Error("an enabled empty list shows something")
	}
}

func TestPolicyShowsAllOnlyWhereNothingCanBeHidden(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Name    string
		Want    bool
		Account string
	}](t, "testdata/cases/shows_all.txt") {
		p := compiledPolicy(t, with(t, Account{}, c.Account))
		if got := p.ShowsAll(); got != c.Want {
			t.Errorf("%s: %v, want %v", c.Name, got, c.Want)
		}
		if p.ShowsAll() {
			for _, h := range []rfc5322.Header{{}, header("From: ((("), header("Subject: x\rFrom: y")} {
				if !p.Visible(h) {
					t.Errorf("%s: shows all and hides %q", c.Name, h.Fields())
				}
			}
		}
	}
}

func TestCheckSend(t *testing.T) {
	base := Account{AllowOut: AllowList{Enabled: true, Entries: []string{"@corp.com", "ann@example.org"}}}
	for _, c := range testmain.Table[struct {
		Name, Reason, Account, At string
		Recipients                []string
	}](t, "testdata/cases/check_send.txt") {
		err := compiledPolicy(t, with(t, base, c.Account)).CheckSend(c.Recipients)
		if c.Reason == "" {
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			continue
		}
		var refused *SendRefused
		if !errors.As(err, &refused) || refused.Reason != c.Reason || strings.Join(refused.Recipients, "|") != c.At {
			t.Errorf("%s: %#v, want %s %q", c.Name, err, c.Reason, c.At)
		} else if refused.Error() == "" || strings.ContainsAny(refused.Error(), "\r\n") {
			t.Errorf("%s: the refusal says nothing", c.Name)
		}
	}
}

func TestCheckSendTakesOnePlainAddressEach(t *testing.T) {
	p := compiledPolicy(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"*"}}})
	for _, r := range []string{
		"", " ", "a", "@b.c", "a@", "a@b@c", "a@b c", "a b@c.d", " a@b.c", "a@b.c ", "a@b.c\n", "a@b.c\r\nBcc: x@y.z", "a\x00@b.c",
		"a@b.c,d@e.f", "a@b.c;d@e.f", "<a@b.c>", "Ann <a@b.c>", "a@b.c (x)", `"a"@b.c`, "a@[192.0.2.1]", "a@b.c> SIZE=1",
		"a@b..c", "a@-b.c", "a@b_c.d", "a@.b", "a@b.", "=?utf-8?q?a?=@b.c", "a@b.c\u200b", "a\xff@b.c", "Team: a@b.c;",
		strings.Repeat("a", 255) + "@b.c", "a@" + strings.Repeat("b", 64) + ".c",
	} {
		var refused *SendRefused
		if err := p.CheckSend([]string{r}); !errors.As(err, &refused) || refused.Reason != ReasonAddress || !slices.Equal(refused.Recipients, []string{r}) {
			t.Errorf("%q: %v", r, err)
		}
	}
	for _, r := range []string{"a@b.c", "a.b+c=d@e.f", "a@localhost", "é@b.c", "a@bücher.example", "o'neil@b.c", "a_b@c-d.e"} {
		if err := p.CheckSend([]string{r}); err != nil {
			t.Errorf("%q: %v", r, err)
		}
	}
}

func TestValidateEntryPolicyForm(t *testing.T) {
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/entry.txt") {
		got, err := ValidateEntry(c.In)
		if err != nil || got != c.Want {
			t.Errorf("ValidateEntry(%q) = %q, %v, want %q", c.In, got, err, c.Want)
		}
		if again, err := ValidateEntry(got); err != nil || again != got {
			t.Errorf("%q is not stable: %q, %v", got, again, err)
		}
	}
	for _, in := range []string{
		"", " ", "@", "**", "*@corp.com", "@*.corp.com", "@.corp.com", "@corp.com.", "@corp..com", "corp.com", "@@corp.com", "@a@corp.com",
		" @corp.com", "@corp.com\n", "Ann <ann@corp.com>", "<ann@corp.com>", `"a b"@corp.com`, "@corp.com,@x.y", "@-corp.com", "@xn--a.example",
		"@\uff43orp.com", "@corp\u3002com", "\u212aim@corp.com", "@co\u00adrp.com", "@corp\xff.com", "@" + strings.Repeat("a", 64) + ".com",
	} {
		if got, err := ValidateEntry(in); err == nil || got != "" {
			t.Errorf("ValidateEntry(%q) = %q", in, got)
		}
	}
}

// The modes are a ladder, and the right to delete stands beside it.
func TestModesAllowEachMoreThanTheOneBefore(t *testing.T) {
	for _, tt := range []struct {
		mode    Mode
		destroy Destroy
		may     string // file, send and destroy, each with ? where a person is asked
	}{
		{ReadOnly, DestroyUnset, ""}, {ReadOnly, DestroyOff, ""}, {ReadOnly, DestroyOn, ""},
		{Draft, DestroyUnset, "file"}, {Draft, DestroyOff, "file"}, {Draft, DestroyOn, "file destroy?"},
		{Approve, DestroyUnset, "file send? destroy"}, {Approve, DestroyOff, "file send?"}, {Approve, DestroyOn, "file send? destroy?"},
		{Reply, DestroyUnset, "file send?"}, {Reply, DestroyOff, "file send?"}, {Reply, DestroyOn, "file send? destroy?"},
		{ReadWrite, DestroyUnset, "file send destroy"}, {ReadWrite, DestroyOff, "file send"}, {ReadWrite, DestroyOn, "file send destroy"},
		{"", DestroyOn, ""}, {"rw", DestroyOn, ""}, {"Draft", DestroyOn, ""}, {"rw", DestroyUnset, ""},
	} {
		p := compiledPolicy(t, Account{Mode: tt.mode, Destroy: tt.destroy})
		var may []string
		say := func(allowed, asks bool, what string) {
			if allowed && asks {
				what += "?"
			}
			if allowed {
				may = append(may, what)
			}
		}
		say(p.MayFile(), false, "file")
		say(p.MaySend(), p.NeedsApproval(), "send")
		say(p.MayDestroy(), p.DestroyNeedsApproval(), "destroy")
		if got := strings.Join(may, " "); got != tt.may {
			t.Errorf("mode %q, destroy %q: %q, want %q", tt.mode, tt.destroy, got, tt.may)
		}
		if err := p.CheckSend([]string{"ann@example.org"}); (err == nil) != p.MaySend() {
			t.Errorf("mode %q: %v", tt.mode, err)
		}
	}
	var none *Policy
	if none.MayFile() || none.MaySend() || none.MayDestroy() || !none.NeedsApproval() || !none.DestroyNeedsApproval() {
		t.Error("what has no policy may do something, or is not asked about")
	}
}

func TestAnAccountHasAModeAndARightThatExist(t *testing.T) {
	a := Account{Name: "work", Protocol: IMAP, IMAP: Endpoint{Host: "imap.example.org", Port: 993, Security: TLS}, Username: "ann", Auth: AuthPassword}
	for _, tt := range []struct {
		mode    Mode
		destroy Destroy
		ok      bool
	}{{ReadOnly, "", true}, {Draft, "on", true}, {Approve, "off", true}, {Reply, "off", true}, {ReadWrite, "on", true}, {"", "", false}, {"Reply", "", false}, {Draft, "yes", false}} {
		if a.Mode, a.Destroy = tt.mode, tt.destroy; (a.Validate() == nil) != tt.ok {
			t.Errorf("mode %q, destroy %q: %v", tt.mode, tt.destroy, a.Validate())
		}
	}
}
