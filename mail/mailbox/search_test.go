package mailbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

func (b *box) search(q mailbox.SearchQuery) *mailbox.SearchPage {
	b.T.Helper()
	p, err := b.Search(b.T.Context(), []string{account}, q)
	if err != nil {
		b.T.Fatalf("search %+v: %v", q, err)
	}
	return p
}

func found(p *mailbox.SearchPage) []string {
	out := []string{}
	for _, m := range p.Messages {
		out = append(out, m.Subject)
	}
	return out
}

// searchCase is a search and the subjects of what it finds.
type searchCase struct {
	Name, Query string
	Found       []string
}

func (c *searchCase) query(t *testing.T) (q mailbox.SearchQuery) {
	t.Helper()
	must(t, json.Unmarshal([]byte(c.Query), &q))
	return q
}

func Test001_4_SearchCriteria(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "criteria")
		extra, body := mixed("Content-Type: text/plain\r\n\r\nsee the file", attachment("plan.pdf", 2000))
		b.Add("INBOX",
			letter{Subject: "alpha", From: "Carl <carl@example.org>", Body: "the needle is here", Date: "Mon, 02 Mar 2026 12:30:00 -0800"},
			letter{Subject: "beta needle", Body: "nothing", Date: "Tue, 03 Mar 2026 10:00:00 +0000"},
			letter{Subject: "gamma", Extra: extra, Body: body, Date: "Wed, 04 Mar 2026 10:00:00 +0000"},
			letter{Subject: "delta", Body: "x", Date: "Wed, 04 Mar 2026 23:59:59 +0000"},
			letter{Subject: "Grüße", Body: "x", Extra: ""},
		)
		for _, tc := range testmain.Table[searchCase](t, "testdata/cases/criteria.txt") {
			name := tc.Name
			p := b.search(tc.query(t))
			if !slices.Equal(found(p), tc.Found) || p.Attempted != len(tc.Found) || p.Failed != 0 {
				t.Errorf("%s: %q of %+v, want %q", name, found(p), p, tc.Found)
			}
			if name != "limit" && (p.Total != len(tc.Found) || p.HasMore || p.NextCursor != "") {
				t.Errorf("%s: total %d, more %v", name, p.Total, p.HasMore)
			}
		}
		if strings.HasPrefix(e.Name, "dovecot") { // the server in memory compares bytes
			if p := b.search(mailbox.SearchQuery{Subject: "grüsse", Words: "Grü"}); len(p.Messages) != 0 {
				t.Errorf("%q", found(p))
			}
			if p := b.search(mailbox.SearchQuery{Subject: "GRÜ"}); !slices.Equal(found(p), []string{"Grüße"}) {
				t.Errorf("beyond ASCII: %q", found(p))
			}
		}
	})
}

func Test001_4_SearchIsRefusedBeyondItsBounds(t *testing.T) {
	b := onDovecot(t, "bounds")
	b.Add("INBOX", letter{Subject: "a1"}, letter{Subject: "a2"}, letter{Subject: "a3"})
	if p := b.search(mailbox.SearchQuery{Subject: "a", MaxMatches: 3}); p.Total != 3 {
		t.Errorf("%+v", p)
	}
	for _, q := range []mailbox.SearchQuery{
		{Subject: "a", MaxMatches: 2}, {Words: strings.Repeat("x", 257)}, {From: "a\r\nX"}, {Text: "\xff"},
		{Since: time.Date(2026, 2, 2, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)},
	} {
		mailtest.WantKind(t, second(b.Search(t.Context(), []string{account}, q)), mail.KindInvalid)
	}
	if p := b.search(mailbox.SearchQuery{Words: strings.Repeat("ü", 256)}); p.Total != 0 {
		t.Errorf("%+v", p)
	}
	for _, words := range []string{"", "ü"} {
		mailtest.WantKind(t, second(b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"Nowhere"}, Words: words})), mail.KindNotFound)
	}
}

