package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// unmade are parts of examples that name what is there only once somebody made it: they
// may answer NOT_FOUND.
var unmade = []string{" 0123abcd", "agent ack ", "mail code ", "mail undo"}

// TestEveryExampleRuns runs what help and usage errors show an agent as examples: with the
// sample mailbox as the only account, and with a second account and no default, where the
// examples have to name one. An example that names a message works once its folder was
// listed, and says which command does that; those of the root help work at once.
func TestEveryExampleRuns(t *testing.T) {
	t.Parallel()
	for _, accounts := range [][]string{{"demo"}, {"demo", "work"}} {
		if testing.Short() && len(accounts) == 1 {
			continue
		}
		h := opened(t, accounts)
		pages := []string{"help", "help mail", "help outbox", "help policy", "help agent"}
		for _, c := range h.Registry.Commands() {
			if c.Effect != discovery.Admin {
				pages = append(pages, "help "+c.Path)
			}
		}
		ran, read := map[string]bool{}, map[string]bool{}
		for _, page := range pages {
			var e struct{ Data discovery.HelpResult }
			if err := json.Unmarshal(h.asAgent(t, page).JSON, &e); err != nil || len(e.Data.Examples) == 0 {
				t.Fatalf("%s: %v, %d examples", page, err, len(e.Data.Examples))
			}
			if e.Data.Effect == "write" || ran["stop"] { // the next commands find what these move away, or stop
				h.agrees(t)
				h, ran["stop"] = opened(t, accounts), false
			}
			if c := h.Registry.Lookup(e.Data.Command); c != nil {
				e.Data.Examples = append(e.Data.Examples, examplesOf(t, h, c.Path+" --nope")...)
			}
			for _, example := range e.Data.Examples {
				if ran[example] {
					continue
				}
				ran[example] = true
				a := h.asAgent(t, example)
				if a.Code == discovery.Conflict && page != "help" {
					read[page] = true
					list := examplesOf(t, h, example)
					if l := h.asAgent(t, list[0]); !l.Success() || !strings.HasPrefix(list[0], "mail list") {
						t.Fatalf("%s: %s: %s", example, list, l.JSON)
					}
					a = h.asAgent(t, example)
				}
				named := slices.ContainsFunc(unmade, func(part string) bool { return strings.Contains(example, part) })
				if !a.Success() && !(named && a.Code == discovery.NotFound) {
					t.Errorf("%d accounts: %s: %s", len(accounts), example, a.JSON)
				}
			}
		}
		h.agrees(t)
		if len(read) < 4 {
			t.Errorf("examples of %d pages name messages", len(read))
		}
	}
}

// agrees checks that the log names every change that the journal has, and no other, and one for
// each command that changes the mailbox.
func (h *testHouse) agrees(t *testing.T) {
	t.Helper()
	made, err := h.vault.ChangesMade(t.Context(), mail.ChangeQuery{})
	if err != nil {
		t.Fatal(err)
	}
	journal, log := map[string]bool{}, map[string]bool{}
	for _, c := range made {
		journal[cmp.Or(c.Of, c.ID)] = true
	}
	entries, err := h.vault.Audit(t.Context(), vault.AuditQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, id := range strings.Fields(e.Changes) {
			log[id] = true
		}
		c := h.Registry.Lookup(e.Parsed)
		if c != nil && slices.Contains([]string{"flags", "file", "draft"}, c.Does) && e.Code == "" && e.Changes == "" {
			t.Errorf("%q changed the mailbox, and no change is named", e.Command)
		}
	}
	if !maps.Equal(journal, log) {
		t.Errorf("the journal has %v, the log names %v", journal, log)
	}
}

// examplesOf are the examples of the error that a command fails with.
func examplesOf(t *testing.T, h *testHouse, line string) []string {
	t.Helper()
	var e struct{ Error struct{ Examples []string } }
	if err := json.Unmarshal(h.asAgent(t, line).JSON, &e); err != nil || len(e.Error.Examples) == 0 {
		t.Fatalf("%s: %v, no example", line, err)
	}
	return e.Error.Examples
}

// opened is a house with these accounts, each with the sample mailbox.
func opened(t *testing.T, accounts []string) *testHouse {
	t.Helper()
	h := demoHouse(t)
	for _, name := range accounts {
		if name != "demo" {
			servers := sampleServers(t)
			account := servers.Account()
			account.Name = name
			if err := h.vault.AddAccount(t.Context(), account, servers.Password); err != nil {
				t.Fatal(err)
			}
		}
		h.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "admin", Admin: true}, Line: "account edit " + name + " --allow-out off --codes give"})
		// The draft that examples name is the agent's.
		list := h.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "admin", Admin: true}, Line: "mail list --folder Drafts --full --account " + name})
		ref, err := mail.ParseRef(regexp.MustCompile("imap:" + name + ":Drafts:[0-9]+:1").FindString(string(list.JSON)))
		if err == nil {
			var account mail.Account
			if account, err = h.vault.Account(t.Context(), name); err == nil {
				err = h.vault.NoteDraft(t.Context(), "agent", account.Mailbox(), ref)
			}
		}
		if err != nil {
			t.Fatalf("%v: %s", err, list.JSON)
		}
	}
	return h
}

// asAgent runs a command. One that waits for mail gets some.
func (h *testHouse) asAgent(t *testing.T, line string) gateway.Answer {
	t.Helper()
	agent := gateway.Principal{Name: "agent"}
	for waits, brings := range map[string]string{
		"mail watch": "mail copy Sent/1 --to INBOX --account demo",
		"agent read": "agent send --from my-repo:other --to my-repo:main --subject New",
	} {
		if strings.HasPrefix(line, waits) {
			timer := time.AfterFunc(500*time.Millisecond, func() { h.Gateway.Do(t.Context(), gateway.Request{Principal: agent, Line: brings}) })
			defer timer.Stop()
		}
	}
	a := h.Gateway.Do(t.Context(), gateway.Request{Principal: agent, Line: line})
	a.Delivered()
	return a
}
