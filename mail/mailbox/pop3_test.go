package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// popBox is a mailbox on a real server that is read with POP3.
type popBox struct {
	*mailbox.Client
	t    testing.TB
	s    *servertest.DovecotServer
	user string
}

func openPop(t *testing.T, user string, change ...func(*mail.Account)) *popBox {
	t.Helper()
	t.Parallel()
	return openPopOn(t, servertest.SharedDovecot(t), servertest.User(user), change...)
}

func openPopOn(t testing.TB, s *servertest.DovecotServer, user string, change ...func(*mail.Account)) *popBox {
	t.Helper()
	a := mail.Account{Name: account, Email: user + "@example.org", Protocol: mail.POP3, Username: user, Auth: mail.AuthPassword, Mode: mail.ReadWrite,
		POP3: mail.Endpoint{Host: s.Host, Port: s.POP3SPort, Security: mail.TLS}, CAPEM: s.CAPEM}
	for _, c := range change {
		c(&a)
	}
	d := &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: servertest.Password}
	m := mailbox.New(mailbox.Options{Directory: d, Seen: &fakeSeenStore{states: map[string]mail.SeenState{}}})
	t.Cleanup(func() { _ = m.Close() })
	return &popBox{m, t, s, user}
}

// A login that the server refuses is told as that, by a command and by a verification.
func TestPOP3LoginThatIsRefused(t *testing.T) {
	var a mail.Account
	openPop(t, "poprefused", func(made *mail.Account) { a = *made })
	d := &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: "wr0ng-pass"}
	m := mailbox.New(mailbox.Options{Directory: d})
	defer m.Close()
	_, err := m.List(t.Context(), account, mailbox.ListQuery{})
	mailtest.WantKind(t, err, mail.KindAuth)
	v, err := m.Verify(t.Context(), account)
	if err != nil || len(v.Issues) != 1 || v.Issues[0].Kind != mail.KindAuth || strings.Contains(fmt.Sprintf("%+v", v), "wr0ng-pass") {
		t.Errorf("%+v, %v", v, err)
	}
}

// deliver adds messages, and makes the next list see them however young the session
// is.
func (b *popBox) deliver(raw ...string) {
	b.t.Helper()
	for _, r := range raw {
		b.s.Deliver(b.t, b.user, "INBOX", crlf([]byte(r)))
	}
	must(b.t, second(b.Verify(b.t.Context(), account)))
}

func (b *popBox) list(q mailbox.ListQuery) *mailbox.Page {
	b.t.Helper()
	p, err := b.List(b.t.Context(), account, q)
	must(b.t, err)
	return p
}

func subjects(p *mailbox.Page) (out []string) {
	for _, m := range p.Messages {
		out = append(out, m.Subject)
	}
	return out
}

func note(from, subject, id, parent string, minute int) string {
	s := fmt.Sprintf("From: %s\nTo: ann@example.org\nSubject: %s\nMessage-ID: <%s@example.org>\nDate: Sun, 01 Mar 2026 10:%02d:00 +0000\n", from, subject, id, minute)
	if parent != "" {
		s += "In-Reply-To: <" + parent + "@example.org>\nReferences: <" + parent + "@example.org>\n"
	}
	return s + "\nThe text of " + subject + ".\n"
}

