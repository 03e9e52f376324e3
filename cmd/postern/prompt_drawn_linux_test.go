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

// A person at the prompt: look, read, answer in an editor, decide about what an agent wrote, file
// and take it back, find, keep an attachment. The screens are golden at four widths.
func TestThePromptIsDrawn(t *testing.T) {
	t.Parallel()
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
			downloads, opened := filepath.Join(home, "Downloads"), filepath.Join(home, "opened")
			if err := os.Mkdir(downloads, 0o700); err != nil {
				t.Fatal(err)
			}
			editor := script(t, `sed -i '0,/^$/s//\nThank you, the plan is fine.\n/' "$1"`)
			opener := script(t, `cp "$1" `+opened+`.part && mv `+opened+`.part `+opened)
			if err := os.Symlink(opener, filepath.Join(home, "xdg-open")); err != nil {
				t.Fatal(err)
			}
			env := append(v.environment(true), "HOME="+home, "EDITOR="+editor, "PAGER=", "TZ=UTC", "PATH="+home+":"+os.Getenv("PATH"))
			x := onTerminal(t, width, 200, env, "repl", "--no-history")
			g := newGolden(t, fmt.Sprintf("day-%d.txt", width), width, home, "/home/anna")
			enters := func(steps ...step) { // what is typed, and what it brings
				t.Helper()
				for _, s := range steps {
					x.types(s.types + enter)
					g.shows(x, s.sees)
				}
			}
			g.shows(x, "3 messages wait for you")
			enters(step{"Help desk", "inbox 5"}, step{"floor-plan.png", "read 22"}, step{"Reading room renovation", "thread 22"}, step{"Builders", "search sockets"},
				step{"Archive", "archive 22"}, step{"In INBOX: 51", "undo"}, step{"nothing to take back", "undo"}, step{"no such attachment", "save 21 9"}, step{"reply ID [all]", "reply"})
			enters(step{"Saved floor-plan.png", "save 51"}, step{"Opened floor-plan.png", "open 51"}, // its id is a new one now
				step{"y shows it for your approval", "reply 51 all"}, step{"Send exactly this?", "y"}, step{"It was sent", "y"})
			sent := servers.Outgoing()
			if len(sent) != 1 || !strings.Contains(string(sent[0].Raw), "> Agreed.") || !strings.Contains(string(sent[0].Raw), "In-Reply-To: <reno-5@mail.example.net>") {
				t.Errorf("sent %d: %s", len(sent), sent)
			}
			enters(step{"1 of 3", "approve"}, step{"2 of 3", "y"}, step{"Why, for agent to read?", "n"},
				step{"3 of 3", "Not to Bob: he has had it since Monday, and told me so himself when we met"}, step{"It was sent", "y"})
			if n := len(servers.Outgoing()); n != 3 {
				t.Errorf("%d messages left", n)
			}
			for _, file := range []string{filepath.Join(downloads, "floor-plan.png"), opened} {
				if info, err := os.Stat(file); err != nil || info.Size() != 371 {
					t.Errorf("%s: %v", file, err)
				}
			}
			x.leaves()
			g.end()
		})
	}
}
