package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
)

const promptSign = "postern> "

// One sitting at the prompt, as a person has it.
func TestASittingAtThePrompt(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 100, 30, nil, "demo")
	x.sees("Tab completes", promptSign)
	x.types("mail li\t--limit 3\r")
	x.sees("mail list --limit 3", "demo, INBOX", "Help desk", "About this mailbox", "3 messages", promptSign)
	x.types("mail get --uid 50\r")
	x.sees("From:", "Help desk <help@example.org>", "Subject: About this mailbox", "│ ", "\nId: 50\n", promptSign)
	x.types("mail get --headers \t\t")
	x.sees("none", "curated", "all")
	x.types("\x03") // Ctrl-C gives up the line
	x.sees(promptSign)
	x.types("nonsense\r")
	x.sees("There is no command 'nonsense'.", "For example:", promptSign)
	x.types("help mail watch\r")
	x.sees("Arguments", "--subject", "Examples", promptSign)

	// Ctrl-C stops a command and not the prompt; meanwhile there is a line that says
	// what happens, which is gone then.
	x.types("mail watch --wait 4m\r")
	x.sees("waiting for mail in INBOX")
	x.types("\x03")
	x.sees("cancelled", promptSign)
	x.mu.Lock()
	if raw := x.raw.String(); !strings.Contains(raw[strings.LastIndex(raw, "waiting for mail"):], "\r\x1b[K") {
		t.Error("the line about the progress is not erased")
	}
	x.mu.Unlock()

	// A message that needs a person's word is shown as it will go, and asked about.
	x.types(`mail send --to "Ann Lee <ann@example.org>" --bcc eve@example.org --subject Hi --body "one\ntwo"` + "\r")
	x.sees("To:", "ann@example.org", "Goes to:", "eve@example.org", "│ one\n│ two\n\nSend exactly this?\ny sends it", "leaves it waiting: ")
	x.types("y\r")
	x.sees("It was sent", promptSign)

	// What was pasted along with a line, or behind an answer that is none, decides nothing, and is
	// no command later.
	x.types("mail send --to ann@example.org --subject Pasted --body hey\ry\rgibberish\r")
	x.sees("leaves it waiting: ")
	x.types("what\ry\r")
	x.sees("nothing was decided.", "leaves it waiting: ")
	x.types("n\r")
	x.sees("rejected", promptSign)
	x.types("\x1b[A") // the last line of the history
	x.sees("--body hey")
	x.types("\x15mail list --limit 1\r")
	x.sees("1 message", promptSign)
	if got := x.written(); strings.Contains(got, "There is no command 'y'") || strings.Contains(got, "'gibberish'") {
		t.Errorf("what was pasted ran: %s", got)
	}

	// One that waits is approved by its name alone; anything but yes leaves it there.
	x.types("mail send --to ann@example.org --subject Later --body '" + strings.Repeat("long line ", 8) + "'\r")
	x.sees("waiting: ")
	x.types("\r")
	out := x.sees("It waits in the outbox as ", promptSign)
	id := regexp.MustCompile(`outbox as ([a-z0-9]+)`).FindStringSubmatch(out)[1]
	x.types("outbox approve " + id + "\r")
	x.sees("Goes to:", "ann@example.org", "Subject:", "Later", "Code:", "│ long line", "\n\nSend exactly this?\ny sends it", "leaves it as it is: ")
	x.types("\r")
	x.sees("Nothing was done", promptSign)
	x.types("outbox approve " + id + "\r")
	x.sees("leaves it as it is: ")
	x.types("yes\r")
	x.sees("(sent)", "It was sent", promptSign)

	// So are messages that are to be deleted for good.
	x.types("account edit demo --destroy on\r")
	x.sees("\n" + promptSign)
	x.types("mail delete 50 --confirm\r")
	x.sees("To be deleted for good:", "Help desk", "About this mailbox", "leaves it waiting: ")
	x.types("\r")
	id = regexp.MustCompile(`outbox as ([a-z0-9]+)`).FindStringSubmatch(x.sees("It waits in the outbox as ", promptSign))[1]
	x.types("outbox approve " + id + "\r")
	x.sees("To be deleted for good:", "About this mailbox", "leaves them as they are: ")
	x.resize(45, 30) // too narrow for the id behind the sentence
	x.types("n\r")
	x.sees("Nothing was done.\n'outbox reject "+id+"' refuses it\n", promptSign)
	x.resize(100, 30)
	x.types("outbox reject " + id + "\r")
	x.sees("rejected", promptSign)

	// A window of another size is used from the next answer on.
	x.resize(40, 12)
	x.types("mail list --limit 2\r")
	for l := range strings.Lines(x.sees("demo, INBOX", "Help desk", "2 messages", promptSign)) {
		if strings.Contains(l, "Help desk") && len([]rune(l)) > 41 {
			t.Errorf("too wide: %q", l)
		}
	}
	x.types("help\r")
	x.sees("inbox [N]", "decide about")
	words, _, _ := strings.Cut(x.sees("Postern: a person's mail", promptSign), "Postern: a person's mail")
	for l := range strings.Lines(words) {
		if !strings.HasPrefix(l, promptSign) && len([]rune(strings.TrimRight(l, "\n"))) > 40 { // what was typed may be drawn anew with each key
			t.Errorf("too wide: %q", l)
		}
	}
	// What is too long for it comes in pages, and who does not see the end is not asked.
	x.types(`mail send --to ann@example.org --subject Long --body "` + strings.Repeat(`a\n`, 40) + `b"` + "\r")
	x.sees("Enter shows more,\nq stops: ")
	x.types("q\r")
	x.sees("you are not\nasked", "It waits in the outbox", promptSign)
	x.types("\x04")
	x.quits(0)
}