func TestPOP3ListsByDateAndCount(t *testing.T) {
	b := openPop(t, "popdates")
	for i := range 5 {
		b.s.Deliver(t, b.user, "INBOX", crlf([]byte(note("bob@example.org", fmt.Sprint("m", i), fmt.Sprint(i), "", i))))
	}
	at := func(p *mailbox.Page, i int) mailbox.Summary { return p.Messages[i] }
	if p := b.list(mailbox.ListQuery{Limit: 2}); !slices.Equal(subjects(p), []string{"m4", "m3"}) || !p.HasMore {
		t.Errorf("newest: %v, more %t", subjects(p), p.HasMore)
	}
	if p := b.list(mailbox.ListQuery{OldestFirst: true, Limit: 5}); !slices.Equal(subjects(p), []string{"m0", "m1", "m2", "m3", "m4"}) || p.HasMore {
		t.Errorf("oldest: %v, more %t", subjects(p), p.HasMore)
	} else if p := b.list(mailbox.ListQuery{Since: at(p, 1).Date, Until: at(p, 3).Date}); !slices.Equal(subjects(p), []string{"m2", "m1"}) {
		t.Errorf("dated: %v", subjects(p))
	}
	if e := mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{Unread: true})), mail.KindUnsupported); e.Advice != mail.AdvicePOP3New {
		t.Errorf("unread: %v", e)
	}
	mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{Folder: "Sent"})), mail.KindNotFound)
}

// What POP3 cannot do says so, and says what can be done.
func TestPOP3SaysWhatItCannotDo(t *testing.T) {
	b := openPop(t, "popcannot")
	b.deliver(note("bob@example.org", "one", "1", "", 1))
	ref := b.list(mailbox.ListQuery{}).Messages[0].Ref
	refs := []mail.Ref{ref}
	for name, do := range map[string]func() error{
		"search":    func() error { return second(b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Words: "x"})) },
		"mark-read": func() error { return second(b.MarkRead(t.Context(), account, refs)) },
		"flags":     func() error { return second(b.SetFlags(t.Context(), account, refs, []string{`\Flagged`}, nil)) },
		"copy":      func() error { return second(b.Copy(t.Context(), account, refs, account, "Archive")) },
		"move":      func() error { return second(b.Move(t.Context(), account, refs, "Archive")) },
		"delete":    func() error { return second(b.Delete(t.Context(), account, refs)) },
	} {
		if e := mailtest.WantKind(t, do(), mail.KindUnsupported); !strings.Contains(e.Message, "POP3") {
			t.Errorf("%s: %v", name, e)
		}
	}
	if got := b.list(mailbox.ListQuery{}).Messages; len(got) != 1 {
		t.Errorf("%d messages are left", len(got))
	}
}

// New is what was not there at first contact and was not acknowledged.
func TestPOP3New(t *testing.T) {
	b := openPop(t, "popnew")
	b.deliver(note("bob@example.org", "old", "0", "", 0))
	if p := b.list(mailbox.ListQuery{New: true}); len(p.Messages) != 0 {
		t.Errorf("first contact: %v", subjects(p))
	}
	b.deliver(note("bob@example.org", "one", "1", "", 1), note("bob@example.org", "two", "2", "", 2))
	p := b.list(mailbox.ListQuery{New: true})
	if !slices.Equal(subjects(p), []string{"two", "one"}) {
		t.Fatalf("new: %v", subjects(p))
	}
	for _, already := range []bool{false, true} {
		c, err := b.Ack(t.Context(), account, []mail.Ref{p.Messages[0].Ref, p.Messages[0].Ref})
		if err != nil || len(c.Messages) != 1 || c.Messages[0].Already != already || c.Messages[0].Ref != p.Messages[0].Ref {
			t.Errorf("ack: %+v, %v", c, err)
		}
	}
	if p := b.list(mailbox.ListQuery{New: true}); !slices.Equal(subjects(p), []string{"one"}) {
		t.Errorf("after ack: %v", subjects(p))
	}
	c, err := b.Ack(t.Context(), account, []mail.Ref{{Protocol: mail.POP3, Account: account, UIDL: "nosuch"}, p.Messages[1].Ref})
	if err != nil || len(c.Messages) != 1 || len(c.Issues) != 1 || c.Issues[0].Kind != mail.KindNotFound {
		t.Errorf("ack of one that is not there: %+v, %v", c, err)
	}
	if p := b.list(mailbox.ListQuery{New: true}); len(p.Messages) != 0 {
		t.Errorf("at the end: %v", subjects(p))
	}
}

