package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// named are letters that an undo can tell from each other.
func named(ids ...string) (all []letter) {
	for i, id := range ids {
		all = append(all, letter{Subject: id, Extra: "Message-ID: <" + id + "@example.org>\r\n", Received: time.Date(2026, 4, 1, 9, i, 0, 0, time.UTC)})
	}
	return all
}

// whatLeft is what an undo left, as "reason folder UID".
func whatLeft(u *mailbox.Undone) (left []string) {
	if u == nil {
		return nil
	}
	for _, l := range u.Left {
		left = append(left, fmt.Sprint(l.Why, " ", l.Ref.Folder, " ", l.Ref.UID))
	}
	slices.Sort(left)
	return left
}

// What the journal tells of where a message went is no more than a hint: a server may have lied,
// and much may have come between. No other message is moved, and each that is left is told.
func TestUndoMovesNoOtherMessage(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{ACL: true})
	tests := map[string]struct {
		lie    func(c *mail.Change)
		others func(b *box)
		want   []string
		trash  []string // in the end
	}{
		"swapped": {lie: func(c *mail.Change) {
			m := c.Messages
			m[0].New, m[1].New = m[1].New, m[0].New
		}, want: []string{"not_certain Trash 2", "not_certain Trash 3"}, trash: []string{"own", "a", "b"}},
		"of others":      {lie: func(c *mail.Change) { c.Messages[0].New = 1 }, want: []string{"not_certain Trash 1"}, trash: []string{"own", "a"}},
		"one for both":   {lie: func(c *mail.Change) { c.Messages[0].New = 3 }, want: []string{"not_certain Trash 3", "not_certain Trash 3"}, trash: []string{"own", "a", "b"}},
		"none":           {lie: func(c *mail.Change) { c.Messages[0].New = 999 }, want: []string{"gone Trash 999"}, trash: []string{"own", "a"}},
		"another folder": {lie: func(c *mail.Change) { c.ToValidity++ }, want: []string{"made_anew Trash 2", "made_anew Trash 3"}, trash: []string{"own", "a", "b"}},
		"another box":    {lie: func(c *mail.Change) { c.Mailbox += "x" }, want: []string{"made_anew Trash 2", "made_anew Trash 3"}, trash: []string{"own", "a", "b"}},
		"not said":       {lie: func(c *mail.Change) { c.Messages[0].New, c.Messages[1].New, c.ToValidity = 0, 0, 0 }, trash: []string{"own"}},
		"not said of two": {lie: func(c *mail.Change) { c.Messages[0].New = 0 }, others: func(b *box) { b.Add("Trash", named("a")...) },
			want: []string{"not_certain Trash 0"}, trash: []string{"own", "a", "a"}},
		"made anew": {others: func(b *box) {
			must(b.T, b.Admin.Delete("Trash").Wait())
			must(b.T, b.Admin.Create("Trash", nil).Wait())
			b.Add("Trash", named("x", "y", "z")...)
		}, want: []string{"made_anew Trash 2", "made_anew Trash 3"}, trash: []string{"x", "y", "z"}},
		"taken by others": {others: func(b *box) { b.Remove("Trash", 3) }, want: []string{"gone Trash 3"}, trash: []string{"own"}},
		"its folder is gone": {others: func(b *box) { must(b.T, b.Admin.Delete("Work").Wait()) },
			want: []string{"folder_gone Trash 2", "folder_gone Trash 3"}, trash: []string{"own", "a", "b"}},
		"its folder takes nothing": {others: func(b *box) {
			s.Rights(b.T, e.User("its-folder-takes-nothing"), "Work", "lr")
		}, want: []string{"refused Trash 2", "refused Trash 3"}, trash: []string{"own", "a", "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, e, strings.ReplaceAll(name, " ", "-"), writable)
			b.folders("Work")
			b.Add("Trash", named("own")...)
			u := b.Add("Work", named("a", "b")...)
			j := newJournal(t)
			agent, person := j.client(b, "one"), j.client(b, owner)
			got, err := agent.Trash(t.Context(), account, b.refs("Work", u...))
			must(t, err)
			if test.lie != nil {
				must(t, second(j.AmendChange(t.Context(), got.Change, func(c *mail.Change) error { test.lie(c); return nil })))
			}
			if test.others != nil {
				test.others(b)
			}
			before := maps.Collect(maps.All(b.stands("Trash")))
			done, err := person.Undo(t.Context(), mailbox.UndoQuery{ID: got.Change, Owner: true})
			if err != nil || !slices.Equal(whatLeft(done), test.want) {
				t.Errorf("%v %+v %v, want %v", whatLeft(done), done, err, test.want)
			}
			var trash []string
			after := b.stands("Trash")
			for _, uid := range slices.Sorted(maps.Keys(after)) {
				id, _, _ := strings.Cut(after[uid].id, "@")
				if trash = append(trash, id); before[uid] != after[uid] {
					t.Errorf("UID %d of the trash was %v and is %v", uid, before[uid], after[uid])
				}
			}
			if !slices.Equal(trash, test.trash) {
				t.Errorf("the trash has %v, want %v", trash, test.trash)
			}
		})
	}
}

