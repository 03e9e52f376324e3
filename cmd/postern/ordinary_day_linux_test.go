package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// thatDay is the day of golden screens, whose mail speaks of days of the week.
func thatDay() time.Time { return time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC) }

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
			servers, v := sampleServersAt(t, thatDay), newVault(t)
			a := servers.Account()
			a.Mode, a.AllowOut = mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"*"}}
			v.add(t, a, servers.Password.Reveal())
			h, agent := newHouse(t, v), gateway.Principal{Name: mail.AgentPrincipal}
			for _, who := range []string{"ann", "bob", "eve"} {
				h.as(t, agent, "mail send --to "+who+"@example.org --subject 'For "+who+"' --body 'The agent wrote this.'")
				time.Sleep(time.Millisecond) // ids of one millisecond have no order
			}
			home := shortHome(t)
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
			env := append(v.environment(true), "HOME="+home, "EDITOR="+editor, "PAGER=", "TZ=UTC", "PATH="+home+":"+os.Getenv("PATH"))
			x := onTerminal(t, width, 200, env, "repl", "--no-history")
			g := newGolden(t, fmt.Sprintf("day-%d.txt", width), width, home, "/home/anna")
			g.shows(x, "3 messages wait for you")
			for _, step := range []step{
				{"Help desk", "inbox 5"},
				{"floor-plan.png", "read 22"},
				{"Reading room renovation", "thread 22"},
				{"Builders", "search sockets"},
				{"Archive", "archive 22"},
				{"to INBOX, now 51", "undo"},
				{"nothing to take back", "undo"},
				{"no such attachment", "save 21 9"},
				{"reply ID [all]", "reply"},
			} {
				x.types(step.types + enter)
				g.shows(x, step.sees)
			}
			for _, step := range []step{ // its id is a new one now
				{"Saved floor-plan.png", "save 51"},
				{"Opened floor-plan.png", "open 51"},
				{"y shows it for your approval", "reply 51 all"},
				{"Send exactly this?", "y"},
				{"It was sent", "y"},
			} {
				x.types(step.types + enter)
				g.shows(x, step.sees)
			}
			sent := servers.Outgoing()
			if len(sent) != 1 || !strings.Contains(string(sent[0].Raw), "Thank you, the plan is fine.") || !strings.Contains(string(sent[0].Raw), "> Agreed.") || !strings.Contains(string(sent[0].Raw), "In-Reply-To: <reno-5@mail.example.net>") {
				t.Errorf("sent %d: %s", len(sent), sent)
			}
			for _, step := range []step{{"1 of 3", "approve"}, {"2 of 3", "y"}, {"Why, for agent to read?", "n"}, {"3 of 3", "Not to Bob: he has had it since Monday, and told me so himself when we met"}, {"It was sent", "y"}} {
				x.types(step.types + enter)
				g.shows(x, step.sees)
			}
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
			g.end()
		})
	}
}