// What is new stays new when the account's server or user gets another name; in
// another mailbox everything is new, and nothing is kept of the first.
func TestPOP3EditingAnAccountKeepsWhatIsNew(t *testing.T) {
	var a mail.Account
	b := openPop(t, "popedit", func(made *mail.Account) { a = *made })
	s := &fakeSeenStore{states: map[string]mail.SeenState{}}
	d := &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: servertest.Password}
	b.Client = mailbox.New(mailbox.Options{Directory: d, Seen: s})
	defer b.Close()
	fresh := func(wanted ...string) *mailbox.Page {
		t.Helper()
		p := b.list(mailbox.ListQuery{New: true})
		if got := subjects(p); !slices.Equal(got, wanted) {
			t.Errorf("new are %q, want %q", got, wanted)
		}
		return p
	}
	b.deliver(note("bob@example.org", "old", "0", "", 0))
	fresh()
	b.deliver(note("bob@example.org", "one", "1", "", 1), note("bob@example.org", "two", "2", "", 2), note("bob@example.org", "three", "3", "", 3))
	p := fresh("three", "two", "one")
	must(t, second(b.Ack(t.Context(), account, []mail.Ref{p.Messages[1].Ref})))
	edit := func(change func(*mail.Account)) {
		change(&a)
		d.Set(a)
	}
	host := "localhost"
	if a.POP3.Host == host {
		host = "127.0.0.1"
	}
	edit(func(a *mail.Account) { a.POP3.Host = host })
	fresh("three", "one")
	edit(func(a *mail.Account) { a.POP3.Security, a.POP3.Port = mail.StartTLS, b.s.POP3Port })
	if _, err := b.Ack(t.Context(), account, []mail.Ref{p.Messages[0].Ref}); err != nil { // the first that happens
		t.Fatal(err)
	}
	fresh("one")
	time.Sleep(1100 * time.Millisecond) // Dovecot's names are of the second in which a mailbox began
	other := servertest.User("popother")
	b.s.Deliver(t, other, "INBOX", crlf([]byte(note("eve@example.org", "other", "9", "", 9))))
	edit(func(a *mail.Account) { a.Username = other })
	fresh("other")
	if st := s.states[account+"/INBOX"]; len(st.Names) != 0 {
		t.Errorf("names of the first mailbox are kept: %+v", st)
	}
}

// Who acknowledges on first contact has seen the message; what came after it may be
// new to them.
func TestPOP3AckAsFirstContact(t *testing.T) {
	b := openPop(t, "popack")
	b.deliver(note("bob@example.org", "one", "1", "", 1), note("bob@example.org", "two", "2", "", 2), note("bob@example.org", "three", "3", "", 3))
	other := openPopOn(t, b.s, b.user) // knows nothing yet
	p := b.list(mailbox.ListQuery{})
	_ = b.Close()
	must(t, second(other.Ack(t.Context(), account, []mail.Ref{p.Messages[1].Ref})))
	if p := other.list(mailbox.ListQuery{New: true}); !slices.Equal(subjects(p), []string{"three"}) {
		t.Errorf("new: %v", subjects(p))
	}
}