// Where a search does not look at the whole folder, its numbers do not tell how many of the
// messages that it looked at are hidden.
func Test000_9_SearchWithoutCriteriaCountsNothingHidden(t *testing.T) {
	e := dovecot(t)
	var want []string
	for hide := range 2 {
		b := open(t, e, fmt.Sprint("window", hide), allowing("bob@example.org"))
		var list []letter
		for i := range 520 {
			list = append(list, letter{Subject: fmt.Sprint("shown ", i)})
			if hide > 0 && i%50 == 0 {
				list = append(list, letter{Subject: "hidden", From: "eve@evil.example"})
			}
		}
		b.Add("INBOX", list...)
		var got []string
		for _, q := range []mailbox.SearchQuery{{Limit: 5}, {Limit: 5, Folders: []string{"INBOX"}}} {
			for range 3 {
				p := b.search(q)
				got = append(got, fmt.Sprint(p.Total, p.Attempted, p.HasMore, p.Issues, found(p)))
				q = mailbox.SearchQuery{Cursor: p.NextCursor, Limit: 5}
			}
		}
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("with hidden messages\n%q\nwithout\n%q", got, want)
		}
	}
}

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
				if got := b.fresh(mailbox.ListQuery{Folder: b.In("Box"), AfterUID: v[1]}); !slices.Equal(got, []string{"4"}) {
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

// Where server and program see different parts, what is shown is what is saved.
func TestPartsAreThoseTheServerNumbers(t *testing.T) {
	b := onDovecot(t, "numbers")
	body := "--b\r\nContent-Type: text/plain\r\n\r\nhi\r\n--bc\r\nContent-Type: text/csv; name=zero\r\nContent-Disposition: attachment; filename=zero\r\n\r\nzero\r\n"
	for _, name := range []string{"one", "two"} {
		body += "--b\r\nContent-Type: text/csv; name=" + name + "\r\nContent-Disposition: attachment; filename=" + name + "\r\n\r\n" + name + "\r\n"
	}
	u := b.Add("INBOX", letter{Subject: "odd", Extra: "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n", Body: body + "--b--\r\n"})
	for _, a := range b.Read("INBOX", u[0], mailbox.GetQuery{}).Attachments {
		got, err := b.Attachment(t.Context(), b.Ref("INBOX", u[0]), a.PartID)
		if err != nil || got.Filename != a.Filename || strings.TrimSpace(string(got.Content)) != a.Filename {
			t.Errorf("part %s is shown as %q and saved as %q: %v", a.PartID, a.Filename, got.Content, err)
		}
	}
}

// HTML whose style sheet comes last hides what it hides, also in a snippet.
func TestAStyleSheetAtTheEndHides(t *testing.T) {
	b := onDovecot(t, "style")
	for _, filler := range []int{10, 100, 600} {
		page := "<html><body><div class=x>HIDDEN WORDS</div><p>shown</p>" + strings.Repeat("<p>filler words</p>", filler<<10/19) + "<style>.x{display:none}</style></body></html>"
		u := b.Add("INBOX", letter{Subject: fmt.Sprint("page ", filler), Extra: "Content-Type: text/html\r\n", Body: page})
		m := b.Read("INBOX", u[0], mailbox.GetQuery{BodyChars: 100, HTML: true})
		p := b.search(mailbox.SearchQuery{Subject: fmt.Sprint("page ", filler), Snippet: 200})
		if strings.Contains(m.BodyText+m.BodyHTML+p.Messages[0].Snippet, "HIDDEN") || !strings.Contains(m.BodyText, "shown") || !strings.Contains(p.Messages[0].Snippet, "shown") {
			t.Errorf("%d kB: %q %q", filler, m.BodyText, p.Messages[0].Snippet)
		}
	}
}

var longText = regexp.MustCompile(`\{(\d+)\+\}\r\n$`)

// withoutCharsets stands before a server and refuses each SEARCH that declares a charset, as
// Exchange does.
func withoutCharsets(t *testing.T, target string) (port uint16) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				defer client.Close()
				_, _ = io.Copy(client, server)
			}()
			go func() {
				defer server.Close()
				lines := bufio.NewReader(client)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					refused := strings.Contains(line, "CHARSET UTF-8")
					tag, _, _ := strings.Cut(line, " ")
					for at := longText.FindStringSubmatch(line); at != nil; at = longText.FindStringSubmatch(line) {
						n, _ := strconv.Atoi(at[1])
						text := make([]byte, n)
						_, _ = io.ReadFull(lines, text)
						rest, _ := lines.ReadString('\n')
						line += string(text) + rest
					}
					if refused {
						_, _ = fmt.Fprintf(client, "%s NO [BADCHARSET (US-ASCII)] The specified charset is not supported.\r\n", tag)
					} else if _, err := io.WriteString(server, line); err != nil {
						return
					}
				}
			}()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// Where a server knows no charset it searches for the ASCII part of the words, and what it
// finds is read.
func TestWordsBeyondASCIIWhereAServerKnowsNoCharset(t *testing.T) {
	t.Parallel()
	e := mailtest.InMemory(t)
	port := withoutCharsets(t, fmt.Sprintf("127.0.0.1:%d", e.Port))
	b := open(t, e, "charset", func(a *mail.Account) { a.IMAP.Port = port })
	b.Add("INBOX", letter{Subject: "Büro", Body: "Die Grüße aus Köln.\r\n", Extra: "Content-Type: text/plain; charset=utf-8\r\n"},
		letter{Subject: "Buro", Body: "Die Grobe aus Keln.\r\n"}, letter{Subject: "Other", Body: "Nothing.\r\n"})
	for name, q := range map[string]mailbox.SearchQuery{
		"words":         {Words: "Grüße aus Köln"},
		"text":          {Text: "Köln"},
		"subject":       {Subject: "Büro"},
		"nothing ASCII": {Subject: "ü"},
	} {
		if p := b.search(q); len(p.Messages) != 1 || p.Messages[0].Subject != "Büro" || len(p.Issues) != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := b.search(mailbox.SearchQuery{Words: "Größe"}); len(p.Messages) != 0 {
		t.Errorf("%+v", p)
	}
}
