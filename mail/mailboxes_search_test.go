package mail_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

func (b *box) search(q mail.SearchQuery) *mail.SearchPage {
	b.t.Helper()
	p, err := b.Search(b.t.Context(), account, q)
	if err != nil {
		b.t.Fatalf("search %+v: %v", q, err)
	}
	return p
}

func found(p *mail.SearchPage) []string {
	out := []string{}
	for _, m := range p.Messages {
		out = append(out, m.Subject)
	}
	return out
}

func Test001_4_SearchCriteria(t *testing.T) {
	for _, e := range endpoints(t) {
		t.Run(e.name, func(t *testing.T) {
			b := open(t, e, "criteria")
			extra, body := mixed("Content-Type: text/plain\r\n\r\nsee the file", attachment("plan.pdf", 2000))
			b.add("INBOX",
				letter{subject: "alpha", from: "Carl <carl@example.org>", body: "the needle is here", date: "Mon, 02 Mar 2026 12:30:00 -0800"},
				letter{subject: "beta needle", body: "nothing", date: "Tue, 03 Mar 2026 10:00:00 +0000"},
				letter{subject: "gamma", extra: extra, body: body, date: "Wed, 04 Mar 2026 10:00:00 +0000"},
				letter{subject: "delta", body: "x", date: "Wed, 04 Mar 2026 23:59:59 +0000"},
				letter{subject: "Grüße", body: "x", extra: ""},
			)
			day := func(s string) time.Time {
				d, err := time.Parse(time.DateOnly, s)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			for name, tc := range map[string]struct {
				q    mail.SearchQuery
				want []string
			}{
				"query":         {mail.SearchQuery{Query: "NEEDLE"}, []string{"beta needle", "alpha"}},
				"text":          {mail.SearchQuery{Text: "needle"}, []string{"alpha"}},
				"subject":       {mail.SearchQuery{Subject: "needle"}, []string{"beta needle"}},
				"from":          {mail.SearchQuery{From: "carl"}, []string{"alpha"}},
				"to":            {mail.SearchQuery{To: "ann@", Subject: "delta"}, []string{"delta"}},
				"both":          {mail.SearchQuery{Query: "needle", From: "bob"}, []string{"beta needle"}},
				"nothing":       {mail.SearchQuery{Query: "no such words"}, []string{}},
				"attachment":    {mail.SearchQuery{HasAttachment: true}, []string{"gamma"}},
				"days":          {mail.SearchQuery{Start: day("2026-03-03"), End: day("2026-03-04"), Subject: "a"}, []string{"delta", "gamma", "beta needle"}},
				"one day":       {mail.SearchQuery{Start: day("2026-03-02"), End: day("2026-03-02"), Subject: "a"}, []string{"alpha"}},
				"quotes":        {mail.SearchQuery{Query: `"\ (NOT ALL) {5}`}, []string{}},
				"limit":         {mail.SearchQuery{To: "ann", Limit: 2}, []string{"Grüße", "delta"}},
				"a day reached": {mail.SearchQuery{End: day("2026-03-02"), Subject: "a"}, []string{"alpha"}},
			} {
				p := b.search(tc.q)
				if !slices.Equal(found(p), tc.want) || p.Attempted != len(tc.want) || p.Failed != 0 {
					t.Errorf("%s: %q of %+v, want %q", name, found(p), p, tc.want)
				}
				if name != "limit" && (p.Total != len(tc.want) || p.HasMore || p.NextCursor != "") {
					t.Errorf("%s: total %d, more %v", name, p.Total, p.HasMore)
				}
			}
			if strings.HasPrefix(e.name, "dovecot") { // the server in memory compares bytes
				if p := b.search(mail.SearchQuery{Subject: "grüsse", Query: "Grü"}); len(p.Messages) != 0 {
					t.Errorf("%q", found(p))
				}
				if p := b.search(mail.SearchQuery{Subject: "GRÜ"}); !slices.Equal(found(p), []string{"Grüße"}) {
					t.Errorf("beyond ASCII: %q", found(p))
				}
			}
		})
	}
}

func Test001_4_CursorWalksEveryMatchOnce(t *testing.T) {
	for _, e := range endpoints(t) {
		t.Run(e.name, func(t *testing.T) {
			b := open(t, e, "cursor")
			for i := range 23 {
				b.add("INBOX", letter{subject: fmt.Sprintf("match %02d", i)}, letter{subject: "other"})
			}
			var all []string
			q := mail.SearchQuery{Subject: "match", Limit: 5}
			for pages := 0; ; pages++ {
				p := b.search(q)
				if p.Total != 23 || pages > 5 {
					t.Fatalf("page %d: %+v", pages, p)
				}
				all = append(all, found(p)...)
				if pages == 1 { // what comes later is not on later pages
					b.add("INBOX", letter{subject: "match late"})
					b.remove("INBOX", p.Messages[0].Ref.UID)
				}
				if !p.HasMore {
					break
				}
				if pages == 1 {
					q.Cursor = p.NextCursor
					q = mail.SearchQuery{Cursor: p.NextCursor, Limit: 5}
					if p := b.search(q); p.Total != 23 {
						t.Fatalf("one came and one went: total %d", p.Total)
					}
					continue
				}
				q = mail.SearchQuery{Cursor: p.NextCursor, Limit: 5, Folder: "inbox"}
			}
			if len(all) != 23 || all[0] != "match 22" || all[22] != "match 00" || !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("%q", all)
			}
		})
	}
}

