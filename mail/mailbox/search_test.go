package mailbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
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

// folders makes the folders that a server does not have.
func (b *box) folders(names ...string) {
	b.T.Helper()
	for _, name := range names {
		if there, err := b.Admin.List("", b.In(name), nil).Collect(); err != nil {
			b.T.Fatal(err)
		} else if len(there) == 0 {
			b.folder(name)
		}
	}
}

// at is a letter received some hours after an instant.
func at(hours int, subject string) letter {
	when := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(hours) * time.Hour)
	return letter{Subject: subject, Received: when, Date: when.Format(time.RFC1123Z), Extra: fmt.Sprintf("Message-ID: <%s@example.org>\r\n", strings.ReplaceAll(subject, " ", "."))}
}

// Every folder is searched but those for junk and deleted messages, a folder of folders is
// none, and what stands in several is shown once: from INBOX.
func TestSearchIsOverAllFolders(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "allfolders")
		b.folders("Junk", "Trash", "Archive", "Projects/Été & co")
		b.Add("Archive", at(1, "match archived"), at(5, "match twice"))
		b.Add("INBOX", at(2, "match in"), at(5, "match twice"), at(6, "another"))
		b.Add("Projects/Été & co", at(4, "match project"), at(5, "match twice"))
		b.Add("Junk", at(7, "match junk"))
		b.Add("Trash", at(3, "match trash"))
		for name, tc := range map[string]struct {
			q    mailbox.SearchQuery
			want []string
		}{
			"default":  {mailbox.SearchQuery{Subject: "match"}, []string{"match twice", "match project", "match in", "match archived"}},
			"words":    {mailbox.SearchQuery{Words: "MATCH PRO"}, []string{"match project"}},
			"all":      {mailbox.SearchQuery{Subject: "match", Everywhere: true}, []string{"match junk", "match twice", "match project", "match trash", "match in", "match archived"}},
			"two":      {mailbox.SearchQuery{Subject: "match", Folders: []string{b.In("Trash"), b.In("Archive")}}, []string{"match twice", "match trash", "match archived"}},
			"one":      {mailbox.SearchQuery{Subject: "match", Folders: []string{b.In("Junk")}}, []string{"match junk"}},
			"nothing":  {mailbox.SearchQuery{Subject: "match", From: "nobody"}, []string{}},
			"newest":   {mailbox.SearchQuery{Limit: 3}, []string{"another", "match twice", "match project"}},
			"snippets": {mailbox.SearchQuery{Subject: "match", Snippet: 60}, []string{"match twice", "match project", "match in", "match archived"}},
		} {
			p := b.search(tc.q)
			if !slices.Equal(found(p), tc.want) || len(p.Issues) > 0 || name != "newest" && (p.Total != len(tc.want) || p.HasMore) {
				t.Errorf("%s: %q of %+v, want %q", name, found(p), p, tc.want)
			}
			if i := slices.Index(found(p), "match twice"); i >= 0 && name != "two" && p.Messages[i].Ref.Folder != "INBOX" {
				t.Errorf("%s: the copy is %v", name, p.Messages[i].Ref)
			}
			if one := name == "one"; (p.Folder == b.In("Junk") && p.UIDValidity != 0) != one || !one && p.Folder+fmt.Sprint(p.UIDValidity) != "0" {
				t.Errorf("%s: of folder %q %d", name, p.Folder, p.UIDValidity)
			}
			out := []string{b.In("Junk"), b.In("Trash")}
			slices.Sort(p.LeftOut)
			if ok := slices.Contains(p.Searched, "INBOX") && slices.Contains(p.Searched, b.In("Projects/Été & co")) && !slices.Contains(p.Searched, b.In("Junk")) && slices.Equal(p.LeftOut, out); len(tc.q.Folders) == 0 && ok == tc.q.Everywhere {
				t.Errorf("%s: searched %q without %q", name, p.Searched, p.LeftOut)
			}
			if len(tc.q.Folders) > 0 && !slices.Equal(p.Searched, tc.q.Folders) {
				t.Errorf("%s: searched %q", name, p.Searched)
			}
		}
		if !strings.HasPrefix(e.Name, "courier") {
			if _, err := b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"Nowhere"}}); err == nil {
				t.Error("a folder that is not there was searched")
			}
			p := b.search(mailbox.SearchQuery{Subject: "match", Folders: []string{"INBOX", "Nowhere"}})
			if len(p.Messages) != 2 || len(p.Issues) != 1 || p.Issues[0].Kind != mail.KindNotFound || !strings.Contains(p.Issues[0].Message, "Nowhere") {
				t.Errorf("with a folder that is not there: %+v", p)
			}
		}
	})
}

