package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// Whoever stops at a question, by ending the input there or with a no to the last one, leaves
// nothing. The keys are in the keyring where there is one.
func TestStoppingAtAnyQuestionLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	s.ring = memoryKeyring{}
	all := strings.SplitAfter(found+"|5|@example.org|Ann Lee||||y|", "|")
	for n := range len(all) - 1 {
		if testing.Short() && n%4 != 3 {
			continue
		}
		if out, err := s.asks(t, strings.Join(all[:n], "")); !errors.Is(err, context.Canceled) || strings.Count(out, "Nothing was stored.") != 1 {
			t.Errorf("stopped at question %d: %v\n%s", n+1, err, out)
		}
		s.untouched(t)
	}
	if out, err := s.asks(t, found+"|2||||n|"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	s.untouched(t)
	out, _ := s.sets(t, strings.Join(all, ""))
	kept := s.ring.(memoryKeyring)
	if len(kept) != 2 {
		t.Errorf("%d keys in the keyring", len(kept))
	}
	reference, err := os.ReadFile(house.AgentKeyFile(s.env["POSTERN_DB"]))
	if err != nil || !bytes.HasPrefix(reference, []byte("keyring:agent-")) {
		t.Errorf("%q, %v", reference, err)
	}
	for _, key := range kept {
		if strings.Contains(out, key) {
			t.Error("a key is shown")
		}
	}
}

// A wrong password is asked for again, a server that does not answer can be changed,
// and one that only sends can be left out.
func TestTheWizardMendsWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	dead := func(service string) func(*fakeMachine) {
		return func(s *fakeMachine) { s.srv[service].Port = closedPort(t) }
	}
	const mend = "ADDRESS|y|PW|2|CA|2|" // to the change of the servers
	for name, c := range map[string]struct {
		change func(*fakeMachine)
		lines  string
		said   string
	}{
		"wrong password": {func(*fakeMachine) {}, "ADDRESS|y|wrong-c4n4ry|2|CA|1|PW|ENDS", "did not accept the login"},
		// IMAP, with two ways back, SMTP, login name; what was changed stays so.
		"dead server": {dead("imaps"), mend + "back|2|1|IMAP|back||1|SMTP|1||2|CA|back|PW|ENDS", ": nothing answers at "},
		"dead server, whose port alone was wrong": {dead("imaps"), mend + "1|localhost:IMAPPORT|||||2|CA|ENDS", "FAILED:  imap"}, // SMTP and its port are proposed again
		"no server to send with":                  {dead("submissions"), mend + "|||2|||", "FAILED:  smtp"},
		"half of the settings":                    {func(s *fakeMachine) { delete(s.srv, "submissions") }, "ADDRESS|y|localhost:SMTPPORT|1||PW|2|CA|ENDS", "fill in the rest"},
		"nothing found":                           {func(s *fakeMachine) { clear(s.srv) }, "ADDRESS|1|IMAP|1|||PW|2|CA|ENDS", "No servers were found"},
		"a domain of this machine alone":          {func(*fakeMachine) {}, "Ann Lee <ann@localhost>|1|IMAP|1|none|ADDRESS|PW|2|CA||||2|||", "No servers were found"},
		"servers refused":                         {func(*fakeMachine) {}, "ADDRESS|n|1|IMAP|1|none||PW|2|CA||1||2|||", "Found by"},
	} {
		if testing.Short() && name != "wrong password" && name != "half of the settings" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMachine(t)
			c.change(s)
			if out, _ := s.sets(t, c.lines); !strings.Contains(out, c.said) {
				t.Errorf("%q is not said:\n%s", c.said, out)
			}
		})
	}
}

// What the form lets agents do is in the account, and told in words.
func TestTheFormSaysWhatAgentsMayDo(t *testing.T) {
	t.Parallel()
	for lines, c := range map[string]struct {
		mode    mail.Mode
		out, in []string
		name    string
		told    string
	}{
		"3||":                             {mail.Draft, nil, nil, "", "nobody: they write drafts, and you send them"},
		"1||Ann Lee||":                    {mail.Approve, []string{"*"}, nil, "Ann Lee", "everybody, each message after you approved it"},
		"|@example.org|||":                {mail.Approve, []string{"@example.org"}, nil, "", "anybody at example.org, each message after you approved it"},
		"4||bob@example.net,@e.org|Ann||": {mail.Reply, []string{"*"}, []string{"bob@example.net", "@e.org"}, "Ann", "some answers to bob@example.net, anybody at e.org go unasked"},
		"5|@example.org|Ann Lee||":        {mail.ReadWrite, []string{"@example.org"}, nil, "Ann Lee", "anybody at example.org"},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			t.Parallel()
			s := newMachine(t)
			s.ring = memoryKeyring{}
			out, a := s.sets(t, found+"|"+lines+"||y|")
			if a.Mode != c.mode || a.Destroy != mail.DestroyOff || a.DisplayName != c.name || a.AllowIn.Enabled || !slices.Equal(a.AllowOut.Entries, c.out) || !slices.Equal(a.AllowIn.Entries, c.in) {
				t.Errorf("%+v", a)
			}
			if !strings.Contains(out, c.told) || c.mode == mail.Draft && !strings.Contains(out, "may put it into the trash") {
				t.Errorf("%q is not told:\n%s", c.told, out)
			}
		})
	}
}

