package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
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

// Whoever stops at a question, by ending the input there, leaves nothing. The first
// answers are the same each time; the last of them makes everything.
func TestStoppingAtAnyQuestionLeavesNothing(t *testing.T) {
	s := newStation(t)
	s.ring = memoryKeyring{}
	all := append(s.answers(s.env["PW"]), "2", s.ca, "", "5", "@example.org", "Ann Lee", "", "", "", "y")
	for n := range len(all) {
		if testing.Short() && n%4 != 3 {
			continue
		}
		p, out := s.process(t, strings.Join(append(slices.Clone(all[:n]), ""), "\n"))
		if err := s.ask(t, p); !errors.Is(err, context.Canceled) || strings.Count(out.String(), "Nothing was stored.") != 1 {
			t.Errorf("stopped at question %d: %v\n%s", n+1, err, out)
		}
		s.untouched(t)
	}
	p, out := s.process(t, strings.Join(all, "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a, err := s.vault(t).Account(t.Context(), "default")
	if err != nil || a.Mode != mail.ReadWrite || !slices.Equal(a.AllowOut.Entries, []string{"@example.org"}) || a.DisplayName != "Ann Lee" || a.AllowIn.Enabled {
		t.Errorf("%+v, %v", a, err)
	}
	if !strings.Contains(out.String(), "anybody at example.org") {
		t.Errorf("the rules are not told:\n%s", out)
	}
	kept := s.ring.(memoryKeyring)
	if len(kept) != 2 {
		t.Errorf("%d keys in the keyring", len(kept))
	}
	reference, err := os.ReadFile(house.AgentKeyFile(s.env["POSTERN_DB"]))
	if err != nil || !bytes.HasPrefix(reference, []byte("keyring:agent-")) {
		t.Errorf("%q, %v", reference, err)
	}
	for _, key := range kept {
		if strings.Contains(out.String(), key) {
			t.Error("a key is shown")
		}
	}
	// Mode reply knows people, and hides nobody.
	s1 := newStation(t)
	s1.ring = memoryKeyring{}
	p, out = s1.process(t, strings.Join(append(s1.answers(s1.env["PW"]), "2", s1.ca, "", "4", "", "bob@example.net,@example.org", "Ann Lee", "", "", "", "y"), "\n")+"\n")
	if err := s1.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a, err = s1.vault(t).Account(t.Context(), "default")
	if err != nil || a.Mode != mail.Reply || !slices.Equal(a.AllowOut.Entries, []string{"*"}) || a.AllowIn.Enabled || !slices.Equal(a.AllowIn.Entries, []string{"bob@example.net", "@example.org"}) ||
		!strings.Contains(out.String(), "some answers to bob@example.net, anybody at example.org go unasked") {
		t.Errorf("%+v, %v\n%s", a, err, out)
	}
	// The last question answered with no.
	s2 := newStation(t)
	p, _ = s2.process(t, strings.Join(append(s2.answers(s2.env["PW"]), "2", s2.ca, "", "2", "", "2", "", "n"), "\n")+"\n")
	if err := s2.ask(t, p); err != nil {
		t.Error(err)
	}
	s2.untouched(t)
}

// A wrong password is asked for again, a server that does not answer can be changed,
// and one that only sends can be left out.
func TestTheWizardMendsWhatDoesNotWork(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*station)
		lines  func(*station) []string
		said   string
	}{
		"wrong password": {
			func(*station) {},
			func(s *station) []string {
				return append(s.answers("wrong-c4n4ry"), "2", s.ca, "1", s.env["PW"], "", "2", "", "2", "", "")
			}, "did not accept the login",
		},
		"dead server": {
			func(s *station) { s.srv["imaps"].Port = closedPort(t) },
			func(s *station) []string {
				host, port, _ := net.SplitHostPort(s.servers.IMAPAddr)
				return append(append(s.answers(s.env["PW"]), "2", s.ca, "2", // change the servers
					"back", "2", "1", host+":"+port, "back", "", "1", s.servers.SMTPAddr, "1", "", // IMAP, with two ways back, SMTP, login name
					"2", s.ca, "back", s.env["PW"]), // what was changed stays so
					s.readOnly()[2:]...)
			}, ": nothing answers at ",
		},
		"dead server, whose port alone was wrong": {
			func(s *station) { s.srv["imaps"].Port = closedPort(t) },
			func(s *station) []string {
				_, port, _ := net.SplitHostPort(s.servers.IMAPAddr)
				return append(append(s.answers(s.env["PW"]), "2", s.ca, "2", // change the servers
					"1", "localhost:"+port, "", "", "", ""), // SMTP and its port are proposed again
					s.readOnly()...)
			}, "FAILED:  imap",
		},
		"no server to send with": {
			func(s *station) { s.srv["submissions"].Port = closedPort(t) },
			func(s *station) []string {
				return append(s.answers(s.env["PW"]), "2", s.ca, "2", "", "", "", "2", "", "")
			}, "FAILED:  smtp",
		},
		"half of the settings": {
			func(s *station) { delete(s.srv, "submissions") },
			func(s *station) []string {
				_, smtp, _ := net.SplitHostPort(s.servers.SMTPAddr)
				return append([]string{demo.Username, "y", "localhost:" + smtp, "1", "", s.env["PW"]}, s.readOnly()...)
			}, "fill in the rest",
		},
		"nothing found": {
			func(s *station) { clear(s.srv) },
			func(s *station) []string {
				return append([]string{demo.Username, "1", s.servers.IMAPAddr, "1", "", "", s.env["PW"]}, s.readOnly()...)
			}, "No servers were found",
		},
		"a domain of this machine alone": {
			func(*station) {},
			func(s *station) []string {
				return append([]string{"Ann Lee <ann@localhost>", "1", s.servers.IMAPAddr, "1", "none", demo.Username, s.env["PW"], "2", s.ca}, "", "", "", "2", "", "")
			}, "No servers were found",
		},
		"servers refused": {
			func(*station) {},
			func(s *station) []string {
				return append([]string{demo.Username, "n", "1", s.servers.IMAPAddr, "1", "none", "", s.env["PW"], "2", s.ca}, "", "1", "", "2", "", "")
			}, "Found by",
		},
	} {
		if testing.Short() && name != "wrong password" && name != "half of the settings" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			c.change(s)
			p, out := s.process(t, strings.Join(c.lines(s), "\n")+"\n")
			if err := s.ask(t, p); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.Contains(out.String(), c.said) {
				t.Errorf("%q is not said:\n%s", c.said, out)
			}
			if _, err := s.vault(t).Account(t.Context(), "default"); err != nil {
				t.Error(err)
			}
			s.noSecretIn(t, out.String())
		})
	}
}