// The pages of a search over folders together are every match once, as the folders stood at
// first, and each page has what is newest in the folders from where it begins.
func TestSearchPagesHoldEveryMatchOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "pages")
		names := []string{"INBOX", "A", "B/C", "D"}
		b.folders(names[1:]...)
		hours := rand.New(rand.NewPCG(1, 2)).Perm(40)
		want := map[string]bool{}
		for i, name := range names {
			mine := slices.Clone(hours[i*10 : i*10+10])
			if slices.Sort(mine); name == "D" {
				slices.Reverse(mine) // moved there the newest first
			}
			for _, h := range mine {
				subject := fmt.Sprintf("match %02d", h)
				want[subject] = true
				b.Add(name, at(h, subject), at(h, "other"))
			}
		}
		got, q := map[string]bool{}, mailbox.SearchQuery{Subject: "match", Limit: 7}
		for pages := 0; ; pages++ {
			p := b.search(q)
			if p.Total != 40 || p.Attempted != len(p.Messages) || p.Failed != 0 || pages > 6 {
				t.Fatalf("page %d: %+v", pages, p)
			}
			if pages == 0 && found(p)[0] != "match 39" {
				t.Errorf("the newest is %q", found(p)[0])
			}
			for _, subject := range found(p) {
				if got[subject] || !want[subject] {
					t.Errorf("%q comes again", subject)
				}
				got[subject] = true
			}
			if !slices.IsSortedFunc(found(p), func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("page %d: %q", pages, found(p))
			}
			if !p.HasMore {
				break
			}
			if pages == 1 { // what comes later is not on later pages
				b.Add("INBOX", at(50, "match late"))
				b.Remove(p.Messages[0].Ref.Folder, p.Messages[0].Ref.UID)
			}
			q = mailbox.SearchQuery{Cursor: p.NextCursor, Limit: 7}
		}
		if len(got) != 40 {
			t.Errorf("%d of 40", len(got))
		}
	})
}

// A cursor is good while every folder that has shown a message is the same, for the folders
// and accounts it was given for, and in the program that gave it; nothing of it can be changed.
func TestSearchCursorIsBoundAndAuthenticated(t *testing.T) {
	e := dovecot(t)
	b := open(t, e, "severalcursor")
	b.folders("A", "B")
	b.Add("INBOX", at(1, "m1"), at(5, "m5"))
	b.Add("A", at(2, "m2"), at(4, "m4"))
	b.Add("B", at(3, "m3"))
	first := b.search(mailbox.SearchQuery{Subject: "m", Limit: 2})
	if !slices.Equal(found(first), []string{"m5", "m4"}) {
		t.Fatalf("%q", found(first))
	}
	refused := func(q mailbox.SearchQuery, accounts ...string) {
		t.Helper()
		mailtest.WantKind(t, second(b.Search(t.Context(), append([]string{account}, accounts...), q)), mail.KindInvalid)
	}
	for _, q := range []mailbox.SearchQuery{{Folders: []string{"A"}}, {Everywhere: true}, {Invitations: true}, {Unread: true}, {Words: "x"}, {Subject: "m"}} {
		q.Cursor = first.NextCursor
		refused(q)
	}
	for _, c := range []string{"x", first.NextCursor + "A", strings.Repeat("A", cursor.MaxChars+1)} {
		refused(mailbox.SearchQuery{Cursor: c})
	}
	for i := range len(first.NextCursor) {
		changed := []byte(first.NextCursor)
		changed[i] ^= 1
		refused(mailbox.SearchQuery{Cursor: string(changed)})
	}
	// Whoever has the cursor of somebody else sees with it what the accounts that it reaches
	// itself show, and nothing of others.
	refused(mailbox.SearchQuery{Cursor: first.NextCursor}, "other")
	other := open(t, e, "severalcursor") // another process without the key
	_, err := other.Search(t.Context(), []string{account}, mailbox.SearchQuery{Cursor: first.NextCursor})
	mailtest.WantKind(t, err, mail.KindInvalid)
	one := b.search(mailbox.SearchQuery{Subject: "m", Folders: []string{"INBOX"}, Limit: 1})
	if p := b.search(mailbox.SearchQuery{Cursor: one.NextCursor, Folders: []string{"inbox"}}); !slices.Equal(found(p), []string{"m1"}) {
		t.Errorf("%q", found(p))
	}
	unread := b.search(mailbox.SearchQuery{Subject: "m", Unread: true, Limit: 2})
	if p := b.search(mailbox.SearchQuery{Cursor: unread.NextCursor}); !unread.Unread || !p.Unread || p.Attachments || p.Invitations {
		t.Errorf("%+v, then %+v", unread, p)
	}
	again := func(name string) {
		t.Helper()
		must(t, b.Admin.Delete(name).Wait())
		b.folder(name)
	}
	again("B") // which has shown nothing yet
	if p := b.search(mailbox.SearchQuery{Cursor: first.NextCursor}); !slices.Equal(found(p), []string{"m2", "m1"}) {
		t.Errorf("%q", found(p))
	}
	again("A")
	_, err = b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Cursor: first.NextCursor})
	if e := mailtest.WantKind(t, err, mail.KindConflict); e.Advice != mail.AdviceSearchAnew {
		t.Errorf("%+v", e)
	}
}