func Test001_4_CursorIsBoundAndAuthenticated(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "bound")
	b.folder("Box")
	b.add("Box", letter{subject: "a"}, letter{subject: "a"})
	c := b.search(mail.SearchQuery{Folder: "Box", Subject: "a", Limit: 1}).NextCursor
	refused := func(q mail.SearchQuery) {
		t.Helper()
		_, err := b.Search(t.Context(), account, q)
		wantKind(t, err, mail.KindInvalid)
	}
	refused(mail.SearchQuery{Cursor: c, Subject: "a"})
	refused(mail.SearchQuery{Cursor: c, Unread: true})
	refused(mail.SearchQuery{Cursor: c, Folder: "INBOX"})
	refused(mail.SearchQuery{Cursor: "x"})
	refused(mail.SearchQuery{Cursor: c + "A"})
	refused(mail.SearchQuery{Cursor: strings.Repeat("A", mail.MaxCursorChars+1)})
	for i := range len(c) {
		changed := []byte(c)
		changed[i] ^= 1
		if string(changed) != c {
			_, err := b.Search(t.Context(), account, mail.SearchQuery{Cursor: string(changed)})
			wantKind(t, err, mail.KindInvalid)
		}
	}
	other := open(t, e, "bound") // another process without the key
	_, err := other.Search(t.Context(), account, mail.SearchQuery{Cursor: c})
	wantKind(t, err, mail.KindInvalid)
	if err := b.admin.Delete(b.in("Box")).Wait(); err != nil {
		t.Fatal(err)
	}
	b.folder("Box")
	_, err = b.Search(t.Context(), account, mail.SearchQuery{Cursor: c})
	wantKind(t, err, mail.KindConflict)
}