// The demo says what to try first, and that is what it shows: a sender who is another, text that
// a person would not see, and an agent's message that leaves when the person says so.
func TestTheDemoShowsThePoint(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 60, 40, []string{"NO_COLOR=1"}, "demo")
	welcome, _, _ := strings.Cut(x.sees("nothing leaves.", "1 message waits for you: 'approve' shows it.", promptSign), "Postern. ")
	tries := regexp.MustCompile(`(?m)^  (\S+(?: \S+)*)   ?`).FindAllStringSubmatch(welcome, -1)
	if lines := strings.Split(welcome, "\n"); len(lines) > 10 || len(tries) != 3 {
		t.Fatalf("%d lines say what to try: %q", len(lines), tries)
	}
	for l := range strings.Lines(welcome) {
		if len(strings.TrimRight(l, "\n")) > 60 {
			t.Errorf("too wide: %q", l)
		}
	}
	x.types("doctor\r")
	if got := x.sees("1 message waits", "'approve' shows", promptSign); strings.Contains(got, "postern approve") {
		t.Errorf("it names a command that is not the demo's: %s", got)
	}
	for i, sees := range [][]string{{"40  ", "the name shows another address: director@example.org", promptSign},
		{"mailbox-renewal.example.net", "(the link goes to", "336 hidden characters are left out: 'mail raw 43' shows", promptSign},
		{"1 of 1", "To:      Reader service <readers@example.org>", "By:      agent", "│ Yes, she may", "q ends: "}} {
		x.types(tries[i][1] + "\r")
		if got := x.sees(sees...); strings.Contains(got, "SYSTEM:") || strings.Contains(got, "already\napproved") {
			t.Errorf("hidden text is shown: %s", got)
		}
	}
	x.types("y\r")
	if got := x.sees("It was sent.", promptSign); strings.Contains(got, "wait") {
		t.Errorf("something waits still: %s", got)
	}
	x.types("mail list --folder Sent --limit 1\r")
	x.sees("Re: May readers", promptSign)
	// Everybody may be written to.
	x.types("mail send --to anybody@elsewhere.example --subject Hello --body x\r")
	x.sees("waiting: ")
	x.types("y\r")
	x.sees("It was sent", promptSign)
	x.types("\x04")
	x.quits(0)
}

