package prompt

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/orderedjson"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// desk is a person at the prompt with a home directory and an editor of their own.
type desk struct {
	*conversation
	t    *testing.T
	home string
	env  map[string]string
}

func atDesk(t *testing.T, change func(*mail.Account)) *desk {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	d := &desk{t: t, home: home, env: map[string]string{"XDG_STATE_HOME": filepath.Join(home, "state"), "POSTERN_ATTACHMENTS": filepath.Join(home, "attachments")}}
	d.conversation = talkWith(t, func(name string) string { return d.env[name] }, change)
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nothing.Close() })
	d.Stdin = nothing
	d.run1(t, "mail list")
	return d
}

// editor has EDITOR be a script, which gets the file as $1.
func (d *desk) editor(script string) {
	d.t.Helper()
	if runtime.GOOS == "windows" {
		d.t.Skip("the editor is a script of a shell")
	}
	d.env["EDITOR"] = d.file("editor", "#!/bin/sh\n"+script+"\n", 0o700)
}

func (d *desk) file(name, text string, mode os.FileMode) string {
	d.t.Helper()
	file := filepath.Join(d.home, name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
	return file
}

// types types lines, and returns what was written.
func (d *desk) types(lines ...string) string {
	d.t.Helper()
	var out strings.Builder
	d.Stdout, d.prompt = &out, &typist{lines, &out}
	if err := d.run(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	return out.String()
}

// kept are the letters that are kept.
func (d *desk) kept() (texts []string) {
	files, _ := filepath.Glob(filepath.Join(d.home, "state", "postern", "letters", "*", "letter.txt"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			d.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func sendsToAll(a *mail.Account) {
	a.Mode, a.AllowOut = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"*"}}
}

const answers = `awk '{ print } /^$/ && !done { print "Thank you.\n"; done = 1 }' "$1" >"$1.new" && mv "$1.new" "$1"`

// What a person wrote is in a file, and they know where, until it is in the outbox or a draft.
func TestALetterThatDidNotLeaveIsKept(t *testing.T) {
	for i, tc := range []struct {
		name, editor string
		account      func(*mail.Account)
		lines        []string
		says         string
		kept         string // what a letter that is kept holds; empty for none
	}{
		{"sent", answers, sendsToAll, []string{"reply 22", "y"}, "Sent to 1 recipient", ""},
		{"kept as a draft", answers, sendsToAll, []string{"reply 22", "d"}, "The draft is in Drafts", ""},
		{"no word", answers, sendsToAll, []string{"reply 22", ""}, "It was not sent. What you wrote is in:", "Thank you."},
		{"thrown away, which is asked once more", answers, sendsToAll, []string{"reply 22", "t", "n", "t", "y"}, "It was thrown away, and not sent.", ""},
		{"not thrown away after all", answers, sendsToAll, []string{"reply 22", "t", "", ""}, "It was not sent.", "Thank you."},
		{"two answers at once", answers, sendsToAll, []string{"reply 22", "ye", "no"}, "That is no answer, and nothing was sent. To: builders@example.net", "Thank you."},
		{"another word for yes", answers, sendsToAll, []string{"reply 22", "send", "y"}, "Sent to 1 recipient", ""},
		{"the editor fails behind it", answers + "; exit 3", sendsToAll, []string{"reply 22"}, "The editor failed: exit status 3. VISUAL or EDITOR names another one. It was not sent. What you wrote is in:", "Thank you."},
		{"the editor is killed", "kill -9 $$", sendsToAll, []string{"reply 22"}, "The editor failed: signal: killed", ""},
		{"and has a file of its own", `echo x >"$(dirname "$1")/.letter.txt.swp"; kill -9 $$`, sendsToAll, []string{"reply 22"}, "What you wrote is in:", "To: builders@example.net"},
		{"there is no such editor", "", sendsToAll, []string{"reply 22"}, "The editor failed: ", ""},
		{"it fails when the letter is edited again", `test -e "$HOME/once" && exit 1; touch "$HOME/once"; ` + answers, sendsToAll, []string{"reply 22", "e"}, "What you wrote is in:", "Thank you."},
		{"a field that is none", `echo "Hello Ann" >"$1"`, sendsToAll, []string{"write", ""}, "is none of To, Cc, Subject, Attach", "Hello Ann"},
		{"not UTF-8", `printf 'To: ann@example.org\n\nJ\374rgen' >"$1"`, sendsToAll, []string{"write", "y"}, "it is not in UTF-8", "J\xfcrgen"},
		{"no file to attach", `printf 'To: ann@example.org\nAttach: ~/none.pdf\n\nx' >"$1"`, sendsToAll, []string{"write", "y", ""}, "no such file", "none.pdf"},
		{"refused, then a draft", answers, func(a *mail.Account) { a.Mode = mail.Draft }, []string{"write ann@example.org", "y", "d"}, "The draft is in Drafts", ""},
		{"the person refuses it", answers, func(a *mail.Account) { sendsToAll(a); a.Mode = mail.Approve }, []string{"reply 22", "y", "n", ""}, "It was not sent. What you wrote is in:", "Thank you."},
		{"it waits", answers, func(a *mail.Account) { sendsToAll(a); a.Mode = mail.Approve }, []string{"reply 22", "y", ""}, "It waits in the outbox as", ""},
		{"nothing was written", ":", sendsToAll, []string{"reply 22", ""}, "Nothing was sent.", ""},
		{"an editor that does not wait, whose person does", `test -e "$HOME/once" || { touch "$HOME/once"; exit 0; }; ` + answers, sendsToAll, []string{"reply 22", "e", "y"}, "Sent to 1 recipient", ""},
		{"a forward to nobody", ":", sendsToAll, []string{"forward 22", ""}, "Nothing was sent.", ""},
		{"a blank file", `: >"$1"`, sendsToAll, []string{"reply 22"}, "Nothing was written, and nothing was sent.", ""},
		{"fields alone", `printf 'To: ann@example.org\nSubject: Files\n\n' >"$1"`, sendsToAll, []string{"write", ""}, "0 lines of text.", "Files"},
	} {
		if testing.Short() && i%3 > 0 { // each is a desk of its own, with its servers
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			d := atDesk(t, tc.account)
			if d.editor(tc.editor); tc.editor == "" {
				d.env["EDITOR"] = "no-such-editor-anywhere"
			}
			out := d.types(tc.lines...)
			if !strings.Contains(strings.Join(strings.Fields(out), " "), tc.says) {
				t.Errorf("it does not say %q:\n%s", tc.says, out)
			}
			kept := d.kept()
			if tc.kept == "" && len(kept) > 0 || tc.kept != "" && (len(kept) != 1 || !strings.Contains(kept[0], tc.kept)) {
				t.Errorf("kept: %q\n%s", kept, out)
			}
			if told := strings.Contains(out, "letter.txt"); told != (tc.kept != "") {
				t.Errorf("the place is told: %v\n%s", told, out)
			}
		})
	}
}

// A letter that is kept is taken up again as what it was, by one at a time.
func TestAKeptLetterIsTakenUpAgain(t *testing.T) {
	d := atDesk(t, sendsToAll)
	d.editor(answers)
	if out := d.types("write again"); !strings.Contains(out, "No letter is kept.") {
		t.Error(out)
	}
	if out := d.types("reply 22", ""); !strings.Contains(out, "letter.txt\n'write again' takes it up.") {
		t.Error(out)
	}
	d.editor("exit 1") // it is not started before the person says so
	if out := d.types("write again", ""); !strings.Contains(out, "It was not sent.\nTo: builders@example.net\nSubject: Re:") || len(d.kept()) != 1 {
		t.Error(out, d.kept())
	}
	d.editor(answers)
	d.types("forward 21 ann@example.org", "")
	out := d.types("write again", "write again 3", "write again x")
	if !strings.Contains(out, " 1  20") || !strings.Contains(out, " 2  20") || strings.Contains(out, " 3  20") || strings.Count(out, "2 letters kept: 'write again 1' takes up the newest.") != 2 {
		t.Error(out)
	}
	if out := d.types("write again 2", "y"); !strings.Contains(out, "Sent to 1 recipient") || len(d.kept()) != 1 {
		t.Error(out)
	}
	if data, _ := d.data(t.Context(), "mail thread 22"); !strings.Contains(fmt.Sprint(data), "Thank you.") {
		t.Errorf("it is no answer: %v", data)
	}
	if out := d.types("write again", "y"); !strings.Contains(out, "Below it follows: ") || !strings.Contains(out, "Sent to 1 recipient") || len(d.kept()) != 0 {
		t.Error(out)
	}
	// Without an editor, what cannot be read is left as it is.
	d.editor(`echo "Hello Ann" >"$1"`)
	d.types("write", "")
	d.env["EDITOR"] = ""
	if out := d.types("write again"); !strings.Contains(strings.Join(strings.Fields(out), " "), "an editor that mends it.") || !slices.Equal(d.kept(), []string{"Hello Ann\n"}) {
		t.Error(out, d.kept())
	}
	d.editor(`printf 'To: ann@example.org\n\nx' >"$1"`)
	files, _ := filepath.Glob(filepath.Join(d.home, "state", "postern", "letters", "*", keptFile))
	for _, want := range []string{"Sent to 1 recipient", "somebody is at work on it, or has sent it"} {
		var out strings.Builder
		d.Stdout, d.prompt = &out, &typist{[]string{"e", "y"}, &out}
		d.takeUp(t.Context(), files[0])
		if !strings.Contains(out.String(), want) {
			t.Error(out.String())
		}
	}
}

// The editor is started as its person names it.
func TestAnEditorIsNamedWithItsArguments(t *testing.T) {
	d := atDesk(t, sendsToAll)
	d.editor(`test $# = 1 || echo "$2" >>"$HOME/said"; eval "file=\${$#}"; printf 'To: ann@example.org\n\nx' >"$file"`)
	spaced := d.file("the editor", "#!/bin/sh\nexec \""+d.env["EDITOR"]+"\" \"$@\"\n", 0o700)
	for _, value := range []string{spaced, d.env["EDITOR"] + ` -c "set tw=72"`, "'" + spaced + "' -c 'set tw=72'"} {
		d.env["VISUAL"] = value
		if out := d.types("write", "d"); !strings.Contains(out, "The draft is in Drafts") {
			t.Errorf("%s: %s", value, out)
		}
	}
	if said, _ := os.ReadFile(filepath.Join(d.home, "said")); string(said) != "set tw=72\nset tw=72\n" {
		t.Errorf("it got %q", said)
	}
}

// What was typed without an editor is kept, too.
func TestALetterThatWasTypedIsKept(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lines []string
		kept  string
	}{
		{"given up at a field", []string{"write ann@example.org"}, ""},
		{"the input ends in the text", []string{"write ann@example.org", "", "", "Lunch", "", "Noon?"}, "Noon?"},
		{"more of it", []string{"reply 22 all", "", "-", "", "", "One.", ".", "e", "", "", "", "", "Two.", ".", ""}, "To: builders@example.net\nCc:\nSubject: Re: Reading room renovation: schedule\nAttach:\n\nOne.\nTwo.\n\nOn "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := atDesk(t, sendsToAll)
			out := d.types(tc.lines...)
			if kept := strings.Join(d.kept(), ""); !strings.Contains(kept, tc.kept) || (kept == "") != (tc.kept == "") {
				t.Errorf("kept: %q\n%s", kept, out)
			}
		})
	}
}

