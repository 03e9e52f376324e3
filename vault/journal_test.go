package vault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// moved is a change of n messages.
func moved(principal, account string, n int) *mail.Change {
	return &mail.Change{Principal: principal, Account: account, Kind: mail.ChangeMove, Folder: "INBOX", UIDValidity: 7, To: "Trash", Messages: make([]mail.ChangeMessage, n)}
}

// What was changed is there with its outcome until it is old. Too much of a principal is refused
// within a day and pushes out its own oldest later; what others changed stays.
func TestJournal(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	_, v := newVault(t, &Options{Now: clock.now})
	v.journalMost = 4
	began := func(principal, of string) string {
		c := moved(principal, "work", 2)
		c.Of = of
		must(t, v.BeginChange(t.Context(), c, -1))
		return c.ID
	}
	first, other := began("a", ""), began("b", "")
	piece := began("a", first)
	if !(first < other && other < piece) {
		t.Errorf("of one instant: %s, %s, %s", first, other, piece)
	}
	c, err := v.AmendChange(t.Context(), first, func(c *mail.Change) error {
		c.Ended, c.ToValidity, c.Messages[0].Done, c.Messages[0].New, c.Principal, c.Of = clock.at, 9, true, 31, "b", "x"
		return nil
	})
	if err != nil || c.Principal != "a" || c.Of != "" || c.Messages[0].New != 31 {
		t.Errorf("%+v, %v", c, err)
	}
	has := func(q mail.ChangeQuery, want ...string) {
		t.Helper()
		list, err := v.ChangesMade(t.Context(), q)
		must(t, err)
		var ids []string
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		if strings.Join(ids, " ") != strings.Join(want, " ") {
			t.Errorf("%q, want %q", ids, want)
		}
	}
	has(mail.ChangeQuery{}, piece, other, first)
	has(mail.ChangeQuery{ID: first}, piece, first)
	has(mail.ChangeQuery{Limit: 1, Before: piece}, other)
	has(mail.ChangeQuery{Principal: "a", Only: func(c *mail.Change) bool { return c.ToValidity == 9 }}, first)
	has(mail.ChangeQuery{Principal: "a", Since: clock.at.Add(time.Second)})
	has(mail.ChangeQuery{Account: "home"})

	clock.at = clock.at.Add(time.Hour)
	third, fourth := began("a", ""), began("a", "")
	clock.at = clock.at.Add(22 * time.Hour)
	if full := (*ShareFull)(nil); !errors.As(v.BeginChange(t.Context(), moved("a", "work", 1), -1), &full) {
		t.Error("what was changed within a day is pushed out")
	}
	has(mail.ChangeQuery{}, fourth, third, piece, other, first)
	clock.at = clock.at.Add(time.Hour)
	fifth := began("a", "")
	has(mail.ChangeQuery{}, fifth, fourth, third, piece, other)
	wantErr(t, second(v.AmendChange(t.Context(), first, func(*mail.Change) error { return nil })), mail.ErrNoChange, "the first of too many")
	clock.at = clock.at.Add(mail.JournalKept - time.Hour)
	last := began("c", "")
	has(mail.ChangeQuery{}, last, fifth, fourth, third)
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		a, err := readShare(tx, "a")
		b, err2 := readShare(tx, "b")
		if a.Changes != 3 || a.Bytes == 0 || b.Changes != 0 || b.Bytes != 0 {
			t.Errorf("the shares are %+v and %+v", a, b)
		}
		return errors.Join(err, err2)
	}))
	must(t, v.Check(t.Context()))
}

// However many messages a principal changes, in whatever account and by whatever number of
// commands: those that nobody was asked about are bounded.
func TestManyChangesAsk(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	_, v := newVault(t, &Options{Now: clock.now})
	for i, s := range []struct {
		after   time.Duration
		who     string
		account string
		n       int
		bound   int
		set     func(*mail.Change)
		asks    bool
	}{
		{who: "a", account: "work", n: 30, bound: 50},
		{who: "a", account: "home", n: 20, bound: 50},
		{who: "a", account: "work", n: 1, bound: 50, asks: true},
		{who: "a", account: "work", n: 51, bound: 50, set: func(c *mail.Change) { c.Approved = true }},
		{who: "a", account: "work", n: 51, bound: 50, set: func(c *mail.Change) { c.Undoes = true }},
		{who: "b", account: "work", n: 50, bound: 50},
		{who: "a", account: "rw", n: 9, bound: -1},
		{who: "a", account: "work", n: 1, bound: 50, asks: true, after: mail.AskWithin},
		{who: "c", account: "work", n: 1, asks: true},
		{who: "a", account: "work", n: 50, bound: 50, after: time.Second},
		{who: "a", account: "work", n: 1, bound: 50, after: time.Hour, set: func(c *mail.Change) { c.Undoes, c.Redoes = true, true }},
		{who: "a", account: "work", n: 50, bound: 50, asks: true},
		{who: mail.AgentPrincipal, account: "work", n: 40, bound: 50},
		{who: mail.PersonPrincipal, account: "work", n: 11, bound: 50, asks: true},
		{who: mail.PersonPrincipal, account: "work", n: 10, bound: 50},
		{who: mail.AgentPrincipal, account: "work", n: 1, bound: 50, asks: true},
	} {
		clock.at = clock.at.Add(s.after)
		c := moved(s.who, s.account, s.n)
		if s.set != nil {
			s.set(c)
		}
		if err := v.BeginChange(t.Context(), c, s.bound); errors.Is(err, mail.ErrManyChanges) != s.asks || !s.asks && err != nil || (c.ID == "") != s.asks {
			t.Errorf("change %d: %q, %v", i, c.ID, err)
		}
	}
}

// change begins changes of ten messages and prints each, until a person would be asked. It ends
// every second one.
func change(ctx context.Context, v *Vault, name string) error {
	for i := 0; ; i++ {
		c := moved("agent", name, 10)
		err := v.BeginChange(ctx, c, 50)
		if err == nil && i%2 == 1 {
			_, err = v.AmendChange(ctx, c.ID, func(c *mail.Change) error { c.Ended = time.Now(); return nil })
		}
		switch {
		case errors.Is(err, mail.ErrManyChanges):
			fmt.Println("asks")
			select {}
		case err != nil:
			return err
		}
		fmt.Println(c.ID, i%2 == 1)
	}
}

// Processes that change at once are bounded together. What one had begun when it was killed stays
// so, and what it had ended too.
func TestProcessesThatChangeAreBoundedTogether(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	ended := map[string]bool{}
	for _, name := range []string{"work", "home", "third"} {
		wg.Go(func() {
			cmd := process("change", path, name, k.Agent)
			out, err := cmd.StdoutPipe()
			if err = errors.Join(err, cmd.Start()); err != nil {
				t.Error(err)
				return
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "asks" {
				id, end, _ := strings.Cut(lines.Text(), " ")
				mu.Lock()
				ended[id] = end == "true"
				mu.Unlock()
			}
			if lines.Text() != "asks" {
				t.Errorf("%s ended with %q", name, lines.Text())
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	wg.Wait()
	list, err := v.ChangesMade(t.Context(), mail.ChangeQuery{Principal: "agent"})
	if err != nil || len(list) != 5 || len(ended) != 5 {
		t.Errorf("%d of %d changes went unasked: %v", len(ended), len(list), err)
	}
	for _, c := range list {
		if end, ok := ended[c.ID]; !ok || end == c.Ended.IsZero() {
			t.Errorf("%s was begun %t and ended %t: %v", c.ID, ok, end, c.Ended)
		}
	}
	must(t, v.Check(t.Context()))
}
