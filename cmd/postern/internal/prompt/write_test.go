package prompt

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// fakePerson is at the prompt with a home directory and an editor of their own.
type fakePerson struct {
	*conversation
	t    *testing.T
	home string
	env  map[string]string
}

func newPerson(t *testing.T, change func(*mail.Account)) *fakePerson {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	p := &fakePerson{t: t, home: home, env: map[string]string{"XDG_STATE_HOME": filepath.Join(home, "state"), "POSTERN_ATTACHMENTS": filepath.Join(home, "attachments")}}
	p.conversation = talkWith(t, func(name string) string { return p.env[name] }, change)
	p.run1(t, "mail list")
	return p
}

// editor has EDITOR be a script, which gets the file as $1.
func (p *fakePerson) editor(script string) {
	p.t.Helper()
	if runtime.GOOS == "windows" {
		p.t.Skip("the editor is a script of a shell")
	}
	p.env["EDITOR"] = p.file("editor", "#!/bin/sh\n"+script+"\n", 0o700)
}

func (p *fakePerson) file(name, text string, mode os.FileMode) string {
	p.t.Helper()
	file := filepath.Join(p.home, name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// types types lines, and returns what was written.
func (p *fakePerson) types(lines ...string) string {
	p.t.Helper()
	out := p.at(lines...)
	if err := p.run(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return out.String()
}

// kept are the letters that are kept.
func (p *fakePerson) kept() (texts []string) {
	files, _ := filepath.Glob(filepath.Join(p.home, "state", "postern", "letters", "*", "letter.txt"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			p.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func sendsToAll(a *mail.Account) {
	a.Mode, a.AllowOut = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"*"}}
}

func asksAboutAll(a *mail.Account) {
	sendsToAll(a)
	a.Mode = mail.Approve
}

func drafts(a *mail.Account)   { a.Mode = mail.Draft }
func readOnly(a *mail.Account) { a.Mode = mail.ReadOnly }

const answers = `awk '{ print } /^$/ && !done { print "Thank you.\n"; done = 1 }' "$1" >"$1.new" && mv "$1.new" "$1"`

// oneLine is text as words alone, wherever its lines were broken.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// What a person wrote is in a file, and they know where, until it is in the outbox or a draft.
func TestALetterThatDidNotLeaveIsKept(t *testing.T) {
	accounts := map[string]func(*mail.Account){"sends": sendsToAll, "asks": asksAboutAll, "drafts": drafts, "reads": readOnly}
	people := map[string]*fakePerson{}
	for i, c := range testmain.Table[letterCase](t, "testdata/cases/letters.txt") {
		if testing.Short() && i%8 > 0 {
			continue
		}
		if people[c.Account] == nil {
			people[c.Account] = newPerson(t, accounts[c.Account])
		}
		t.Run(c.Name, func(t *testing.T) { c.run(t, people[c.Account]) })
	}
}

// letterCase is what a person types for a letter, in lines that | parts, what that says, and what
// a letter that is kept holds; empty for none.
type letterCase struct{ Account, Name, Editor, Lines, Says, Kept string }

// noEditor has a letter be typed.
const noEditor = "-"

func (c letterCase) run(t *testing.T, p *fakePerson) {
	for _, former := range []string{"state", "once"} {
		if err := os.RemoveAll(filepath.Join(p.home, former)); err != nil {
			t.Fatal(err)
		}
	}
	switch c.Editor {
	case "":
		p.env["EDITOR"] = "no-such-editor-anywhere"
	case noEditor:
		p.env["EDITOR"] = ""
	default:
		p.editor(strings.ReplaceAll(c.Editor, "ANSWERS", answers))
	}
	out := p.types(strings.Split(c.Lines, "|")...)
	if !strings.Contains(oneLine(out), strings.TrimSpace(c.Says)) {
		t.Errorf("it does not say %q:\n%s", c.Says, out)
	}
	kept := p.kept()
	if c.Kept == "" && len(kept) > 0 || c.Kept != "" && (len(kept) != 1 || !strings.Contains(kept[0], c.Kept)) {
		t.Errorf("kept: %q\n%s", kept, out)
	}
	if told := strings.Contains(out, "letter.txt"); told != (c.Kept != "") {
		t.Errorf("the place is told: %v\n%s", told, out)
	}
	if left, _ := filepath.Glob(filepath.Join(p.home, "attachments", "staged-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A letter that is kept is taken up again as what it was, by one at a time.
func TestAKeptLetterIsTakenUpAgain(t *testing.T) {
	p := newPerson(t, sendsToAll)
	for _, c := range testmain.Table[struct {
		Editor, Lines, Says string
		Kept                int
	}](t, "testdata/cases/kept.txt") {
		p.editor(strings.ReplaceAll(c.Editor, "ANSWERS", answers))
		if out := p.types(strings.Split(c.Lines, "|")...); !strings.Contains(oneLine(out), c.Says) || len(p.kept()) != c.Kept {
			t.Errorf("%s: it does not say %q, or keeps another number than %d:\n%s\n%q", c.Lines, c.Says, c.Kept, out, p.kept())
		}
	}
	if a := p.do(t.Context(), "mail thread 22"); !strings.Contains(string(a.Data), "Thank you.") {
		t.Errorf("it is no answer: %s", a.Data)
	}
	// Without an editor, what cannot be read is left as it is.
	p.env["EDITOR"] = ""
	if out := p.types("write again"); !strings.Contains(oneLine(out), "an editor that mends it.") || !slices.Equal(p.kept(), []string{"Hello Ann\n"}) {
		t.Error(out, p.kept())
	}
	p.editor(`printf 'To: ann@example.org\n\nx' >"$1"`)
	files, _ := filepath.Glob(filepath.Join(p.home, "state", "postern", "letters", "*", keptFile))
	for _, want := range []string{"Sent to 1 recipient", "somebody is at work on it, or has sent it"} {
		out := p.at("e", "y")
		if p.takeUp(t.Context(), files[0]); !strings.Contains(out.String(), want) {
			t.Error(out.String())
		}
	}
}

// The editor is started as its person names it.
func TestAnEditorIsNamedWithItsArguments(t *testing.T) {
	p := newPerson(t, sendsToAll)
	p.editor(`test $# = 1 || echo "$2" >>"$HOME/said"; eval "file=\${$#}"; printf 'To: ann@example.org\n\nx' >"$file"`)
	spaced := p.file("the editor", "#!/bin/sh\nexec \""+p.env["EDITOR"]+"\" \"$@\"\n", 0o700)
	for _, value := range []string{spaced, p.env["EDITOR"] + ` -c "set tw=72"`, "'" + spaced + "' -c 'set tw=72'"} {
		p.env["VISUAL"] = value
		if out := p.types("write", "d"); !strings.Contains(out, "The draft is in Drafts") {
			t.Errorf("%s: %s", value, out)
		}
	}
	if said, _ := os.ReadFile(filepath.Join(p.home, "said")); string(said) != "set tw=72\nset tw=72\n" {
		t.Errorf("it got %q", said)
	}
}

// What is typed is checked before the next question; recipients that the word names are not
// asked for.
func TestWhatIsTypedForALetterIsChecked(t *testing.T) {
	p := newPerson(t, sendsToAll)
	file := p.file("plan.txt", "x", 0o600)
	out := p.types("write ann@example.org", "Bob", "bob@example.org", "Plan", filepath.Join(p.home, "none.txt"), p.home, file, "Noon?", ".", "y")
	out = strings.ReplaceAll(out, "Attach:\n"+file, "Attach: "+file) // a long path is on a line of its own
	for _, want := range []string{"postern> write ann@example.org\nNeither VISUAL nor EDITOR names an editor, so you type the letter here.\nCc: Bob\n", `Cc: "Bob" cannot be read as addresses, such as`, "\nCc: bob@example.org\nSubject: Plan\n",
		`none.txt".` + "\nAttach: ", "001\".\nAttach: ", "To: ann@example.org\nCc: bob@example.org\nSubject: Plan\nAttach: " + file + "\n1 line of text.", "Sent to 2 recipients"} {
		_, rest, found := strings.Cut(out, want)
		if !found {
			t.Fatalf("%q is not among the rest:\n%s", want, out)
		}
		out = rest
	}
	if out := p.types("forward 22 ann", "ann@example.org", "", ""); !strings.Contains(out, "\nTo: \"ann\" cannot be read") || !strings.Contains(out, "\nTo [ann, - for none]: ann@example.org\nCc: ") {
		t.Error(out)
	}
	// With several accounts and no usual one a new letter names those that there are.
	p.Accounts = func(context.Context) ([]string, error) { return []string{"demo", "work"}, nil }
	if out := p.types("write"); !strings.Contains(out, "Account [demo, - for none]: ") {
		t.Error(out)
	}
	p.run1(t, "account remove demo")
	if out := p.types("write"); !strings.Contains(out, "Account [demo or work, - for none]: ") {
		t.Error(out)
	}
}

// Where each message waits for the administrator, a person without that key is told so before
// and after they say yes.
func TestAPersonIsToldThatTheirLetterWaits(t *testing.T) {
	p := newPerson(t, asksAboutAll)
	p.editor(answers)
	p.Principal = gateway.Principal{Name: mail.PersonPrincipal}
	p.run1(t, "mail list")
	out := oneLine(p.types("reply 22", "y"))
	if !strings.Contains(out, "y has it wait for the administrator's approval, e edits it,") || strings.Contains(out, "y sends it") || strings.Count(out, "'approve' shows it") != 1 || len(p.kept()) != 0 {
		t.Error(out)
	}
	p.Shell = true
	shell := p.at("y")
	w, args, _ := wordOf("reply 22")
	if p.runWord(t.Context(), w, args); !strings.Contains(shell.String(), "'postern approve'") {
		t.Error(shell.String())
	}
}

// A letter quotes a message in the words of 'mail reply --quote'.
func TestAQuotationHasOneForm(t *testing.T) {
	p := newPerson(t, asksAboutAll)
	for _, id := range []string{"22", "50"} {
		m, _, _ := p.message(t.Context(), id, longest)
		head, _, _ := strings.Cut(quotation(m), "\n")
		waits := waitsAs(p.do(t.Context(), command("mail", "reply", id, "--quote", "--body", "x")))
		if entry, ok := resultOf[*commands.OutboxShowResult](t.Context(), p.conversation, command("outbox", "show", waits)); !ok || !strings.Contains(entry.Text, "\n"+head+"\n") {
			t.Errorf("%q is not in %+v", head, entry)
		}
	}
}

// letterServer takes a letter, and says what answer returns; it hangs up where that is empty.
func letterServer(t *testing.T, answer func() string) mail.Endpoint {
	t.Helper()
	s := scripted.Serve(t, func(c *scripted.Conn) {
		data := false
		scripted.AnswerLines("220 here\r\n", func(line string) (string, bool) {
			verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
			switch {
			case data && line == ".":
				data = false
				says := answer()
				return says, says == ""
			case data:
				return "", false
			case verb == "EHLO":
				return "250-here\r\n250 AUTH PLAIN\r\n", false
			case verb == "AUTH":
				return "235 welcome\r\n", false
			case verb == "DATA":
				data = true
				return "354 go on\r\n", false
			}
			return "250 yes\r\n", false
		})(c)
	})
	return mail.Endpoint{Host: "127.0.0.1", Port: s.Port, Security: mail.Plaintext}
}

// Where the connection ends before the server has answered, nobody says that it was not sent,
// and it is not offered again.
func TestALetterThatMayHaveLeftIsNotSentAgain(t *testing.T) {
	for mode, lines := range map[mail.Mode][]string{mail.ReadWrite: {"reply 22", "y"}, mail.Approve: {"reply 22", "y", "y"}} {
		t.Run(string(mode), func(t *testing.T) {
			p := newPerson(t, func(a *mail.Account) {
				sendsToAll(a)
				a.Mode, a.SMTP = mode, letterServer(t, func() string { return "" })
			})
			p.editor(answers)
			out := p.types(lines...)
			if !strings.Contains(out, "It may have left: ") || strings.Contains(out, "It was not sent.") || strings.Contains(out, "It waits in the outbox") {
				t.Errorf("%s", out)
			}
			if kept := p.kept(); len(kept) != 1 || strings.Count(out, ", e edits it, d drafts it") != 1 {
				t.Errorf("kept: %q\n%s", kept, out)
			}
		})
	}
}

// A long letter arrives whole.
func TestALongLetterArrivesWhole(t *testing.T) {
	p := newPerson(t, sendsToAll)
	text := strings.Repeat("Zwölf Boxkämpfer 👩‍👩‍👧 jagen "+strings.Repeat("Viktor ", 160)+".\r\n", 40)
	p.editor(`cp "$HOME/long" "$1"`)
	p.file("long", "To: ann@example.org\r\nSubject: Long\r\nAttach: ~/a, b\r\n\r\n"+text, 0o600)
	if out := p.types("write", "y", ""); !strings.Contains(out, "attach: ") {
		t.Fatal(out)
	}
	p.file("a, b.txt", "x", 0o600)
	p.file("long", "\ufeffTo: ann@example.org\r\nSubject: Long\r\nAttach: \"~/a, b.txt\"\r\n \t\r\n"+text, 0o600)
	if out := p.types("write", "d"); !strings.Contains(out, "The draft is in Drafts") {
		t.Fatal(out)
	}
	r, ok := resultOf[*commands.MailGetResult](t.Context(), p.conversation, "mail get --chars 20000 --folder Drafts --uid 2")
	if !ok || r.Message == nil {
		t.Fatalf("no draft: %v", r)
	}
	got, want := r.Message.BodyText, strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if len(got) < 19000 || !strings.HasPrefix(want, got[:19000]) {
		t.Errorf("it differs: %.200q", got)
	}
}

// A sender's text in the file for the editor adds no field, steers no terminal and sets no
// editor.
func TestASenderCannotWriteTheLetter(t *testing.T) {
	l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject")
	l.values["Subject"] = "Re: x\nCc: eve@example.net\x1b[2J"
	l.text = quotation(&commands.MessageDetail{Date: "2026-11-14T10:00:00Z", From: "Eve\n\x1b]0;x\a <eve@example.net>",
		BodyText: "One\x1b[2J\rtwo\tthree\n vim: set makeprg=x:\nex: no.\n"})
	const want = "To:\nCc:\nSubject: Re: x Cc: eve@example.net[2J\n\nOn 14 November 2026 at 10:00, Eve ]0;x <eve@example.net> wrote:\n> One[2Jtwo\tthree\n>  vim : set makeprg=x:\n> ex : no."
	if got := l.format(); got != want {
		t.Errorf("%q", got)
	}
}