// A search means by a time what a list means, to the second and whatever the Date field
// says, on every server.
func TestSearchDatesMessagesAsAListDoes(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "dates")
		start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		random := rand.New(rand.NewPCG(3, 4))
		for i := range 40 {
			l := letter{Subject: fmt.Sprint("m", i), Received: start.Add(time.Duration(random.IntN(10*24*60)) * time.Minute)}
			switch dated := start.Add(time.Duration(random.IntN(10*24*60)) * time.Minute); i % 5 {
			case 0: // without a Date
			case 1:
				l.Date = "when I find the time"
			case 2:
				l.Date = dated.In(time.FixedZone("", 14*3600)).Format(time.RFC1123Z)
			case 3:
				l.Date = dated.In(time.FixedZone("", -12*3600)).Format(time.RFC1123Z)
			default:
				l.Date = dated.Format(time.RFC1123Z)
			}
			b.Add("INBOX", l)
		}
		b.Add("INBOX", letter{Subject: "m old", Date: "Thu, 01 Jan 1970 00:00:00 +0000", Received: start.AddDate(0, 0, 5)})
		for range 40 {
			var since, until time.Time
			if random.IntN(4) > 0 {
				since = start.Add(time.Duration(random.IntN(10*24*60)) * time.Minute)
			}
			if since.IsZero() || random.IntN(3) > 0 {
				until = start.Add(time.Duration(random.IntN(10*24*60)) * time.Minute)
			}
			if !since.IsZero() && !until.IsZero() && !until.After(since) {
				since, until = until, since.Add(time.Minute)
			}
			p := b.search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Since: since, Until: until, Limit: 50})
			l := b.list(mailbox.ListQuery{Since: since, Until: until})
			got, want := uidsOf(&p.Page), uidsOf(l)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || p.Total != len(want) {
				t.Errorf("%v to %v: found %v of %d, listed %v", since, until, got, p.Total, want)
			}
			if few := b.search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Since: since, Until: until, Limit: 1}); few.Total != len(want) && !(len(want) == 0 && few.Total == 0) {
				t.Errorf("%v to %v: total %d of a short page, want %d", since, until, few.Total, len(want))
			}
		}
	})
}