func Test001_4_SearchIsRefusedBeyondItsBounds(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "bounds")
	b.add("INBOX", letter{subject: "a1"}, letter{subject: "a2"}, letter{subject: "a3"})
	if p := b.search(mail.SearchQuery{Subject: "a", MaxMatches: 3}); p.Total != 3 {
		t.Errorf("%+v", p)
	}
	for _, q := range []mail.SearchQuery{
		{Subject: "a", MaxMatches: 2}, {Query: strings.Repeat("x", 257)}, {From: "a\r\nX"}, {Text: "\xff"},
		{Start: time.Date(2026, 2, 2, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := b.Search(t.Context(), account, q)
		wantKind(t, err, mail.KindInvalid)
	}
	if p := b.search(mail.SearchQuery{Query: strings.Repeat("ü", 256)}); p.Total != 0 {
		t.Errorf("%+v", p)
	}
	_, err := b.Search(t.Context(), account, mail.SearchQuery{Folder: "Nowhere"})
	wantKind(t, err, mail.KindNotFound)
}

// Snippets come from the body, wherever in the message its text begins.
func TestSnippets(t *testing.T) {
	s, e := dovecot(t, servertest.Config{})
	proxy := servertest.NewProxy(t, s.IMAPAddr(), servertest.ProxyOptions{})
	b := open(t, e, "snippets", func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
	style := "<style>" + strings.Repeat("p { color: red }\n", 600) + "</style>"
	extra, body := mixed("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe\r\n  from   here", attachment("f", 20<<10))
	b.add("INBOX",
		letter{subject: "plain", body: "one\r\n two\tthree\r\n"},
		letter{subject: "mixed", extra: extra, body: body},
		letter{subject: "empty", body: ""},
		letter{subject: "long", body: strings.Repeat("wort ", 2000)},
	)
	b.list(mail.ListQuery{})
	proxy.Reset()
	p := b.search(mail.SearchQuery{Snippet: true, SnippetChars: 60})
	if st := proxy.Stats(); st.Flights != 2 {
		t.Errorf("%d round trips", st.Flights)
	}
	want := map[string]string{"plain": "one two three", "mixed": "Grüße from here", "empty": ""}
	for _, m := range p.Messages {
		if w, ok := want[m.Subject]; ok && m.Snippet != w {
			t.Errorf("%s: %q, want %q", m.Subject, m.Snippet, w)
		}
		if n := len([]rune(m.Snippet)); n > 60 || m.Subject == "long" && n < 40 {
			t.Errorf("%s: %d characters", m.Subject, n)
		}
	}
	b.add("INBOX", letter{subject: "styled", extra: "Content-Type: text/html\r\n", body: style + "<p>after the style</p>"})
	proxy.Reset()
	p = b.search(mail.SearchQuery{Snippet: true, Subject: "styled"})
	if len(p.Messages) != 1 || p.Messages[0].Snippet != "after the style" || proxy.Stats().Flights > 3 {
		t.Errorf("%+v in %d round trips", p, proxy.Stats().Flights)
	}
	if p = b.search(mail.SearchQuery{Subject: "styled"}); p.Messages[0].Snippet != "" {
		t.Errorf("a snippet nobody asked for: %q", p.Messages[0].Snippet)
	}
}

// A search behind an inbound list tells nothing of what the list hides, not even
// in its numbers.
func Test000_9_SearchCountsOnlyWhatIsVisible(t *testing.T) {
	for _, e := range endpoints(t) {
		t.Run(e.name, func(t *testing.T) {
			b := open(t, e, "hiddensearch", allowing("bob@example.org"))
			for i := range 7 {
				b.add("INBOX", letter{subject: fmt.Sprint("match ", i)}, letter{subject: "match hidden", from: "eve@evil.example", body: "bob@example.org"})
			}
			var all []string
			q := mail.SearchQuery{Subject: "match", Limit: 3, Snippet: true}
			for range 4 {
				p := b.search(q)
				if p.Total != 7 || p.UIDNext != 0 || len(p.Issues) != 0 {
					t.Errorf("%+v", p)
				}
				all = append(all, found(p)...)
				if !p.HasMore {
					break
				}
				q = mail.SearchQuery{Cursor: p.NextCursor, Limit: 3}
			}
			if len(all) != 7 || slices.Contains(all, "match hidden") {
				t.Errorf("%q", all)
			}
			none := b.search(mail.SearchQuery{Subject: "match", From: "eve"})
			never := b.search(mail.SearchQuery{Subject: "never was"})
			if fmt.Sprintf("%+v", none) != fmt.Sprintf("%+v", never) {
				t.Errorf("a search that only hidden messages match differs:\n%+v\n%+v", none, never)
			}
			if p := b.search(mail.SearchQuery{Subject: "match", MaxMatches: 7}); p.Total != 7 {
				t.Errorf("hidden matches count towards the bound: %+v", p)
			}
		})
	}
}

// seenStore keeps states in memory.
type seenStore struct {
	mu     sync.Mutex
	states map[string]mail.SeenState
}

func (s *seenStore) Seen(_ context.Context, account, folder string) (mail.SeenState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[account+"/"+folder], nil
}

func (s *seenStore) UpdateSeen(_ context.Context, account, folder string, change func(*mail.SeenState) error) error {
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
func (b *box) remembering() *seenStore {
	s := &seenStore{states: map[string]mail.SeenState{}}
	b.Mailboxes = mail.NewMailboxes(mail.MailboxesOptions{Directory: b.dir, Seen: s})
	b.t.Cleanup(func() { _ = b.Close() })
	return s
}

func (b *box) fresh(q mail.ListQuery) []string {
	b.t.Helper()
	q.New = true
	out := []string{}
	for _, m := range b.list(q).Messages {
		out = append(out, m.Subject)
	}
	return out
}

func Test000_6_NewIsASeenSet(t *testing.T) {
	for _, e := range endpoints(t) {
		for _, backlog := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s backlog %v", e.name, backlog), func(t *testing.T) {
				b := open(t, e, fmt.Sprint("new", backlog), func(a *mail.Account) { a.ProcessBacklog = backlog })
				b.remembering()
				b.folder("Box")
				u := b.add("Box", letter{subject: "old"})
				want := func(wanted ...string) {
					t.Helper()
					if got := b.fresh(mail.ListQuery{Folder: b.in("Box")}); !slices.Equal(got, wanted) {
						t.Errorf("new are %q, want %q", got, wanted)
					}
				}
				if backlog {
					want("old")
					want("old") // listing changes nothing
					if _, err := b.Ack(t.Context(), account, b.refs("Box", u[0])); err != nil {
						t.Fatal(err)
					}
				}
				want()
				v := b.add("Box", letter{subject: "1"}, letter{subject: "2"}, letter{subject: "3"}, letter{subject: "4"})
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
				if p := b.list(mail.ListQuery{Folder: b.in("Box"), New: true, OldestFirst: true, Limit: 1}); len(p.Messages) != 1 || p.Messages[0].Subject != "2" || !p.HasMore {
					t.Errorf("%+v", p)
				}
				if got := b.fresh(mail.ListQuery{Folder: b.in("Box"), AfterUID: v[1]}); !slices.Equal(got, []string{"4"}) {
					t.Errorf("after a UID: %q", got)
				}
				if _, err = b.Ack(t.Context(), account, b.refs("Box", v[1], v[3])); err != nil {
					t.Error(err)
				}
				want()
				// The folder is made anew: what is in it counts by the backlog again.
				if err := b.admin.Delete(b.in("Box")).Wait(); err != nil {
					t.Fatal(err)
				}
				b.folder("Box")
				b.add("Box", letter{subject: "again"})
				if backlog {
					want("again")
				} else {
					want()
				}
				b.add("Box", letter{subject: "after"})
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
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "contact")
	s := b.remembering()
	b.add("INBOX", letter{subject: "old"})
	b.list(mail.ListQuery{Limit: 1})
	if st := s.states[account+"/INBOX"]; st.Floor != 1 || st.UIDValidity == 0 {
		t.Errorf("%+v", st)
	}
	b.add("INBOX", letter{subject: "between"})
	if got := b.fresh(mail.ListQuery{}); !slices.Equal(got, []string{"between"}) {
		t.Errorf("%q", got)
	}
}

// What is new stays new when the account's server or user gets another name, and a
// folder that is another one is begun like any.
func Test000_6_EditingAnAccountKeepsWhatIsNew(t *testing.T) {
	for _, e := range endpoints(t) {
		for _, backlog := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s backlog %v", e.name, backlog), func(t *testing.T) {
				b := open(t, e, fmt.Sprint("edited", backlog), func(a *mail.Account) { a.ProcessBacklog = backlog })
				s := b.remembering()
				b.folder("Box")
				folder := b.in("Box")
				u := b.add("Box", letter{subject: "old"})
				b.fresh(mail.ListQuery{Folder: folder})
				v := b.add("Box", letter{subject: "1"}, letter{subject: "2"}, letter{subject: "3"})
				ack := func(uids ...uint32) {
					t.Helper()
					if _, err := b.Ack(t.Context(), account, b.refs("Box", uids...)); err != nil {
						t.Error(err)
					}
				}
				want := func(wanted ...string) {
					t.Helper()
					if got := b.fresh(mail.ListQuery{Folder: folder}); !slices.Equal(got, wanted) {
						t.Errorf("new are %q, want %q", got, wanted)
					}
				}
				ack(u[0], v[1])
				// Another name of the server's, as an edit of host, port or user gives.
				rename := func(edit func(was string) string) {
					key := account + "/" + folder
					state := s.states[key]
					state.Mailbox = edit(state.Mailbox)
					s.states[key] = state
				}
				rename(func(was string) string { return "other." + was })
				want("3", "1")
				rename(func(was string) string { return was + "@example.org" })
				ack(v[2]) // the first that happens
				want("1")
				b.add("Box", letter{subject: "4"})
				rename(func(was string) string { return "other." + was })
				b.list(mail.ListQuery{Folder: folder, Limit: 1})
				want("4", "1")
			})
		}
	}
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "renamed")
	b.remembering()
	b.add("INBOX", letter{subject: "old"})
	b.fresh(mail.ListQuery{})
	b.add("INBOX", letter{subject: "new"})
	a := b.dir.accounts[account]
	a.IMAP.Host = "127.0.0.1"
	if e.host == a.IMAP.Host {
		a.IMAP.Host = "localhost"
	}
	b.dir.set(a)
	if got := b.fresh(mail.ListQuery{}); !slices.Equal(got, []string{"new"}) {
		t.Errorf("after another host name: %q", got)
	}
	a.Username = "somebodyelse"
	b.dir.set(a)
	if got := b.fresh(mail.ListQuery{}); len(got) != 0 {
		t.Errorf("of another user: %q", got)
	}
}