// What is typed is checked before the next question; recipients that the word names are not
// asked for.
func TestWhatIsTypedForALetterIsChecked(t *testing.T) {
	d := atDesk(t, sendsToAll)
	file := d.file("plan.txt", "x", 0o600)
	out := d.types("write ann@example.org", "Bob", "bob@example.org", "Plan", filepath.Join(d.home, "none.txt"), d.home, file, "Noon?", ".", "y")
	out = strings.ReplaceAll(out, "Attach:\n"+file, "Attach: "+file) // a long path is on a line of its own
	for _, want := range []string{"postern> write ann@example.org\nNeither VISUAL nor EDITOR names an editor, so you type the letter here.\nCc: Bob\n", `Cc: "Bob" cannot be read as addresses, such as`, "\nCc: bob@example.org\nSubject: Plan\n", `none.txt".` + "\nAttach: ", `001".` + "\nAttach: ", "To: ann@example.org\nCc: bob@example.org\nSubject: Plan\nAttach: " + file + "\n1 line of text.", "Sent to 2 recipients"} {
		_, rest, found := strings.Cut(out, want)
		if !found {
			t.Fatalf("%q is not among the rest:\n%s", want, out)
		}
		out = rest
	}
	if out := d.types("forward 22 ann", "ann@example.org", "", ""); !strings.Contains(out, "\nTo: \"ann\" cannot be read") || !strings.Contains(out, "\nTo [ann, - for none]: ann@example.org\nCc: ") {
		t.Error(out)
	}
}