// What a policy hides is hidden in every folder, on every page and in every number.
func TestHiddenMessagesAreFoundInNoFolder(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "hiddenfolders", allowing("bob@example.org"))
		b.folders("A", "B", "Only hidden")
		for i := range 12 {
			name := []string{"INBOX", "A", "B"}[i%3]
			hidden := at(i, fmt.Sprint("match hidden ", i))
			hidden.From, hidden.Body = "eve@example.net", "bob@example.org"
			b.Add(name, at(i, fmt.Sprintf("match %02d", i)), hidden)
			b.Add("Only hidden", hidden)
		}
		for _, q := range []mailbox.SearchQuery{{Subject: "match", Limit: 5, Snippet: 200}, {Limit: 5}, {Unread: true, Limit: 5}} {
			seen, sum := map[string]bool{}, 0
			for range 5 {
				p := b.search(q)
				if q.Cursor == "" && (q.Subject != "" || q.Unread) && p.Total != 12 || p.Total > 12 || len(p.Issues) > 0 || p.UIDNext != 0 {
					t.Errorf("%+v", p)
				}
				for _, s := range found(p) {
					if seen[s] = true; strings.Contains(s, "hidden") {
						t.Errorf("%+v: shows %q", q, s)
					}
				}
				if sum += len(p.Messages); !p.HasMore {
					break
				}
				q = mailbox.SearchQuery{Cursor: p.NextCursor, Limit: 5}
			}
			if len(seen) != 12 || sum != 12 {
				t.Errorf("%+v: %v", q, seen)
			}
		}
		none, never := b.search(mailbox.SearchQuery{Subject: "match", From: "eve"}), b.search(mailbox.SearchQuery{Subject: "never was"})
		if fmt.Sprintf("%+v", none) != fmt.Sprintf("%+v", never) {
			t.Errorf("a search that only hidden messages match differs:\n%+v\n%+v", none, never)
		}
		if p := b.search(mailbox.SearchQuery{Subject: "match", MaxMatches: 12}); p.Total != 12 {
			t.Errorf("hidden matches count towards the bound: %+v", p)
		}
	})
}

// Over twelve folders a search is two round trips, and one more where the folders are not
// known: with ESEARCH and without.
func TestSearchOverTwelveFoldersCosts(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"dovecot", "dovecot without ESEARCH", "courier"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			b, proxy := countedOn(t, server, "twelve", 0, 0)
			for i := range 12 {
				name := "INBOX"
				if i > 0 {
					name = fmt.Sprint("Folder ", i)
					b.folder(name)
				}
				for j := range 8 {
					b.Add(name, at(12*j+i, fmt.Sprintf("match %d in %s", j, name)))
				}
			}
			must(t, b.Warm(t.Context(), account))
			for _, step := range []struct {
				name  string
				trips int
				q     mailbox.SearchQuery
				total int
			}{
				{"folders unknown", 3, mailbox.SearchQuery{Subject: "match"}, 96},
				{"warm", 2, mailbox.SearchQuery{Subject: "match"}, 96},
				{"words, without matches", 1, mailbox.SearchQuery{Words: "no such words"}, 0},
				{"words, in one folder", 2, mailbox.SearchQuery{Words: "in folder 7"}, 8},
				{"newest", 2, mailbox.SearchQuery{}, 96},
				{"since", 2, mailbox.SearchQuery{Since: time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)}, -1},
				{"few with snippets", 2, mailbox.SearchQuery{Subject: "match 7", Snippet: 60}, 12},
				{"many with snippets", 3, mailbox.SearchQuery{Subject: "match", Snippet: 60}, 96},
			} {
				proxy.Reset()
				p := b.search(step.q)
				st := proxy.Stats()
				t.Logf("%-24s %d round trips, %d bytes out, %d bytes in", step.name, st.Flights, st.ToServer, st.ToClient)
				if server == "courier" && step.name == "folders unknown" {
					step.trips++ // its first command asks for its capabilities
				}
				if st.Flights > step.trips || st.Connections != 0 || step.total >= 0 && p.Total != step.total {
					t.Errorf("%s: %d round trips on %d new connections, want %d; %d matches", step.name, st.Flights, st.Connections, step.trips, p.Total)
				}
			}
		})
	}
}