func Test000_7_HiddenMessagesCannotBeAcked(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "hiddenack", allowing("bob@example.org"), func(a *mail.Account) { a.ProcessBacklog = true })
	s := b.remembering()
	u := b.add("INBOX", letter{subject: "shown"}, letter{subject: "hidden", from: "eve@evil.example"})
	if got := b.fresh(mail.ListQuery{}); !slices.Equal(got, []string{"shown"}) {
		t.Errorf("%q", got)
	}
	before := fmt.Sprint(s.states)
	_, hidden := b.Ack(t.Context(), account, b.refs("INBOX", u[1]))
	_, missing := b.Ack(t.Context(), account, b.refs("INBOX", 4711))
	if h, m := wantKind(t, hidden, mail.KindNotFound), wantKind(t, missing, mail.KindNotFound); h.Message != m.Message || h.Hint != m.Hint || h.Stage != m.Stage {
		t.Errorf("%+v, but %+v", h, m)
	}
	if fmt.Sprint(s.states) != before {
		t.Error("a refused ack changed the state")
	}
	if c, err := b.Ack(t.Context(), account, b.refs("INBOX", u...)); err != nil || len(c.Messages) != 1 || len(c.Issues) != 1 {
		t.Errorf("%+v %v", c, err)
	}
	// Should the rule be lifted, the message is still new.
	a := b.dir.accounts[account]
	a.AllowIn = mail.AllowList{}
	b.dir.set(a)
	if got := b.fresh(mail.ListQuery{}); !slices.Equal(got, []string{"hidden"}) {
		t.Errorf("%q", got)
	}
}