// Ctrl-C ends a letter at any of its fields, and what was typed before is kept.
func TestCtrlCEndsALetter(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	x := onTerminal(t, 80, 40, []string{"EDITOR=", "VISUAL=", "XDG_STATE_HOME=" + state}, "demo")
	x.sees(promptSign)
	ctrlC := func() { // a prompt is seen before it reads keys
		for x.mode().Lflag&unix.ISIG != 0 {
			time.Sleep(time.Millisecond)
		}
		x.types("\x03")
	}
	for _, line := range []string{"reply 50", "forward 50", "write"} {
		x.types(line + "\r")
		x.sees("\nTo")
		ctrlC()
		x.sees("\nNothing was sent.\n" + promptSign)
	}
	kept := func() []string {
		files, _ := filepath.Glob(filepath.Join(state, "postern", "letters", "*", "letter.txt"))
		return files
	}
	if files := kept(); len(files) != 0 {
		t.Errorf("kept: %q", files)
	}
	x.types("write\r")
	x.sees("\nTo: ")
	x.types("ann@example.org\r")
	x.sees("\nCc: ")
	ctrlC()
	x.sees("It was not sent. What you wrote is in:\n", "'write again' takes it up.\n"+promptSign)
	if files := kept(); len(files) != 1 {
		t.Errorf("kept: %q", files)
	} else if text, err := os.ReadFile(files[0]); err != nil || !strings.HasPrefix(string(text), "To: ann@example.org\n") {
		t.Errorf("kept: %q, %v", text, err)
	}
	x.types("quit\r")
	x.quits(0)
}

// What was typed is there in the next sitting, without what must not be kept.
func TestThePromptRemembers(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	file := filepath.Join(t.TempDir(), "history")
	env := append(v.environment(true), prompt.HistoryVar+"="+file)
	x := onTerminal(t, 80, 24, env, "repl")
	x.sees(promptSign)
	for _, line := range []string{"config list", "agent send --from a:b --to c:d --subject Hi --body the-secret", "the-secret"} {
		x.types(line + "\r")
		x.sees("\n" + promptSign)
	}
	x.types("quit\r")
	x.quits(0)
	content, err := os.ReadFile(file)
	if err != nil || string(content) != "config list\nagent send --from a:b --to c:d --subject Hi\n" {
		t.Errorf("kept %q, %v", content, err)
	}
	x = onTerminal(t, 80, 24, env, "repl")
	x.sees(promptSign)
	x.types("\x1b[A\x1b[A") // up twice
	x.sees("config list")
	x.types("\r")
	x.sees("audit_retention", promptSign)
	x.types("\x04")
	x.quits(0)
	// It can be told to remember nothing.
	x = onTerminal(t, 80, 24, env, "repl", "--no-history")
	x.sees(promptSign)
	x.types("version\r")
	x.sees("ACLI", promptSign)
	x.types("\x04")
	x.quits(0)
	if after, _ := os.ReadFile(file); string(after) != string(content)+"config list\n" {
		t.Errorf("kept %q", after)
	}
}

func TestATerminalWithoutEmphasis(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{{"NO_COLOR=1"}, {"TERM=dumb"}} {
		x := onTerminal(t, 80, 24, env, "demo")
		x.sees(promptSign)
		x.types("mail list --limit 2\r")
		x.sees("Help desk", "2 messages", promptSign)
		x.types("approve\r")
		x.sees("\n│ Yes, she may", "\n│ > A reader asks", "q ends: ")
		x.types("\r")
		x.sees("Still waiting: 1.", promptSign)
		x.types("nonsense\r")
		x.sees("There is no command", promptSign)
		x.types("quit\r")
		x.quits(0)
		for _, style := range []string{"\x1b[1m", "\x1b[2m", "\x1b[1;31m"} {
			if strings.Contains(x.written(), style) {
				t.Errorf("%v: emphasis %q", env, style)
			}
		}
		if env[0] == "TERM=dumb" && strings.Contains(x.written(), "\x1b") {
			t.Errorf("a dumb terminal gets escapes: %q", x.written())
		}
	}
}

// SIGTERM ends the prompt, whatever it does, and leaves the terminal as it was.
func TestSIGTERMEndsThePrompt(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "mail watch --wait 4m"} {
		x := onTerminal(t, 80, 24, nil, "demo")
		x.sees(promptSign)
		if line != "" {
			x.types(line + "\r")
			x.sees("waiting for mail")
		}
		if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		x.quits(0)
	}
}

// With --json the answers are those of a script.
func TestThePromptInJSON(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 80, 24, nil, "demo", "--json")
	x.sees(promptSign)
	x.types("mail list --limit 1 --fields messages.subject\r")
	x.sees(`{"success":true,"data":{"messages":[{"subject":"About this mailbox"}]}`, promptSign)
	x.types("\x04")
	x.quits(0)
}
