package mailbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
