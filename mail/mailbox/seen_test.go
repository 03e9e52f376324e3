package mailbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// fakeSeenStore keeps states in memory.
type fakeSeenStore struct {
	mu     sync.Mutex
	states map[string]mail.SeenState
}

func (s *fakeSeenStore) Seen(_ context.Context, account, folder string) (mail.SeenState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[account+"/"+folder], nil
}

func (s *fakeSeenStore) UpdateSeen(_ context.Context, account, folder string, change func(*mail.SeenState) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[account+"/"+folder]
	state.Acked = slices.Clone(state.Acked)
	err := change(&state)
	if err == nil {
		s.states[account+"/"+folder] = state
	}
	return err
}

// remembering gives a box a store.
func (b *box) remembering() *fakeSeenStore {
	s := &fakeSeenStore{states: map[string]mail.SeenState{}}
	b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, Seen: s})
	b.T.Cleanup(func() { _ = b.Close() })
	return s
}

func (b *box) fresh(q mailbox.ListQuery) []string {
	b.T.Helper()
	q.New = true
	out := []string{}
	for _, m := range b.list(q).Messages {
		out = append(out, m.Subject)
	}
	return out
}

func Test000_6_NewIsASeenSet(t *testing.T) {
	t.Parallel()
	for _, e := range mailtest.SharedEndpoints(t) {
		for _, backlog := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s backlog %v", e.Name, backlog), func(t *testing.T) {
				t.Parallel()
				b := open(t, e, fmt.Sprint("new", backlog), func(a *mail.Account) { a.ProcessBacklog = backlog })
				b.remembering()
				b.folder("Box")
				u := b.Add("Box", letter{Subject: "old"})
				want := func(wanted ...string) {
					t.Helper()
					if got := b.fresh(mailbox.ListQuery{Folder: b.In("Box")}); !slices.Equal(got, wanted) {
						t.Errorf("new are %q, want %q", got, wanted)
					}
				}
				if backlog {
					want("old")
					want("old") // listing changes nothing
					must(t, second(b.Ack(t.Context(), account, b.refs("Box", u[0]))))
				}
				want()
				v := b.Add("Box", letter{Subject: "1"}, letter{Subject: "2"}, letter{Subject: "3"}, letter{Subject: "4"})
				want("4", "3", "2", "1")
				// Out of order, twice, together with one that is not there.
				c, err := b.Ack(t.Context(), account, b.refs("Box", v[2], v[0], 4711))
				if err != nil || len(c.Messages) != 2 || len(c.Issues) != 1 || c.Messages[0].Already || c.Messages[0].Ref.UIDValidity == 0 {
					t.Errorf("%+v %v", c, err)
				}
				want("4", "2")
				if c, err = b.Ack(t.Context(), account, b.refs("Box", v[0])); err != nil || !c.Messages[0].Already {
					t.Errorf("%+v %v", c, err)
				}
				if p := b.list(mailbox.ListQuery{Folder: b.In("Box"), New: true, OldestFirst: true, Limit: 1}); len(p.Messages) != 1 || p.Messages[0].Subject != "2" || !p.HasMore {
					t.Errorf("%+v", p)
				}
				if got := b.fresh(mailbox.ListQuery{Folder: b.In("Box"), After: b.Ref("Box", v[1])}); !slices.Equal(got, []string{"4"}) {
					t.Errorf("after a UID: %q", got)
				}
				if _, err = b.Ack(t.Context(), account, b.refs("Box", v[1], v[3])); err != nil {
					t.Error(err)
				}
				want()
				// The folder is made anew: what is in it counts by the backlog again.
				must(t, b.Admin.Delete(b.In("Box")).Wait())
				b.folder("Box")
				b.Add("Box", letter{Subject: "again"})
				if backlog {
					want("again")
				} else {
					want()
				}
				b.Add("Box", letter{Subject: "after"})
				if backlog {
					want("after", "again")
				} else {
					want("after")
				}
			})
		}
	}
}

// The first look at a folder counts, not the first question for what is new: what
// arrives in between is not lost.
func Test000_6_AnyListIsTheFirstContact(t *testing.T) {
	b := onDovecot(t, "contact")
	s := b.remembering()
	b.Add("INBOX", letter{Subject: "old"})
	b.list(mailbox.ListQuery{Limit: 1})
	if st := s.states[account+"/INBOX"]; st.Floor != 1 || st.UIDValidity == 0 {
		t.Errorf("%+v", st)
	}
	b.Add("INBOX", letter{Subject: "between"})
	if got := b.fresh(mailbox.ListQuery{}); !slices.Equal(got, []string{"between"}) {
		t.Errorf("%q", got)
	}
}