// Where one folder has every message, it is searched alone; junk and deleted messages only
// where asked for.
func TestSearchInTheFolderOfAllMessages(t *testing.T) {
	m := scriptedWith(t, "SPECIAL-USE", func(command string) (string, string) {
		switch {
		case strings.HasPrefix(command, "LIST"):
			return "* LIST () \"/\" INBOX\r\n* LIST (\\Noselect) \"/\" \"[G]\"\r\n* LIST (\\All) \"/\" \"[G]/All\"\r\n* LIST (\\Junk) \"/\" \"[G]/Spam\"\r\n* LIST (\\Trash) \"/\" \"[G]/Bin\"\r\n* LIST (\\Sent) \"/\" \"[G]/Sent\"\r\n", ""
		case strings.HasPrefix(command, "EXAMINE"):
			return oneMessage, ""
		case strings.Contains(command, "SEARCH"):
			return "* ESEARCH (TAG \"%TAG%\") UID\r\n", ""
		}
		return "", ""
	})
	for everywhere, want := range map[bool][]string{false: {"[G]/All"}, true: {"[G]/All", "[G]/Spam", "[G]/Bin"}} {
		p, err := m.Search(t.Context(), []string{account}, mailbox.SearchQuery{Everywhere: everywhere, Words: "x"})
		if err != nil || !slices.Equal(p.Searched, want) || !everywhere && !slices.Equal(p.LeftOut, []string{"[G]/Spam", "[G]/Bin"}) {
			t.Errorf("%+v %v", p, err)
		}
	}
}

// slowly is a server with three folders, of which a search of "Attic" takes until release.
func slowly(t *testing.T, release <-chan struct{}) *mailbox.Client {
	return scriptedIn(t, "LITERAL+", func(open, command string) (string, string) {
		switch {
		case strings.HasPrefix(command, "LIST"):
			return "* LIST () \"/\" INBOX\r\n* LIST () \"/\" Attic\r\n* LIST () \"/\" Last\r\n", ""
		case strings.HasPrefix(command, "EXAMINE"):
			return oneMessage, ""
		case strings.Contains(command, "SEARCH"):
			if open == "Attic" {
				select {
				case <-release:
				case <-t.Context().Done():
				}
			}
			return "* ESEARCH (TAG \"%TAG%\") UID ALL 5\r\n", ""
		case strings.Contains(command, "FETCH"):
			head := "From: Bob <bob@example.org>\r\nSubject: " + open + "\r\n\r\n"
			return "* 1 FETCH (UID 5 FLAGS () INTERNALDATE \"01-Mar-2026 09:00:00 +0000\" BODY[HEADER.FIELDS (FROM)] " + literal(head) + ")\r\n", ""
		}
		return "", ""
	})
}

// When half the time is over a search answers with what it has; the next page begins with
// the folder that was not searched.
func TestSearchAnswersAfterHalfTheTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	m := slowly(t, release)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	p, err := m.Search(ctx, []string{account}, mailbox.SearchQuery{Words: "x"})
	if err != nil || !slices.Equal(found(p), []string{"INBOX"}) || !p.HasMore || p.NextCursor == "" || !slices.Equal(p.Searched, []string{"INBOX"}) ||
		len(p.Issues) != 2 || p.Issues[0].Kind != mail.KindTimeout || !strings.Contains(p.Issues[0].Message, "Attic") {
		t.Fatalf("%+v %v", p, err)
	}
	close(release)
	p, err = m.Search(t.Context(), []string{account}, mailbox.SearchQuery{Cursor: p.NextCursor})
	if err != nil || p.HasMore || len(p.Issues) > 0 || !slices.Equal(p.Searched, []string{"Attic", "Last", "INBOX"}) {
		t.Fatalf("%+v %v", p, err)
	}
	if got := found(p); !slices.Equal(got, []string{"Attic", "Last"}) {
		t.Errorf("%q", got)
	}
	short, end := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer end()
	p, err = slowly(t, nil).Search(short, []string{account, "another"}, mailbox.SearchQuery{Words: "x"})
	if err != nil || !strings.Contains(fmt.Sprint(p.Issues), `Folder "Attic" of `+account+" was not searched in time") {
		t.Errorf("of several accounts: %+v %v", p, err)
	}
}