// A hidden message is answered as one that does not exist, on every path.
func TestPOP3HidesWhatThePolicyHides(t *testing.T) {
	all := openPop(t, "pophidden")
	all.deliver(note("bob@example.org", "seen", "1", "", 1), note("eve@evil.example", "Re: seen", "2", "1", 2))
	hidden := all.list(mailbox.ListQuery{}).Messages[0].Ref
	_ = all.Close()
	b := openPopOn(t, all.s, all.user, allowing("bob@example.org"))
	p := b.list(mailbox.ListQuery{})
	if !slices.Equal(subjects(p), []string{"seen"}) || p.HasMore || len(p.Issues) != 0 {
		t.Errorf("%+v", p)
	}
	if th, err := b.Thread(t.Context(), p.Messages[0].Ref, mailbox.ThreadQuery{}); err != nil || len(th.Messages) != 1 || len(th.Issues) != 0 {
		t.Errorf("thread: %+v, %v", th, err)
	}
	if f, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Counts: true}); err != nil || len(f.Folders) != 1 || f.Folders[0].Counts.Messages != 1 {
		t.Errorf("folders: %+v, %v", f, err)
	}
	missing := mail.Ref{Protocol: mail.POP3, Account: account, UIDL: "nosuch"}
	for name, do := range map[string]func(ref mail.Ref) error{
		"get":        func(ref mail.Ref) error { return second(b.Get(t.Context(), ref, mailbox.GetQuery{})) },
		"raw":        func(ref mail.Ref) error { return second(b.Raw(t.Context(), ref, 0)) },
		"attachment": func(ref mail.Ref) error { return second(b.Attachment(t.Context(), ref, "")) },
		"thread":     func(ref mail.Ref) error { return second(b.Thread(t.Context(), ref, mailbox.ThreadQuery{})) },
		"ack":        func(ref mail.Ref) error { return second(b.Ack(t.Context(), account, []mail.Ref{ref})) },
	} {
		h, m := mailtest.WantKind(t, do(hidden), mail.KindNotFound), mailtest.WantKind(t, do(missing), mail.KindNotFound)
		if h.Message != m.Message || h.Advice != m.Advice || h.Stage != m.Stage {
			t.Errorf("%s: hidden %+v, missing %+v", name, h, m)
		}
		if h.Reason != "filtered" || m.Reason != "" {
			t.Errorf("%s: the audit is told %q and %q", name, h.Reason, m.Reason)
		}
	}
}

func TestFolderPatternsOfPOP3(t *testing.T) {
	b := openPop(t, "poppattern")
	for pattern, want := range map[string]int{"": 1, "*": 1, "%": 1, "INBOX": 1, "inbox": 1, "IN*": 1, "*X": 1, "I%B*": 1, "Sent": 0, "IN": 0, "BOX": 0, "I.BOX": 0} {
		f, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Pattern: pattern})
		if err != nil || len(f.Folders) != want {
			t.Errorf("%q: %+v, %v", pattern, f, err)
		}
	}
	if f, err := b.Folders(t.Context(), account, mailbox.FolderQuery{After: "Inbox"}); err != nil || len(f.Folders) != 0 || f.Truncated {
		t.Errorf("behind INBOX: %+v, %v", f, err)
	}
	mailtest.WantKind(t, second(b.Folders(t.Context(), account, mailbox.FolderQuery{After: "Sent"})), mail.KindConflict)
}

// Not even that there is more than is looked at tells of what is hidden.
func TestPOP3CountsNothingThatIsHidden(t *testing.T) {
	b := openPop(t, "pophiddenmany", allowing("bob@example.org"))
	b.SetBounds(100, 100, 100)
	many := slices.Repeat([]string{note("eve@evil.example", "hidden", "h", "", 2)}, 110)
	b.deliver(append([]string{note("bob@example.org", "seen", "1", "", 1)}, many...)...)
	p := b.list(mailbox.ListQuery{})
	if !slices.Equal(subjects(p), []string{"seen"}) || p.HasMore || len(p.Issues) != 0 {
		t.Errorf("%v, more %t, %v", subjects(p), p.HasMore, p.Issues)
	}
}