// What is new stays new when the account's server or user gets another name, and a
// folder that is another one is begun like any.
func Test000_6_EditingAnAccountKeepsWhatIsNew(t *testing.T) {
	e := dovecot(t)
	b := open(t, e, "renamed")
	b.remembering()
	b.Add("INBOX", letter{Subject: "old"})
	b.fresh(mailbox.ListQuery{})
	u := b.Add("INBOX", letter{Subject: "new"}, letter{Subject: "dealt with"}, letter{Subject: "done"})
	ack := func(uid uint32) {
		t.Helper()
		must(t, second(b.Ack(t.Context(), account, b.refs("INBOX", uid))))
	}
	ack(u[1])
	a := b.Dir.Known[account]
	a.IMAP.Host = "127.0.0.1"
	if e.Host == a.IMAP.Host {
		a.IMAP.Host = "localhost"
	}
	b.Dir.Set(a)
	ack(u[2]) // the first that happens
	if got := b.fresh(mailbox.ListQuery{}); !slices.Equal(got, []string{"new"}) {
		t.Errorf("after another host name: %q", got)
	}
	a.Username = "somebodyelse"
	b.Dir.Set(a)
	if got := b.fresh(mailbox.ListQuery{}); len(got) != 0 {
		t.Errorf("of another user: %q", got)
	}
}

// Should the rule that hides a message be lifted, it is new, whatever was acknowledged.
func Test000_7_HiddenMessagesCannotBeAcked(t *testing.T) {
	b := onDovecot(t, "hiddenack", allowing("bob@example.org"), func(a *mail.Account) { a.ProcessBacklog = true })
	b.remembering()
	u := b.Add("INBOX", letter{Subject: "shown"}, letter{Subject: "hidden", From: "eve@evil.example"})
	mailtest.WantKind(t, b.through("ack", b.Ref("INBOX", u[1])), mail.KindNotFound)
	must(t, b.through("ack", b.refs("INBOX", u...)...))
	b.Dir.Edit(func(a *mail.Account) { a.AllowIn = mail.AllowList{} })
	if got := b.fresh(mailbox.ListQuery{}); !slices.Equal(got, []string{"hidden"}) {
		t.Errorf("%q", got)
	}
}

func Test000_7_AttachmentsAreDecoded(t *testing.T) {
	b := onDovecot(t, "attachment")
	extra, body := mixed("Content-Type: text/plain\r\n\r\nsee", attachment("one.bin", 9<<20), "Content-Type: text/csv\r\nContent-Disposition: attachment; filename=\"=?utf-8?q?=C3=BC.csv?=\"\r\n\r\na,b")
	u := b.Add("INBOX", letter{Subject: "two files", Extra: extra, Body: body}, letter{Subject: "none", Body: "x"})
	m := b.Read("INBOX", u[0], mailbox.GetQuery{})
	if len(m.Attachments) != 2 {
		t.Fatalf("%+v", m.Attachments)
	}
	a, err := b.Attachment(t.Context(), b.Ref("INBOX", u[0]), m.Attachments[1].PartID)
	if err != nil || string(a.Content) != "a,b" || a.Filename != "ü.csv" || a.ContentType != "text/csv" || a.Ref.UIDValidity == 0 {
		t.Errorf("%+v %v", a, err)
	}
	large, err := b.Attachment(t.Context(), b.Ref("INBOX", u[0]), m.Attachments[0].PartID)
	if err != nil || len(large.Content) < 6<<20 {
		t.Errorf("%d bytes, %v", len(large.Content), err)
	}
	for part, kind := range map[string]mail.Kind{"": mail.KindInvalid, "9": mail.KindNotFound, "2.HEADER": mail.KindNotFound} {
		_, err := b.Attachment(t.Context(), b.Ref("INBOX", u[0]), part)
		if got := mailtest.WantKind(t, err, kind); got.Advice != mail.AdviceNamePart || !strings.Contains(got.Detail, m.Attachments[1].PartID) {
			t.Errorf("the error names no part: %+v", got)
		}
	}
	mailtest.WantKind(t, second(b.Attachment(t.Context(), b.Ref("INBOX", u[1]), "")), mail.KindNotFound)
	with := b.Read("INBOX", u[0], mailbox.GetQuery{Content: true})
	if len(with.Attachments[0].Content) != len(large.Content) || string(with.Attachments[1].Content) != "a,b" {
		t.Errorf("content with the message: %d, %d bytes", len(with.Attachments[0].Content), len(with.Attachments[1].Content))
	}
}

// Who acknowledges a message before anything was listed has seen it somewhere;
// what came after it is still new.
func Test000_6_AckAsFirstContactLosesNothing(t *testing.T) {
	b := onDovecot(t, "ackfirst")
	b.remembering()
	u := b.Add("INBOX", letter{Subject: "old"}, letter{Subject: "seen"}, letter{Subject: "later"})
	c, err := b.Ack(t.Context(), account, b.refs("INBOX", u[1]))
	if err != nil || c.Messages[0].Already {
		t.Errorf("%+v %v", c, err)
	}
	if got := b.fresh(mailbox.ListQuery{}); !slices.Equal(got, []string{"later"}) {
		t.Errorf("%q", got)
	}
}