// What was found before the connection broke is the answer, and the cursor goes on; what was
// not checked by then is no match.
func TestSearchKeepsWhatItFoundBeforeTheConnectionBroke(t *testing.T) {
	fetches := 0
	head := "From: Bob <bob@example.org>\r\nSubject: m\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
	m := clientOf(t, scripted.Serve(t, func(c *scripted.Conn) {
		c.Greet("IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH LITERAL+")
		for {
			tag, command := c.Expect()
			switch {
			case strings.HasPrefix(command, "EXAMINE"):
				c.Send(oneMessage)
			case strings.Contains(command, "SEARCH"):
				c.Send(fmt.Sprintf("* ESEARCH (TAG %q) UID ALL 1:700\r\n", tag))
			case strings.Contains(command, "FETCH"):
				if strings.Contains(command, "FETCH 197:200 ") { // of the second window
					return
				}
				if fetches++; fetches > 1 {
					break
				}
				for _, uid := range []int{300, 650, 700} {
					c.Send(fmt.Sprintf("* %d FETCH (UID %d FLAGS () INTERNALDATE \"01-Mar-2026 09:00:00 +0000\" BODY[HEADER.FIELDS (FROM)] %s)\r\n", uid, uid, literal(head)))
				}
			}
			c.Send(tag + " OK done\r\n")
		}
	}))
	p, err := m.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"INBOX"}, Attachments: true, Subject: "m"})
	if err != nil || !slices.Equal(uidsOf(&p.Page), []uint32{700, 650, 300}) || p.Total != 3 || !p.HasMore || p.NextCursor == "" || len(p.Issues) != 1 || p.Issues[0].Kind != mail.KindConnection {
		t.Errorf("%+v %v", p, err)
	}
}

// Where no folder answers in half the time, the error says that more time helps.
func TestSearchThatFindsNothingInTime(t *testing.T) {
	t.Parallel()
	m := slowly(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := m.Search(ctx, []string{account}, mailbox.SearchQuery{Words: "x", Folders: []string{"Attic"}})
	if e := mailtest.WantKind(t, err, mail.KindTimeout); e.Advice != mail.AdviceMoreTime {
		t.Errorf("%+v", e)
	}
}

// A search over several accounts mixes what they have, and one of them that fails is an
// issue.
func TestSearchOverSeveralAccounts(t *testing.T) {
	e := dovecot(t)
	b := open(t, e, "first")
	other := &box{mailtest.Open(t, e, "second")}
	for i, x := range []*box{b, other} {
		x.Add("Archive", at(-1, "copy"))
		x.Add("INBOX", at(-1, "copy"))
		for j := range 6 {
			x.Add("INBOX", at(2*j+i, fmt.Sprintf("m%02d", 2*j+i)))
		}
	}
	for name, port := range map[string]uint16{"other": e.Port, "broken": closedPort(t)} {
		a := mailtest.Settings(e.Host, port, e.User("second"))
		a.Name = name
		b.Dir.Set(a)
	}
	pop := mailtest.Settings(e.Host, e.Port, "x")
	pop.Name, pop.Protocol, pop.POP3 = "pop", mail.POP3, pop.IMAP
	b.Dir.Set(pop)
	var all []string
	q := mailbox.SearchQuery{Limit: 5}
	accounts := []string{account, "other", "broken", "pop"}
	for range 4 {
		p, err := b.Search(t.Context(), accounts, q)
		if err != nil || len(p.Issues) != 2 || p.Folder != "" {
			t.Fatalf("%+v %v", p, err)
		}
		for i, says := range []string{"pop: The account is read with POP3, which has no search", "broken: "} {
			if !strings.Contains(p.Issues[i].Message, says) {
				t.Errorf("issue %+v, want %q", p.Issues[i], says)
			}
		}
		if !slices.Contains(p.Searched, "other:INBOX") || !slices.Contains(p.Searched, account+":INBOX") {
			t.Errorf("searched %q", p.Searched)
		}
		for _, s := range p.Messages {
			all = append(all, s.Ref.Account+" "+s.Subject)
		}
		if !p.HasMore {
			break
		}
		q = mailbox.SearchQuery{Limit: 5, Cursor: p.NextCursor}
	}
	// A copy is one of the same account.
	if len(all) != 14 || all[0] != "other m11" || all[1] != account+" m10" || all[11] != account+" m00" {
		t.Errorf("%q", all)
	}
	if _, err := b.Search(t.Context(), accounts[2:], q); err == nil {
		t.Error("a cursor of other accounts")
	}
	if _, err := b.Search(t.Context(), accounts[2:], mailbox.SearchQuery{}); err == nil || errors.Is(err, mail.ErrNoAccount) {
		t.Errorf("where every account fails: %v", err)
	}
}

// closedPort is a port of this machine that nobody listens on.
func closedPort(t *testing.T) uint16 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}
