package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

// undoNamed is what takes an answer back, and planNamed the plan that it is about.
var (
	undoNamed = regexp.MustCompile(`"undo":"(mail undo [a-z0-9]+)"`)
	planNamed = regexp.MustCompile(`"next":"(mail run [a-z0-9]+)"`)
)

// changedFrom counts the messages that are not as they were: what went, or came where nothing went,
// and what has other flags.
func (before *mailboxes) changedFrom(after *mailboxes) (n int) {
	gone, come := 0, 0
	for folder, was := range before.folders {
		is := after.folders[folder]
		for m, flags := range was {
			if now, there := is[m]; !there {
				gone++
			} else if now != flags {
				n++
			}
		}
		for m := range is {
			if _, there := was[m]; !there {
				come++
			}
		}
	}
	return n + max(gone, come)
}

// Nobody's agent changes more than 50 messages within ten minutes without a person's word, whatever
// it runs and in whichever order; below the bound it is asked about nothing.
func TestNoWayAroundAskChanges(t *testing.T) {
	t.Parallel()
	ids := func(account string, from, to int) string {
		var list []string
		for uid := from; uid <= to; uid++ {
			list = append(list, fmt.Sprintf("%s:%d", account, uid))
		}
		return strings.Join(list, " ")
	}
	// A line that ends with ^ is what the answer before says next: the plan to run, or what takes it back.
	ways := map[string]func(run func(line string) string){
		"one by one": func(run func(string) string) {
			for uid := 1; uid <= 50; uid++ {
				run(fmt.Sprintf("mail trash demo:%d", uid))
				run(fmt.Sprintf("mail flags second:%d --add flagged", uid))
			}
		},
		"of each kind some": func(run func(string) string) {
			for _, line := range []string{"mail flags " + ids("demo", 1, 30) + " --add flagged", "mail mark-read " + ids("second", 1, 40), "mail copy " + ids("demo", 1, 40) + " --to Archive",
				"mail move " + ids("demo", 1, 40) + " --to Archive", "mail copy " + ids("demo", 1, 40) + " --to Archive --to-account second", "mail trash " + ids("second", 20, 50), "mail flags " + ids("demo", 31, 50) + " --remove seen"} {
				run(line)
			}
		},
		"plans": func(run func(string) string) {
			for _, which := range []string{"--folder INBOX --account demo", "--unread --account demo", "library --account demo", "library --account second", "--folder Sent --account second", "--until 2030-01-01 --account second"} {
				for _, do := range []string{"mark-read", "flag", "archive", "trash"} {
					if m := planNamed.FindStringSubmatch(run("mail plan " + which + " --do " + do)); m != nil {
						run(m[1])
						run(m[1])
					}
				}
			}
		},
		"undone and done again": func(run func(string) string) {
			back := undoNamed.FindStringSubmatch(run("mail trash " + ids("demo", 1, 40)))
			for n := 1; n <= 6 && back != nil; n++ {
				back = undoNamed.FindStringSubmatch(run(back[1]))
				run(fmt.Sprintf("mail trash %s", ids("second", 8*n-7, 8*n)))
			}
			run("mail undo --since 2020-01-01")
			run("mail trash " + ids("demo", 41, 50))
		},
	}
	for nth, mode := range []mail.Mode{mail.Approve, mail.Draft, mail.Reply, mail.ReadOnly} {
		for name, way := range ways {
			if nth >= testmain.Rounds(1, 4) {
				continue
			}
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := newRehearsal(t, mode, &scenario{steps: []scenarioStep{{"+", "account second"}}}, nil)
				for _, folder := range []string{"INBOX", "Archive", "Sent", "Trash"} {
					r.run(t, "mail list --account second --folder "+folder+" --limit 1")
					r.run(t, "mail list --account demo --folder "+folder+" --limit 1")
				}
				before, asked, worst := r.state(t), 0, 0
				way(func(line string) string {
					a := r.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: line})
					n := before.changedFrom(r.state(t))
					worst = max(worst, n)
					if a.Code == "APPROVAL_REQUIRED" {
						asked++
					}
					return string(a.JSON)
				})
				if asked == 0 && mode != mail.ReadOnly || worst > 50 || worst == 0 != (mode == mail.ReadOnly) {
					t.Errorf("%d messages changed, asked %d times", worst, asked)
				}
			})
		}
	}
}