// dying is a journal whose process dies with a connection: nothing is kept afterwards.
type dying struct {
	principalJournal
	dead *atomic.Bool
}

var errDied = errors.New("killed")

func (d dying) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	if d.dead.Load() {
		return errDied
	}
	return d.principalJournal.BeginChange(ctx, c, unasked)
}

func (d dying) AmendChange(ctx context.Context, id string, amend func(*mail.Change) error) (mail.Change, error) {
	if d.dead.Load() {
		return mail.Change{}, errDied
	}
	return d.principalJournal.AmendChange(ctx, id, amend)
}

// An undo whose connection is cut at any byte, or whose process is killed there, goes on when it is
// called again. Nothing is lost, and nothing is there twice but for what a server without MOVE had
// copied by then, which is told.
func TestAnUndoThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	_, full := mailtest.Shared(t, servertest.Config{})
	_, noMove := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"MOVE"}})
	noMove.Name = "dovecot without MOVE"
	on(t, []mailtest.Endpoint{full, noMove}, func(t *testing.T, e mailtest.Endpoint) {
		for i := range testmain.Rounds(6, 200) {
			kill, most := i%2 == 0, int64(1900+rand.IntN(4200))
			if i%3 > 0 {
				most = int64(4700 + rand.IntN(500)) // around the move
			}
			t.Run(fmt.Sprint(kill, " ", most), func(t *testing.T) {
				b := open(t, e, fmt.Sprint("cutoff", i), writable)
				ids := []string{"a", "b", "c", "d"}
				u := b.Add("INBOX", named(ids...)...)
				var left atomic.Int64
				left.Store(math.MaxInt64)
				proxy := servertest.NewProxy(t, fmt.Sprintf("%s:%d", e.Host, e.Port), servertest.ProxyOptions{Lifetime: left.Load})
				b.Dir.Edit(func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
				j := newJournal(t)
				agent := j.client(b, "one")
				begun := time.Now()
				must(t, second(agent.SetFlags(t.Context(), account, b.refs("INBOX", u[0], u[1]), []string{`\Flagged`}, nil)))
				must(t, second(agent.Trash(t.Context(), account, b.refs("INBOX", u[1], u[2], u[3]))))
				var dead atomic.Bool
				mid := mailbox.New(mailbox.Options{Directory: b.Dir, Journal: dying{principalJournal{j.Vault, owner}, &dead}})
				defer mid.Close()
				left.Store(most)
				proxy.Reset()
				ctx, cancel := context.WithCancel(t.Context())
				died := make(chan struct{})
				go func() { // the process dies when its connection does
					defer close(died)
					for kill && ctx.Err() == nil && proxy.Stats().ToClient+proxy.Stats().ToServer < most {
						time.Sleep(50 * time.Microsecond)
					}
					dead.Store(kill)
				}()
				first, err := mid.Undo(ctx, mailbox.UndoQuery{Since: begun, Owner: true})
				cancel()
				<-died
				left.Store(math.MaxInt64)
				again, err2 := j.client(b, owner).Undo(t.Context(), mailbox.UndoQuery{Since: begun, Owner: true})
				must(t, err2)
				count, flags := map[string]int{}, []string{}
				for _, m := range b.stands("INBOX") {
					id, _, _ := strings.Cut(m.id, "@")
					count[id]++
					flags = append(flags, m.flags)
				}
				var twice []string
				for _, m := range b.stands("Trash") {
					id, _, _ := strings.Cut(m.id, "@")
					twice = append(twice, id)
				}
				for _, id := range ids {
					if count[id] != 1 {
						t.Errorf("INBOX has %q %d times", id, count[id])
					}
				}
				if strings.Contains(strings.Join(flags, ""), "flagged") || e.Name == "dovecot" && len(twice) > 0 || len(twice) > 0 && len(again.Left)+len(again.Restored) < len(twice) {
					t.Errorf("flags %q, and in the trash are %v, of which is told %v", flags, twice, whatLeft(again))
				}
				if t.Failed() {
					t.Logf("first %+v %v\nagain %+v", first, err, again)
				}
			})
		}
	})
}
