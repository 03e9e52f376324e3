package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// What a process remembers of where the newest messages were saves a round trip and decides
// nothing: the first page of the next process is that of one that remembers nothing, whatever
// happened to the folder meanwhile.
func TestAGuessAtTheNewestNeverChangesThePage(t *testing.T) {
	for _, server := range []string{"dovecot", "courier"} {
		t.Run(server, func(t *testing.T) {
			b, proxy := countedOn(t, server, "newest", 0, 0)
			seen := &fakeSeenStore{states: map[string]mail.SeenState{}}
			letters := func(n int) (l []letter) {
				for i := range n {
					l = append(l, letter{Subject: fmt.Sprint("Letter ", i)})
				}
				return l
			}
			first := func(limit int, o mailbox.Options) (page *mailbox.Page, trips int) {
				t.Helper()
				o.Directory = b.Dir
				m := mailbox.New(o)
				defer func() { _ = m.Close() }()
				proxy.Reset()
				page, err := m.List(t.Context(), account, mailbox.ListQuery{Limit: limit})
				must(t, err)
				return page, proxy.Stats().Flights
			}
			all := func() []uint32 { return uidsOf(b.list(mailbox.ListQuery{Limit: 500})) } // newest first
			forget := func() { seen.states = map[string]mail.SeenState{} }
			b.Add("INBOX", letters(130)...)
			for _, step := range []struct {
				name  string
				limit int
				saves bool
				do    func()
			}{
				{"nothing is remembered", 50, false, func() {}},
				{"nothing changed", 50, true, func() {}},
				{"a smaller page", 10, true, func() {}},
				{"a larger page", 120, true, func() {}},
				{"messages came", 50, true, func() { b.Add("INBOX", letters(30)...) }},
				{"the newest went", 50, true, func() { b.Remove("INBOX", all()[:15]...) }},
				{"some of the page went", 50, true, func() { b.Remove("INBOX", all()[5], all()[11], all()[40]) }},
				{"more came than the guess has room for", 50, false, func() { b.Add("INBOX", letters(120)...) }},
				{"nothing changed since", 50, true, func() {}},
				{"more went than the guess has room for", 50, false, func() { b.Remove("INBOX", all()[:140]...) }},
				{"few are left", 50, true, func() { b.Remove("INBOX", all()[3:]...) }},
				{"none are left", 50, false, func() { b.Remove("INBOX", all()...) }},
				{"some came", 50, false, func() { b.Add("INBOX", letters(3)...) }},
				{"another folder of the same UIDs", 50, false, func() {
					forget()
					first(50, mailbox.Options{Seen: seen})
					for key, s := range seen.states {
						s.UIDValidity++
						seen.states[key] = s
					}
				}},
			} {
				step.do()
				want, usual := first(step.limit, mailbox.Options{})
				got, trips := first(step.limit, mailbox.Options{Seen: seen})
				if !slices.Equal(uidsOf(got), uidsOf(want)) || got.HasMore != want.HasMore || len(got.Issues)+len(want.Issues) > 0 {
					t.Errorf("%s: %d, more %v, want %d, more %v; %v", step.name, uidsOf(got), got.HasMore, uidsOf(want), want.HasMore, got.Issues)
				}
				t.Logf("%-40s %d round trips, %d without", step.name, trips, usual)
				if step.saves && trips >= usual || trips > usual {
					t.Errorf("%s: %d round trips, %d where nothing is remembered", step.name, trips, usual)
				}
			}
		})
	}
}