// Where each message waits for the administrator, a person without that key is told so before
// and after they say yes.
func TestAPersonIsToldThatTheirLetterWaits(t *testing.T) {
	d := atDesk(t, func(a *mail.Account) { sendsToAll(a); a.Mode = mail.Approve })
	d.editor(answers)
	d.Principal = gateway.Principal{Name: mail.PersonPrincipal}
	d.run1(t, "mail list")
	out := strings.Join(strings.Fields(d.types("reply 22", "y")), " ")
	if !strings.Contains(out, "y has it wait for the administrator's approval, e edits it,") || strings.Contains(out, "y sends it") || strings.Count(out, "'approve' shows it") != 1 || len(d.kept()) != 0 {
		t.Error(out)
	}
	d.Shell = true
	var shell strings.Builder
	d.Stdout, d.prompt = &shell, &typist{[]string{"y"}, &shell}
	w, args, _ := wordOf("reply 22")
	if d.runWord(t.Context(), w, args); !strings.Contains(shell.String(), "'postern approve'") {
		t.Error(shell.String())
	}
}

// A letter quotes a message in the words of 'mail reply --quote'.
func TestAQuotationHasOneForm(t *testing.T) {
	d := atDesk(t, func(a *mail.Account) { sendsToAll(a); a.Mode = mail.Approve })
	for _, id := range []string{"22", "50"} {
		m, _ := d.message(t.Context(), id, longest)
		head, _, _ := strings.Cut(quotation(m), "\n")
		a := d.do(t.Context(), command("mail", "reply", id, "--quote", "--body", "x"))
		if entry := part(d.do(t.Context(), command("outbox", "show", waitsAs(a))), "data"); !strings.Contains(entry.Str("text"), "\n"+head+"\n") {
			t.Errorf("%q is not in %q", head, entry.Str("text"))
		}
	}
}