func TestPOP3GetsSeveralMessages(t *testing.T) {
	b := openPop(t, "several")
	b.deliver("From: ann@example.org\r\nSubject: one\r\n\r\n"+strings.Repeat("x", 900)+"\r\n", "From: ann@example.org\r\nSubject: two\r\n\r\n"+strings.Repeat("y", 900)+"\r\n")
	list := b.list(mailbox.ListQuery{OldestFirst: true}).Messages
	one, two := list[0].Ref, list[1].Ref
	gone := mail.Ref{Protocol: mail.POP3, Account: account, UIDL: "gone"}
	all, err := b.GetEach(t.Context(), account, []mail.Ref{two, gone, one}, mailbox.GetQuery{BodyChars: 1000})
	if err != nil || len(all.Messages) != 2 || len(all.Issues) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if first, second := all.Messages[0], all.Messages[1]; first.Subject != "two" || second.Subject != "one" || len(first.BodyText) != 500 || second.NextChar != 501 {
		t.Errorf("%s of %d characters, %s, then %d", first.Subject, len(first.BodyText), second.Subject, second.NextChar)
	}
	if i := all.Issues[0]; i.Kind != mail.KindNotFound || i.MessageID != gone.String() {
		t.Errorf("%+v", i)
	}
	m, err := b.Get(t.Context(), one, mailbox.GetQuery{FromChar: 801})
	if err != nil || m.BodyText != strings.Repeat("x", 100) || m.NextChar != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// numbered are so many notes, the first with number from.
func numbered(from, n int) (raw []string) {
	for i := from; i < from+n; i++ {
		raw = append(raw, note("bob@example.org", fmt.Sprint("m", i), fmt.Sprint("n", i), "", i%60))
	}
	return raw
}

// pages follows a list to its end, and runs between before each further page.
func (b *popBox) pages(q mailbox.ListQuery, between func(page int)) (all []string, n int) {
	b.t.Helper()
	for n = 1; ; n++ {
		p := b.list(q)
		all = append(all, subjects(p)...)
		if p.HasMore == (p.Next == mail.Ref{}) {
			b.t.Fatalf("has more: %t, goes on behind %+v", p.HasMore, p.Next)
		}
		if !p.HasMore || n > 100 {
			return all, n
		}
		if q.OldestFirst {
			q.After = p.Next
		} else {
			q.Before = p.Next
		}
		between(n)
	}
}

// Pages are of what there was, each message once, whatever comes meanwhile; the
// other way round what came is at the end.
func Test004_5_PagesOfPOP3StayApartUnderArrivals(t *testing.T) {
	b := openPop(t, "poppages")
	b.deliver(numbered(0, 23)...)
	var want []string
	for i := range 23 {
		want = append(want, fmt.Sprint("m", i))
	}
	next := 23
	arrive := func(page int) {
		if page <= 3 {
			b.deliver(numbered(next, 1)...)
			next++
		}
	}
	newest, n := b.pages(mailbox.ListQuery{Limit: 5}, arrive)
	slices.Reverse(newest)
	if !slices.Equal(newest, want) || n != 5 {
		t.Errorf("%d pages, newest first: %v", n, newest)
	}
	want = append(want, "m23", "m24", "m25")
	oldest, n := b.pages(mailbox.ListQuery{Limit: 5, OldestFirst: true}, arrive)
	if want = append(want, "m26", "m27", "m28"); !slices.Equal(oldest, want) || n != 6 {
		t.Errorf("%d pages, oldest first: %v", n, oldest)
	}
	// Dates filter what lies between.
	p := b.list(mailbox.ListQuery{OldestFirst: true, Limit: 500})
	at := func(i int) mailbox.Summary { return p.Messages[i] }
	dated := b.list(mailbox.ListQuery{After: at(2).Ref, Before: at(9).Ref, Since: at(5).Date, Until: at(20).Date})
	if got := subjects(dated); !slices.Equal(got, []string{"m8", "m7", "m6", "m5"}) || dated.HasMore {
		t.Errorf("between two and in time: %v", got)
	}
	if p := b.list(mailbox.ListQuery{After: at(9).Ref, Before: at(2).Ref}); len(p.Messages) != 0 || p.HasMore {
		t.Errorf("between none: %v", subjects(p))
	}
}

// A message to go on from that went meanwhile is a conflict, and one that is hidden
// is told in the same words.
func Test004_5_PagesOfPOP3GoOnFromNothingThatIsGone(t *testing.T) {
	b := openPop(t, "popgone")
	b.deliver(append(numbered(0, 3), note("eve@evil.example", "hidden", "h", "", 9))...)
	p := b.list(mailbox.ListQuery{Limit: 2})
	all := b.list(mailbox.ListQuery{})
	hidden, last := all.Messages[0].Ref, p.Next
	_ = b.Close()
	files, err := filepath.Glob(filepath.Join(b.s.Home, b.user, "Maildir", "cur", "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files { // somebody else deletes it
		raw, err := os.ReadFile(f)
		must(t, err)
		if strings.Contains(string(raw), "Subject: m2\r\n") {
			must(t, os.Remove(f))
		}
	}
	only := openPopOn(t, b.s, b.user, allowing("bob@example.org"))
	conflict := func(r mail.Ref) *mail.Error {
		t.Helper()
		return mailtest.WantKind(t, second(only.List(t.Context(), account, mailbox.ListQuery{Before: r})), mail.KindConflict)
	}
	gone, secret, never := conflict(last), conflict(hidden), conflict(mail.Ref{Protocol: mail.POP3, Account: account, UIDL: "nosuch"})
	conflict(mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 1, UID: 1})
	if secret.Message != never.Message || secret.Advice != never.Advice || secret.Stage != never.Stage || gone.Message != never.Message {
		t.Errorf("%+v\n%+v\n%+v", gone, secret, never)
	}
	if secret.Reason != "filtered" || gone.Reason != "" {
		t.Errorf("the audit is told %q and %q", secret.Reason, gone.Reason)
	}
	// Nor does the place to go on from name what is hidden.
	for p := only.list(mailbox.ListQuery{Limit: 1}); p.HasMore; p = only.list(mailbox.ListQuery{Limit: 1, Before: p.Next}) {
		if p.Next != p.Messages[0].Ref || p.Next == hidden {
			t.Errorf("goes on from %+v", p.Next)
		}
	}
}

// With IMAP a message to go on from stands for its UID, in the folder as it is now.
func Test004_5_ListsOfIMAPGoOnFromAMessage(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "anchors")
		b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"}, letter{Subject: "c"}, letter{Subject: "d"})
		page := func(q mailbox.ListQuery) (*mailbox.Page, error) { return b.List(t.Context(), account, q) }
		all, err := page(mailbox.ListQuery{})
		if err != nil || len(all.Messages) != 4 {
			t.Fatal(all, err)
		}
		last, first := all.Messages[0].Ref, all.Messages[3].Ref
		p, err := page(mailbox.ListQuery{Before: last, After: first})
		if err != nil || !slices.Equal(subjects(p), []string{"c", "b"}) {
			t.Errorf("%v, %v", p, err)
		}
		stale := last
		stale.UIDValidity++
		mailtest.WantKind(t, second(page(mailbox.ListQuery{Before: stale})), mail.KindConflict)
		elsewhere := last
		elsewhere.Folder = "Archive"
		mailtest.WantKind(t, second(page(mailbox.ListQuery{Before: elsewhere})), mail.KindConflict)
		mailtest.WantKind(t, second(page(mailbox.ListQuery{Before: first, After: last})), mail.KindInvalid)
	})
}

// A session serves the commands that follow the one that began it, whose context has
// ended by then: logging in again and again is what servers refuse.
func TestAPOP3SessionOutlivesTheCommandThatBeganIt(t *testing.T) {
	b := openPop(t, "poplives")
	b.deliver(numbered(0, 2)...)
	proxy := servertest.NewProxy(t, b.s.POP3SAddr(), servertest.ProxyOptions{})
	over := openPopOn(t, b.s, b.user, func(a *mail.Account) { a.POP3.Host, a.POP3.Port = proxy.Host, proxy.Port })
	_ = b.Close()
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		if p, err := over.List(ctx, account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 2 {
			t.Errorf("%+v, %v", p, err)
		}
		cancel()
	}
	if n := proxy.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	// One that ends in the middle takes the session with it, and the next begins another.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := over.List(ctx, account, mailbox.ListQuery{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if p, err := over.List(t.Context(), account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}