// At the end a client is connected with what was chosen, and the file says so as the screen does.
func TestTheWizardConnectsAClientWithWhatWasChosen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode string // the answers from the mode to the name
		args string
		told string
		not  string
	}{
		"send what I approve": {"1|||", `"args": ["serve", "--profile", "full"]`, "postern approve\n", "(--read-only)"},
		"only read":           {"2|", `"args": ["serve", "--read-only"]`, "It gets only the commands that read (--read-only).", "postern approve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMachine(t)
			file := filepath.Join(s.home, ".cursor", "mcp.json")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			out, _ := s.sets(t, found+"|"+c.mode+"|2|||")
			for _, words := range []string{c.told, "  1.  Cursor\n", "Cursor starts Postern as postern: " + file, "what came today?\n", "postern repl\n"} {
				if !strings.Contains(out, words) {
					t.Errorf("%q is not said:\n%s", words, out)
				}
			}
			if strings.Contains(out, c.not) || strings.Contains(out, "--print") || !strings.Contains(read(t, file), c.args) {
				t.Errorf("%q or what to paste is said, or another entry is written:\n%s\n%s", c.not, out, read(t, file))
			}
			s.listsMail(t, read(t, file))
		})
	}
}

// What is changed of a client with deny rules is said where that is chosen, before anything is
// stored. A file that cannot be changed is left alone, and the account stays.
func TestTheWizardSaysWhatItChangesOfAClient(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	writeFile(t, filepath.Join(s.home, ".claude.json"), "{ broken")
	out, _ := s.sets(t, found+"ENDS")
	rules := filepath.Join(s.home, ".claude", "settings.json")
	choices, chosen, _ := strings.Cut(out, "None now")
	if before, _, _ := strings.Cut(chosen, "(made)"); strings.Contains(choices, "deny") || !strings.Contains(before, "Rules that deny the tools of Claude Code the vault and the keys are added to "+rules+".") ||
		!strings.Contains(before, "Add the account default and connect Claude Code?") {
		t.Errorf("%s", out)
	}
	if !strings.Contains(out, "was left as it is") || read(t, filepath.Join(s.home, ".claude.json")) != "{ broken" {
		t.Errorf("%s", out)
	}
}

// The certificate of a server on this machine, such as Proton Mail Bridge's, is shown, and kept
// for the account when the person says so.
func TestACertificateThatThePersonTrusts(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	out, a := s.sets(t, "ADDRESS|y|PW|1|n|1|y|ENDS")
	block, rest := pem.Decode(a.CAPEM)
	if block == nil || len(rest) > 0 {
		t.Fatalf("kept is %q", a.CAPEM)
	}
	sum := sha256.Sum256(block.Bytes)
	for i := range 2 { // on two lines, as other programs write it
		if half := strings.ReplaceAll(fmt.Sprintf("% X", sum[16*i:16*i+16]), " ", ":"); strings.Count(out, half) != 2 {
			t.Errorf("%s is not shown each time:\n%s", half, out)
		}
	}
	s.listsMail(t, s.pasted(t, out))
	if left, err := os.ReadDir(s.passing); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The way back leads to the question before, with everything as it was then, and what is typed
// behind it counts.
func TestTheWayBackThroughTheWizard(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	writeFile(t, filepath.Join(s.home, "ca.pem"), read(t, s.ca))
	out, err := s.asks(t, strings.Join([]string{
		"back", // at the first question there is none
		"ann@nowhere.example|1|imap.nowhere.example|back||back|back|back", // no servers: the protection, the server twice, its kind, the address
		"ADDRESS|back|",           // the servers, the address, which is proposed again
		"y|back|y|PW",             // at the password
		"2|back|2|~/ca.pem",       // what now, and the file
		"wrong|back|back|PW|mine", // the name of the account, and behind it to the password
		"5|@example.org|back|back|1|@example.com|Ann", // to whom, the mode
		"back|Ann Lee||back|@example.net",             // the name, whose mail
		"back||2|back|3|1|back|1|back||y|",            // the keys twice, the client twice, and none
	}, "|"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, words := range []string{"This is the first question.", "Mail address [" + demo.Username + "]", "[imap.nowhere.example]"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is not said:\n%s", words, out)
		}
	}
	admin := regexp.MustCompile(`[A-Za-z0-9+/]{43}=`).FindString(out) // shown, since the second answer about keys counts
	v, err := vault.Open(t.Context(), s.env["POSTERN_DB"], vault.Keys{Admin: mail.NewSecret([]byte(admin))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Account(t.Context(), "mine")
	if err != nil || a.Mode != mail.Approve || a.DisplayName != "Ann Lee" || !slices.Equal(a.AllowOut.Entries, []string{"@example.com"}) || a.AllowIn.Enabled || len(a.AllowIn.Entries) > 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