// What the form lets agents do is in the account, and told in words.
func TestTheFormSaysWhatAgentsMayDo(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		mode    mail.Mode
		out     []string
		told    []string
	}{
		"drafts":            {[]string{"3"}, mail.Draft, nil, []string{"may put it into the trash", "nobody: they write drafts, and you send them"}},
		"approve":           {[]string{"1", "", "Ann Lee"}, mail.Approve, []string{"*"}, []string{"everybody, each message after you approved it"}},
		"approve, to a few": {[]string{"", "@example.org", ""}, mail.Approve, []string{"@example.org"}, []string{"anybody at example.org, each message after you approved it"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			s.ring = memoryKeyring{}
			p, out := s.process(t, strings.Join(slices.Concat(s.answers(s.env["PW"]), []string{"2", s.ca, ""}, c.answers, []string{"", "", "", "y", ""}), "\n"))
			if err := s.ask(t, p); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			a, err := s.vault(t).Account(t.Context(), "default")
			if err != nil || a.Mode != c.mode || a.Destroy != mail.DestroyOff || !slices.Equal(a.AllowOut.Entries, c.out) {
				t.Errorf("%+v, %v", a, err)
			}
			for _, words := range c.told {
				if !strings.Contains(out.String(), words) {
					t.Errorf("%q is not told:\n%s", words, out)
				}
			}
		})
	}
}

