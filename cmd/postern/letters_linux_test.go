package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-mail/postern/mail"
)

// atPrompt is a person at the prompt, whose editor asks for a line and makes a letter of it.
func atPrompt(t *testing.T, env ...string) (x *tty, home string, start func(args ...string) *tty) {
	t.Helper()
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Mode, a.AllowOut = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"*"}}
	v.add(t, a, servers.Password.Reveal())
	home = t.TempDir()
	editor := filepath.Join(home, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'Your line? '\nread line\nprintf 'To: ann@example.org\\n\\n%s\\n' \"$line\" >\"$1\"\nstty raw -echo\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	start = func(args ...string) *tty {
		return onTerminal(t, 80, 24, append(v.environment(true), append(env, "HOME="+home, "XDG_STATE_HOME="+home, "EDITOR="+editor)...), args...)
	}
	x = start("repl", "--no-history")
	x.sees(promptSign)
	return x, home, start
}

// An editor has the terminal as it was before the prompt, and leaves it to the prompt as it
// likes.
func TestAnEditorHasTheTerminal(t *testing.T) {
	x, _, _ := atPrompt(t)
	x.types("write\r")
	x.sees("Your line? ")
	x.types("Noon?\r")
	x.sees("Noon?", "To: ann@example.org", "Enter keeps the file: ")
	x.types("y\r")
	x.sees("Sent to 1 recipient", "\n"+promptSign)
	x.types("quit\r")
	x.quits(0)
}

// Tab in a letter that is typed proposes files where those are asked for, and no commands.
func TestTabInATypedLetter(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "plan.pdf"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, 80, 24, []string{"EDITOR=", "VISUAL=", "HOME=" + home, "XDG_STATE_HOME=" + home}, "demo")
	x.sees(promptSign)
	for _, s := range []step{{"Cc: ", "write ann@example.org\r"}, {"Subject: ", "\r"}, {"Attach: ", "hel\t\r"}, {"> ", "~/pl\t\r"}, {"> ", "hel\t\r"},
		{"Subject: hel\nAttach: ~/plan.pdf\n1 line of text.\ny shows it for your approval, e edits it, d drafts it, t throws it away,\nEnter keeps the file: ", ".\r"}, {"does, anything else goes back: ", "t\r"}, {promptSign, "y\r"}} {
		x.types(s.types)
		x.sees(s.sees)
	}
	x.types("hel\t\r") // and is that of commands again
	x.sees("help ", promptSign)
	x.types("quit\r")
	x.quits(0)
}

// Where Postern is told to end while the editor runs, the letter is kept, and the person
// learns where.
func TestALetterOutlivesPostern(t *testing.T) {
	x, home, start := atPrompt(t)
	x.types("write\r")
	x.sees("Your line? ")
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.types("Noon?\r")
	x.sees("It was not sent. What you wrote is in:", "letter.txt")
	x.quits(0)
	files, _ := filepath.Glob(filepath.Join(home, "postern", "letters", "*", "letter.txt"))
	if len(files) != 1 {
		t.Fatalf("kept: %q", files)
	}
	text, err := os.ReadFile(files[0])
	info, statErr := os.Stat(files[0])
	if err != nil || statErr != nil || !strings.Contains(string(text), "Noon?") || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", text, err, statErr)
	}
	// It is taken up in a shell, to be edited again, and sent.
	x = start("write", "again")
	x.sees("It was not sent.", "To: ann@example.org", "Enter keeps the file: ")
	x.types("e\r")
	x.sees("Your line? ")
	x.types("One?\r")
	x.sees("1 line of text.", "Enter keeps the file: ")
	x.types("\r")
	x.sees("letter.txt", "'postern write again' takes it up.")
	x.quits(6)
	x = start("write", "again")
	x.sees("Enter keeps the file: ")
	x.types("y\r")
	x.sees("Sent to 1 recipient")
	x.quits(0)
	x = start("write", "again")
	x.sees("No letter is kept.")
	x.quits(5)
}

// A pager that fails hides nothing; what is shown in its place stops also with Ctrl-C and Ctrl-D,
// and the inbox is as long as the window.
func TestAPagerThatFailsHidesNothing(t *testing.T) {
	x, _, _ := atPrompt(t, "PAGER=sh -c 'exit 3'")
	for _, stop := range []string{"q\r", interrupt, "\x04"} {
		x.types("inbox 40\r")
		x.sees("Help desk", "Enter shows more, q stops: ")
		if x.mode().Cc[unix.VINTR] != 0 {
			t.Error("Ctrl-C is a signal once the question is seen")
		}
		x.types(stop)
		if _, more, _ := strings.Cut(x.sees(promptSign), "\n"); strings.Contains(more, "Enter shows more") { // a key draws its own line anew
			t.Errorf("%q goes on: %s", stop, more)
		}
	}
	x.types("inbox\r")
	if page := x.sees("List the next page:", promptSign); strings.Contains(page, "Enter shows more") {
		t.Errorf("the inbox is longer than the window: %s", page)
	}
	x.types("quit\r")
	x.quits(0)
}