// letterServer takes a letter, and says what answer returns; nothing where that is empty.
func letterServer(t *testing.T, answer func() string) mail.Endpoint {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serveLetter(conn, answer)
		}
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.ParseUint(port, 10, 16)
	return mail.Endpoint{Host: host, Port: uint16(n), Security: mail.Plaintext}
}

func serveLetter(conn net.Conn, answer func() string) {
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, "220 here\r\n")
	data := false
	for in := bufio.NewScanner(conn); in.Scan(); {
		verb, _, _ := strings.Cut(strings.ToUpper(in.Text()), " ")
		switch {
		case data && in.Text() == ".":
			says := answer()
			if data = false; says == "" {
				return
			}
			fmt.Fprint(conn, says)
		case data:
		case verb == "EHLO":
			fmt.Fprint(conn, "250-here\r\n250 AUTH PLAIN\r\n")
		case verb == "AUTH":
			fmt.Fprint(conn, "235 welcome\r\n")
		case verb == "DATA":
			data = true
			fmt.Fprint(conn, "354 go on\r\n")
		default:
			fmt.Fprint(conn, "250 yes\r\n")
		}
	}
}

// Where the connection ends before the server has answered, nobody says that it was not sent,
// and it is not offered again.
func TestALetterThatMayHaveLeftIsNotSentAgain(t *testing.T) {
	for _, mode := range []mail.Mode{mail.ReadWrite, mail.Approve} {
		t.Run(string(mode), func(t *testing.T) {
			d := atDesk(t, func(a *mail.Account) {
				sendsToAll(a)
				a.Mode, a.SMTP = mode, letterServer(t, func() string { return "" })
			})
			d.editor(answers)
			lines := []string{"reply 22", "y"}
			if mode == mail.Approve {
				lines = append(lines, "y")
			}
			out := d.types(lines...)
			if !strings.Contains(out, "It may have left: ") || strings.Contains(out, "It was not sent.") || strings.Contains(out, "It waits in the outbox") {
				t.Errorf("%s", out)
			}
			if kept := d.kept(); len(kept) != 1 || strings.Count(out, ", e edits it, d drafts it") != 1 {
				t.Errorf("kept: %q\n%s", kept, out)
			}
		})
	}
}

