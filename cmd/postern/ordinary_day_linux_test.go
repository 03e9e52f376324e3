package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// sitting is a person at a prompt, and what the terminal showed for each line they typed.
type sitting struct {
	*tty
	screens strings.Builder
}

// asks types a line, waits for texts and then for the prompt, and keeps what was shown.
func (s *sitting) asks(line string, texts ...string) {
	s.t.Helper()
	s.types(line + "\r")
	out := s.sees(append(texts, "\n"+promptSign)...)
	fmt.Fprintf(&s.screens, "%s%s\n", promptSign, strings.TrimSuffix(out[strings.Index(out, line):], promptSign))
}

// varies is what differs from run to run, each to be written as one that does not.
var varies = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d|\b01[a-z0-9]{14}\b|/\S*/letter-\d+/|/\S*/Downloads/|On \d{4}-\d\d-\d\d`)

// same compares screens with the golden ones.
func (s *sitting) same(name string) {
	s.t.Helper()
	got := varies.ReplaceAllStringFunc(s.screens.String(), func(v string) string {
		switch {
		case strings.HasPrefix(v, "01"):
			return "01" + strings.Repeat("0", 14)
		case strings.HasPrefix(v, "/"):
			return "/…/"
		case strings.HasPrefix(v, "On"):
			return "On 2026-11-14"
		}
		return "2026-11-14 10:00"
	})
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			s.t.Fatalf("line %d of %s differs; where that is meant, -args -update writes it anew:\n%q\n%q", i+1, name, g[min(i, len(g)-1)], w[min(i, len(w)-1)])
		}
	}
}

// An ordinary day: look, read, answer in an editor, decide about what an agent wrote, file and
// take it back, find, keep an attachment. The screens are golden at four widths.
func TestAnOrdinaryDay(t *testing.T) {
	widths := []int{60, 80, 100, 160}
	if testing.Short() {
		widths = widths[1:2]
	}
	for _, width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			servers, v := sampleServers(t), newVault(t)
			a := servers.Account()
			a.Mode, a.AllowOut = mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"*"}}
			v.add(t, a, servers.Password.Reveal())
			h, agent := newHouse(t, v), gateway.Principal{Name: mail.AgentPrincipal}
			for _, who := range []string{"ann", "bob", "eve"} {
				h.as(t, agent, "mail send --to "+who+"@example.org --subject 'For "+who+"' --body 'The agent wrote this.'")
			}
			home := t.TempDir()
			script := func(name, text string) string {
				file := filepath.Join(home, name)
				if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				return file
			}
			if err := os.Mkdir(filepath.Join(home, "Downloads"), 0o700); err != nil {
				t.Fatal(err)
			}
			editor := script("editor", `sed -i '0,/^$/s//\nThank you, the plan is fine.\n/' "$1"`)
			opened := filepath.Join(home, "opened")
			script("xdg-open", `cp "$1" `+opened+`.part && mv `+opened+`.part `+opened)
			x := &sitting{tty: onTerminal(t, width, 90, append(v.environment(true), "HOME="+home, "EDITOR="+editor, "NO_COLOR=1", "PAGER=", "PATH="+home+":"+os.Getenv("PATH")), "repl", "--no-history")}
			x.sees("3 messages wait for you", promptSign)
			// A list has the messages of today: it is looked at, and not golden.
			x.types("inbox 5\r")
			x.sees("Help desk", "\n"+promptSign)
			for _, step := range []struct {
				line  string
				texts []string
			}{
				{"read 22", []string{"floor-plan.png"}},
				{"thread 22", []string{"Reading room renovation"}},
				{"search sockets", []string{"Builders"}},
				{"archive 22", []string{"Archive"}},
				{"undo", []string{"moved back from Archive to INBOX"}},
				{"undo", []string{"nothing to take back"}},
				{"save 21 9", []string{"no such attachment"}},
				{"reply", []string{"reply ID [all]"}},
			} {
				x.asks(step.line, step.texts...)
			}
			// Its id is a new one now.
			id := regexp.MustCompile(`imap:demo:INBOX:\d+:\d+`).FindString(string(h.as(t, agent, "mail search sockets --attachments").raw))
			x.asks("save "+id, "Saved floor-plan.png", "Downloads")
			x.asks("open "+id, "Opened floor-plan.png")
			x.types("reply " + id + " all\r")
			x.sees("To: builders@example.net", "Cc: ", "desk@example.org", "Subject: Re: Reading room renovation", "y sends it")
			x.types("y\r")
			x.sees("> Thank you, the plan is fine.", "leaves it waiting: ")
			x.types("y\r")
			x.sees("It was sent", promptSign)
			sent := servers.Outgoing()
			if len(sent) != 1 || !strings.Contains(string(sent[0].Raw), "Thank you, the plan is fine.") || !strings.Contains(string(sent[0].Raw), "> Agreed.") || !strings.Contains(string(sent[0].Raw), "In-Reply-To: <reno-5@mail.example.net>") {
				t.Errorf("sent %d: %s", len(sent), sent)
			}
			x.types("approve\r")
			x.sees("1 of 3", "ann@example.org", "q ends: ")
			x.types("y\r")
			x.sees("2 of 3", "bob@example.org", "q ends: ")
			x.types("n\r")
			x.sees("3 of 3", "eve@example.org", "q ends: ")
			x.types("y\r")
			x.sees("\n" + promptSign)
			if n := len(servers.Outgoing()); n != 3 {
				t.Errorf("%d messages left", n)
			}
			for _, file := range []string{filepath.Join(home, "Downloads", "floor-plan.png"), opened} {
				if info, err := os.Stat(file); err != nil || info.Size() != 371 {
					t.Errorf("%s: %v", file, err)
				}
			}
			x.types("quit\r")
			x.quits(0)
			x.same(fmt.Sprintf("day-%d.txt", width))
		})
	}
}