// At the end a client is connected with what was chosen, and the file says so as the screen does.
func TestTheWizardConnectsAClientWithWhatWasChosen(t *testing.T) {
	for name, c := range map[string]struct {
		mode []string // the answers from the mode to the name
		args string
		told []string
		not  string
	}{
		"send what I approve": {[]string{"1", "", ""}, `"args": ["serve", "--profile", "full"]`, []string{"(--profile full)", "postern approve\n"}, "(--read-only)"},
		"only read":           {[]string{"2"}, `"args": ["serve", "--read-only"]`, []string{"It gets only the commands that read (--read-only)."}, "postern approve"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			cursor := filepath.Join(s.home, ".cursor")
			if err := os.Mkdir(cursor, 0o700); err != nil {
				t.Fatal(err)
			}
			p, out := s.process(t, strings.Join(slices.Concat(s.answers(s.env["PW"]), []string{"2", s.ca, ""}, c.mode, []string{"", "2", "", ""}), "\n")+"\n")
			if err := s.ask(t, p); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			file := read(t, filepath.Join(cursor, "mcp.json"))
			if !strings.Contains(file, c.args) {
				t.Errorf("%s", file)
			}
			for _, words := range append(c.told, "  1.  Cursor\n", "Cursor starts Postern as postern: "+filepath.Join(cursor, "mcp.json"), "what came today?\n", "postern repl\n") {
				if !strings.Contains(out.String(), words) {
					t.Errorf("%q is not said:\n%s", words, out)
				}
			}
			if strings.Contains(out.String(), c.not) || strings.Contains(out.String(), "--print") {
				t.Errorf("%q or what to paste is said, too:\n%s", c.not, out)
			}
			s.listsMail(t, file)
		})
	}
	// What is changed of a client with deny rules is said where that is chosen, before anything is stored.
	s := newStation(t)
	writeFile(t, filepath.Join(s.home, ".claude.json"), "{}")
	p, out := s.process(t, strings.Join(append(s.answers(s.env["PW"]), s.readOnly()...), "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rules := filepath.Join(s.home, ".claude", "settings.json")
	choices, chosen, _ := strings.Cut(out.String(), "None now")
	if before, _, _ := strings.Cut(chosen, "(made)"); strings.Contains(choices, "deny") || !strings.Contains(before, "Rules that deny the tools of Claude Code the vault and the keys are added to "+rules+".") || !strings.Contains(before, "Add the account default and connect Claude Code?") {
		t.Errorf("%s", out)
	}
	if !strings.Contains(read(t, rules), "POSTERN_ADMIN_KEY") {
		t.Error("there are no rules")
	}
	// A file that cannot be changed is left alone, and the account stays.
	s = newStation(t)
	file := filepath.Join(s.home, ".cursor", "mcp.json")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "{ broken")
	p, out = s.process(t, strings.Join(append(s.answers(s.env["PW"]), s.readOnly()...), "\n")+"\n")
	if err := s.ask(t, p); err != nil || !strings.Contains(out.String(), "was left as it is") || read(t, file) != "{ broken" {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := s.vault(t).Account(t.Context(), "default"); err != nil {
		t.Error(err)
	}
}

// The certificate of a server on this machine, such as Proton Mail Bridge's, is shown, and kept
// for the account when the person says so.
func TestACertificateThatThePersonTrusts(t *testing.T) {
	s := newStation(t)
	p, out := s.process(t, strings.Join(slices.Concat(s.answers(s.env["PW"]), []string{"1", "n", "1", "y"}, s.readOnly()[2:]), "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a, err := s.vault(t).Account(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(a.CAPEM)
	if block == nil || len(rest) > 0 {
		t.Fatalf("kept is %q", a.CAPEM)
	}
	sum := sha256.Sum256(block.Bytes)
	for i := range 2 { // on two lines, as other programs write it
		if half := strings.ReplaceAll(fmt.Sprintf("% X", sum[16*i:16*i+16]), " ", ":"); strings.Count(out.String(), half) != 2 {
			t.Errorf("%s is not shown each time:\n%s", half, out)
		}
	}
	s.listsMail(t, s.pasted(t, out.String()))
	if left, err := os.ReadDir(s.passing); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The way back leads to the question before, with everything as it was then, and what is typed
// behind it counts.
func TestTheWayBackThroughTheWizard(t *testing.T) {
	s := newStation(t)
	lines := []string{
		"back",                                                                                 // at the first question there is none
		"ann@nowhere.example", "1", "imap.nowhere.example", "back", "", "back", "back", "back", // no servers: the protection, the server twice, its kind, the address
		demo.Username, "back", "", // the servers, the address, which is proposed again
		"y", "back", "y", s.env["PW"], // at the password
		"2", "back", "2", "~/ca.pem", // what now, and the file
		"wrong", "back", "back", s.env["PW"], "mine", // the name of the account, and behind it to the password
		"5", "@example.org", "back", "back", "1", "@example.com", "Ann", // to whom, the mode
		"back", "Ann Lee", "", "back", "@example.net", // the name, whose mail
		"back", "", "2", "back", "3", "1", "back", "1", "back", "", "y", // the keys twice, the client twice, and none
	}
	writeFile(t, filepath.Join(s.home, "ca.pem"), read(t, s.ca))
	p, out := s.process(t, strings.Join(lines, "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, words := range []string{"This is the first question.", "Mail address [" + demo.Username + "]", "[imap.nowhere.example]"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("%q is not said:\n%s", words, out)
		}
	}
	admin := regexp.MustCompile(`[A-Za-z0-9+/]{43}=`).FindString(out.String()) // shown, since the second answer about keys counts
	v, err := vault.Open(t.Context(), s.env["POSTERN_DB"], vault.Keys{Admin: mail.NewSecret([]byte(admin))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Account(t.Context(), "mine")
	if err != nil || a.Mode != mail.Approve || a.DisplayName != "Ann Lee" || !slices.Equal(a.AllowOut.Entries, []string{"@example.com"}) || a.AllowIn.Enabled || len(a.AllowIn.Entries) > 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