func Test001_6_RawIsByteIdentical(t *testing.T) {
	s, e := dovecot(t, servertest.Config{})
	b := open(t, e, "raw")
	raw := []byte("Received: x\r\nFrom: a@b.example\r\nSubject: \xff raw\r\n\r\n" + strings.Repeat("line \x80\r\n", 200))
	s.Deliver(t, "raw", "INBOX", raw)
	got, err := b.Raw(t.Context(), b.ref("INBOX", 1), 0)
	if err != nil || !bytes.Equal(got.Source, raw) || got.Size != int64(len(raw)) || got.Truncated {
		t.Errorf("%+v %v", got, err)
	}
	if got, err = b.Raw(t.Context(), b.ref("INBOX", 1), 5); err != nil || !bytes.Equal(got.Source, raw[:1024]) || !got.Truncated || got.Size != int64(len(raw)) {
		t.Errorf("%+v %v", got, err)
	}
	_, err = b.Raw(t.Context(), b.ref("INBOX", 2), 0)
	wantKind(t, err, mail.KindNotFound)
}

func Test000_7_AttachmentsAreDecoded(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "attachment")
	extra, body := mixed("Content-Type: text/plain\r\n\r\nsee", attachment("one.bin", 9<<20), "Content-Type: text/csv\r\nContent-Disposition: attachment; filename=\"=?utf-8?q?=C3=BC.csv?=\"\r\n\r\na,b")
	u := b.add("INBOX", letter{subject: "two files", extra: extra, body: body}, letter{subject: "none", body: "x"})
	m := b.get("INBOX", u[0], mail.GetQuery{})
	if len(m.Attachments) != 2 {
		t.Fatalf("%+v", m.Attachments)
	}
	a, err := b.Attachment(t.Context(), b.ref("INBOX", u[0]), m.Attachments[1].PartID)
	if err != nil || string(a.Content) != "a,b" || a.Filename != "ü.csv" || a.ContentType != "text/csv" || a.Ref.UIDValidity == 0 {
		t.Errorf("%+v %v", a, err)
	}
	large, err := b.Attachment(t.Context(), b.ref("INBOX", u[0]), m.Attachments[0].PartID)
	if err != nil || len(large.Content) < 6<<20 {
		t.Errorf("%d bytes, %v", len(large.Content), err)
	}
	for part, kind := range map[string]mail.Kind{"": mail.KindInvalid, "9": mail.KindNotFound, "1": mail.KindNotFound, "2.HEADER": mail.KindNotFound} {
		_, err := b.Attachment(t.Context(), b.ref("INBOX", u[0]), part)
		if got := wantKind(t, err, kind); !strings.Contains(got.Hint, m.Attachments[1].PartID) {
			t.Errorf("the hint names no part: %s", got.Hint)
		}
	}
	_, err = b.Attachment(t.Context(), b.ref("INBOX", u[1]), "")
	wantKind(t, err, mail.KindNotFound)
	with := b.get("INBOX", u[0], mail.GetQuery{Content: true})
	if len(with.Attachments[0].Content) != len(large.Content) || string(with.Attachments[1].Content) != "a,b" {
		t.Errorf("content with the message: %d, %d bytes", len(with.Attachments[0].Content), len(with.Attachments[1].Content))
	}
}

