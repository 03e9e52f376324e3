package vault

import (
	"errors"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
)

// What was changed is there with its outcome until it is old, or its principal has changed too
// much since; what others changed stays.
func TestJournal(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	_, v := newVault(t, &Options{Now: clock.now})
	began := func(principal string) string {
		clock.at = clock.at.Add(time.Second)
		c := mail.Change{Principal: principal, Account: "work", Kind: mail.ChangeMove, Folder: "INBOX", UIDValidity: 7, To: "Trash", Messages: []mail.ChangeMessage{{UID: 5}, {UID: 6}}}
		must(t, v.BeginChange(t.Context(), &c, -1))
		return c.ID
	}
	made := func(q mail.ChangeQuery) (ids []string) {
		list, err := v.ChangesMade(t.Context(), q)
		must(t, err)
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return ids
	}
	first, other := began("a"), began("b")
	c, err := v.AmendChange(t.Context(), first, func(c *mail.Change) error {
		c.Ended, c.ToValidity, c.Messages[0].Done, c.Messages[0].New, c.Principal = clock.at, 9, true, 31, "b"
		return nil
	})
	if err != nil || c.Principal != "a" || c.Messages[0].New != 31 {
		t.Errorf("%+v, %v", c, err)
	}
	if got := made(mail.ChangeQuery{}); len(got) != 2 || got[0] != other || got[1] != first {
		t.Errorf("%q", got)
	}
	if got := made(mail.ChangeQuery{Principal: "a", Since: clock.at}); got != nil {
		t.Errorf("%q", got)
	}
	for range maxJournal {
		began("a")
	}
	if _, err := v.AmendChange(t.Context(), first, func(*mail.Change) error { return nil }); !errors.Is(err, mail.ErrNoChange) {
		t.Errorf("the first of too many: %v", err)
	}
	if got := made(mail.ChangeQuery{Principal: "b"}); len(got) != 1 {
		t.Errorf("%q", got)
	}
	clock.at = clock.at.Add(mail.JournalKept)
	last := began("b")
	if got := made(mail.ChangeQuery{Principal: "b"}); len(got) != 1 || got[0] != last {
		t.Errorf("%q", got)
	}
}