// What a letter begins with.
func TestALetterBeginsWithWhatItsMessageSays(t *testing.T) {
	for _, tc := range []struct {
		name    string
		account func(*mail.Account)
		lines   []string
		says    string
		begins  string // of the file
	}{
		{"an account for drafts", func(a *mail.Account) { a.Mode = mail.Draft }, []string{"reply 22 all", ""}, "\ne edits it, d drafts it, t throws it away, Enter keeps the file: ", "To:\nCc:\nSubject:\nAttach:\n\nThank you."},
		{"its draft", func(a *mail.Account) { a.Mode = mail.Draft }, []string{"reply 22 all", "d", "read Drafts/2"}, "To:      Builders <builders@example.net>\nCc:      Facilities", ""},
		{"a read-only account", func(a *mail.Account) { a.Mode = mail.ReadOnly }, []string{"reply 22"}, "--mode approve", ""},
		{"no more than the word says", sendsToAll, []string{"reply 22 some"}, "'reply ID all' everybody", ""},
		{"a hidden code", sendsToAll, []string{"reply 49", ""}, "It was not sent", "To: accounts@example.com"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := atDesk(t, tc.account)
			d.editor(answers)
			out := d.types(tc.lines...)
			kept := strings.Join(d.kept(), "")
			if !strings.Contains(out, tc.says) || !strings.HasPrefix(kept, tc.begins) || (kept == "") != (tc.begins == "") {
				t.Errorf("kept: %q\n%s", kept, out)
			}
		})
	}
}