// Who acknowledges a message before anything was listed has seen it somewhere;
// what came after it is still new.
func Test000_6_AckAsFirstContactLosesNothing(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "ackfirst")
	b.remembering()
	u := b.add("INBOX", letter{subject: "old"}, letter{subject: "seen"}, letter{subject: "later"})
	c, err := b.Ack(t.Context(), account, b.refs("INBOX", u[1]))
	if err != nil || c.Messages[0].Already {
		t.Errorf("%+v %v", c, err)
	}
	if got := b.fresh(mail.ListQuery{}); !slices.Equal(got, []string{"later"}) {
		t.Errorf("%q", got)
	}
}

// Where server and program see different parts, what is shown is what is saved.
func TestPartsAreThoseTheServerNumbers(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "numbers")
	body := "--b\r\nContent-Type: text/plain\r\n\r\nhi\r\n--bc\r\nContent-Type: text/csv; name=zero\r\nContent-Disposition: attachment; filename=zero\r\n\r\nzero\r\n"
	for _, name := range []string{"one", "two"} {
		body += "--b\r\nContent-Type: text/csv; name=" + name + "\r\nContent-Disposition: attachment; filename=" + name + "\r\n\r\n" + name + "\r\n"
	}
	u := b.add("INBOX", letter{subject: "odd", extra: "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n", body: body + "--b--\r\n"})
	for _, a := range b.get("INBOX", u[0], mail.GetQuery{}).Attachments {
		got, err := b.Attachment(t.Context(), b.ref("INBOX", u[0]), a.PartID)
		if err != nil || got.Filename != a.Filename || strings.TrimSpace(string(got.Content)) != a.Filename {
			t.Errorf("part %s is shown as %q and saved as %q: %v", a.PartID, a.Filename, got.Content, err)
		}
	}
}

// HTML whose style sheet comes last hides what it hides, also in a snippet.
func TestAStyleSheetAtTheEndHides(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "style")
	for _, filler := range []int{10, 100, 600} {
		page := "<html><body><div class=x>HIDDEN WORDS</div><p>shown</p>" + strings.Repeat("<p>filler words</p>", filler<<10/19) + "<style>.x{display:none}</style></body></html>"
		u := b.add("INBOX", letter{subject: fmt.Sprint("page ", filler), extra: "Content-Type: text/html\r\n", body: page})
		m := b.get("INBOX", u[0], mail.GetQuery{BodyChars: 100, HTML: true})
		p := b.search(mail.SearchQuery{Subject: fmt.Sprint("page ", filler), Snippet: true})
		if strings.Contains(m.BodyText+m.BodyHTML+p.Messages[0].Snippet, "HIDDEN") || !strings.Contains(m.BodyText, "shown") || !strings.Contains(p.Messages[0].Snippet, "shown") {
			t.Errorf("%d kB: %q %q", filler, m.BodyText, p.Messages[0].Snippet)
		}
	}
}