// What 'undo' takes back is not forgotten for a word that was mistyped.
func TestAMistypedWordLosesNothing(t *testing.T) {
	d := atDesk(t, sendsToAll)
	out := d.types("archive 50", "archive abc", "trash 4000", "undo", "undo", "search --limit 1 -- plan", "inbox x", "save", "open 22 9", "save 45", "save 22 ~/none", "repyl 45", "delete 50", "move 50", "45", "?")
	for _, want := range []string{"1 message moved back from Archive to INBOX, now imap:demo:INBOX:1:51.", "There is nothing to take back", "1 message of ", "save ID [PART] [PLACE]", "no such attachment", "The message has no attachment.", "is no directory", "Or the word 'reply' of this prompt?", "Or the word 'trash' of this prompt?", "Or the word 'archive' of this prompt?", "Or the word 'read' of this prompt?", "Usage: <command>"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// Messages of several folders that were read at once are marked as read.
func TestWhatWasReadIsMarked(t *testing.T) {
	d := atDesk(t, sendsToAll)
	d.types("archive 50", "mail list --folder Archive --limit 1")
	out := d.types("read 49 48 "+d.complete.ids("message_id")[0], "q")
	if !strings.Contains(out, "Your sign-in code") {
		t.Fatal(out)
	}
	data, _ := d.data(t.Context(), "mail list --unread --limit 100")
	for _, m := range messagesOf(data) {
		if id := m.Str("message_id"); strings.HasSuffix(id, ":49") || strings.HasSuffix(id, ":48") {
			t.Errorf("%s is unread", id)
		}
	}
	if data, _ = d.data(t.Context(), "mail list --unread --folder Archive"); len(messagesOf(data)) > 0 || data == nil {
		t.Errorf("unread in the archive: %v", data)
	}
}

// With several accounts and no usual one a new letter names those that there are.
func TestANewLetterAsksForItsAccount(t *testing.T) {
	d := atDesk(t, sendsToAll)
	d.Accounts = func(context.Context) ([]string, error) { return []string{"demo", "work"}, nil }
	if out := d.types("write"); !strings.Contains(out, "Account [demo, - for none]: ") {
		t.Error(out)
	}
	d.env["EDITOR"] = ""
	d.run1(t, "account remove demo")
	if out := d.types("write"); !strings.Contains(out, "Account [demo or work, - for none]: ") {
		t.Error(out)
	}
}

// A long letter arrives whole.
func TestALongLetterArrivesWhole(t *testing.T) {
	d := atDesk(t, sendsToAll)
	text := strings.Repeat("Zwölf Boxkämpfer 👩‍👩‍👧 jagen "+strings.Repeat("Viktor ", 160)+".\r\n", 40)
	d.editor(`cp "$HOME/long" "$1"`)
	d.file("long", "To: ann@example.org\r\nSubject: Long\r\nAttach: ~/a, b\r\n\r\n"+text, 0o600)
	if out := d.types("write", "y", ""); !strings.Contains(out, "attach: ") {
		t.Fatal(out)
	}
	d.file("a, b.txt", "x", 0o600)
	d.file("long", "\ufeffTo: ann@example.org\r\nSubject: Long\r\nAttach: \"~/a, b.txt\"\r\n \t\r\n"+text, 0o600)
	if out := d.types("write", "d"); !strings.Contains(out, "The draft is in Drafts") {
		t.Fatal(out)
	}
	data, ok := d.data(t.Context(), "mail list --folder Drafts --limit 1")
	if !ok {
		t.Fatal("no draft")
	}
	id := messagesOf(data)[0].Str("message_id")
	raw, ok := d.data(t.Context(), command("mail", "get", "--chars", "20000", id))
	want := strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	same := 0
	for got := messagesOf(raw)[0].Str("body_text"); same < len(got) && got[same] == want[same]; same++ {
	}
	if !ok || same < 19000 {
		t.Errorf("it differs from byte %d on: %q", same, messagesOf(raw)[0].Str("body_text")[same:same+30])
	}
	if left, _ := filepath.Glob(filepath.Join(d.home, "attachments", "staged-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What is not to be sent, or cannot be read, is refused before it is copied.
func TestWhatCannotBeAttachedIsRefused(t *testing.T) {
	d := atDesk(t, sendsToAll)
	huge := d.file("huge", "", 0o600)
	if err := os.Truncate(huge, 26<<20); err != nil {
		t.Skip(err)
	}
	for file, want := range map[string]string{"huge": "larger than 25 MiB", "": "not a regular file", "none": "no such file"} {
		d.editor(`printf 'To: ann@example.org\nAttach: ~/` + file + `\n\nx' >"$1"`)
		if out := d.types("write", "y", ""); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%q: %s", file, out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(d.home, "attachments", "staged-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A sender's text in the file for the editor adds no field, steers no terminal and sets no
// editor.
func TestASenderCannotWriteTheLetter(t *testing.T) {
	l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject")
	l.values["Subject"] = "Re: x\nCc: eve@example.net\x1b[2J"
	l.text = quotation(orderedjson.Object{{Name: "date", Value: "2026-11-14T10:00:00Z"}, {Name: "from", Value: "Eve\n\x1b]0;x\a <eve@example.net>"},
		{Name: "body_text", Value: "One\x1b[2J\rtwo\tthree\n vim: set makeprg=x:\nex: no.\n"}})
	const want = "To:\nCc:\nSubject: Re: x Cc: eve@example.net[2J\n\nOn 14 November 2026 at 10:00, Eve ]0;x <eve@example.net> wrote:\n> One[2Jtwo\tthree\n>  vim : set makeprg=x:\n> ex : no."
	if got := l.format(); got != want {
		t.Errorf("%q", got)
	}
}

// Help with a word is its page, in a shell as it is typed there; so is what is shown where the
// word lacks something.
func TestEveryWordHasAPage(t *testing.T) {
	c := talk(t)
	for _, w := range words() {
		for _, line := range []string{"help " + w.name, w.name + " -h", w.name + strings.Repeat(" x", w.high+1)} {
			if w.high < 0 && strings.HasSuffix(line, w.name) {
				line = "help " + w.name
			}
			var out strings.Builder
			c.Stdout = &out
			found, args, ok := wordOf(line)
			if !ok || found.name != w.name {
				t.Fatalf("%q is %+v", line, found)
			}
			c.runWord(t.Context(), found, args)
			for _, x := range append(w.examples, "Usage: "+w.name) {
				if !strings.Contains(out.String(), x) {
					t.Errorf("%q does not say %q: %s", line, x, out.String())
				}
			}
			if asks := AsksPage(args); (c.status == 0) != asks || asks != (c.Path(line) == "help") {
				t.Errorf("%q has status %d", line, c.status)
			}
		}
		for _, x := range w.examples {
			if found, args, ok := wordOf(x); !ok || len(args) < found.low || found.high >= 0 && len(args) > found.high {
				t.Errorf("the example %q cannot be typed", x)
			}
		}
	}
	c.Shell = true
	if page := c.look().Draw(words()[1].page(), "help"); !strings.Contains(page, "Usage: postern read ID...") || !strings.Contains(page, "  postern read 50\n") {
		t.Error(page)
	}
}
