package mailbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// secretLetters are messages of now with a code and a link that logs in, in the places where
// services and mail programs put them.
func secretLetters(t *testing.T, code, token string, now time.Time) (all []letter) {
	t.Helper()
	encoded := base64.StdEncoding.EncodeToString([]byte("Your security code is " + code + "."))
	r := strings.NewReplacer("ENCODED", encoded, "CODE", code, "TOKEN", token)
	letters := testmain.Table[struct{ From, Subject, Extra, Body string }](t, "testdata/cases/secret_letters.txt")
	for i, l := range letters {
		at := now.Add(-time.Duration(len(letters)-i) * time.Hour)
		extra := r.Replace(l.Extra) + fmt.Sprintf("Message-ID: <m%d@example.net>\r\n", i)
		all = append(all, letter{From: r.Replace(l.From), Subject: r.Replace(l.Subject), Extra: extra, Body: r.Replace(l.Body), Received: at, Date: at.Format(time.RFC1123Z)})
	}
	return all
}

var validity = regexp.MustCompile(`imap:ann:([^:]*):\d+:|\b\d{9,10}\b`)

// everyView is what an agent can see of a mailbox with these messages in INBOX.
func everyView(b *box, uids []uint32, every bool) string {
	var out strings.Builder
	note := func(what string, v any, err error) {
		var e *mail.Error
		if errors.As(err, &e) {
			err = fmt.Errorf("%s %s %s", e.Kind, e.Reason, e.Message)
		}
		fmt.Fprintf(&out, "%s: %v %v\n", what, v, err)
	}
	ctx := b.T.Context()
	for _, snippet := range []int{0, 500} {
		p, err := b.List(ctx, account, mailbox.ListQuery{Snippet: snippet, Full: true})
		note("list", *p, err)
	}
	w, err := b.Watch(ctx, account, mailbox.WatchQuery{Full: true})
	note("watch", *w, err)
	for _, u := range uids {
		r := b.Ref("INBOX", u)
		queries := []mailbox.GetQuery{{BodyChars: 20000, Headers: mailbox.HeadersAll, HTML: true, AttachmentText: true, Content: true}, {}, {BodyChars: 100}, {FromChar: 6000, BodyChars: 2000}}
		lengths, sizes := []int{100, 0, 20000}, []int64{1024, 0}
		if !every {
			queries, lengths, sizes = queries[:2], lengths[:1], sizes[:1]
		}
		for _, q := range queries {
			m, err := b.Get(ctx, r, q)
			if m != nil {
				note(fmt.Sprint("get ", u), *m, err)
			}
		}
		for _, chars := range lengths {
			th, err := b.Thread(ctx, r, mailbox.ThreadQuery{Chars: chars, Full: true})
			note("thread", *th, err)
		}
		for _, size := range sizes {
			raw, err := b.Raw(ctx, r, size)
			note("raw", raw != nil, err)
		}
		a, err := b.Attachment(ctx, r, "2")
		note("attachment", a != nil, err)
		at, err := b.AttachmentText(ctx, r, mailbox.AttachmentQuery{Part: "1"})
		note("attachment text", at != nil, err)
	}
	words := []string{"code", "is ", "verification code is", "4711", "reset", "token=", "https://login", "Thanks", "line of the message", "copy of"}
	for n := range 10 {
		words = append(words, fmt.Sprint(n))
	}
	words = append(words, "482913", "730156", "48", "73", "48291", "82913", "code is 4", "code is 7", "4 8", "token=Zk", "Zk3", "Qw8")
	for i, w := range words {
		if !every && i%10 > 0 && i != 28 { // a word of each kind
			continue
		}
		queries := []mailbox.SearchQuery{{Words: w, Limit: 3, Full: true}, {Subject: w}, {Text: w, Snippet: 200}}
		if i%10 > 0 {
			queries = queries[:1]
		}
		if i >= 10 {
			queries = append(queries, mailbox.SearchQuery{From: w}, mailbox.SearchQuery{To: w}, mailbox.SearchQuery{Words: w, MaxMatches: 1})
		}
		for _, q := range queries {
			p, err := b.Search(ctx, []string{account}, q)
			if p == nil {
				p = &mailbox.SearchPage{}
			}
			p.NextCursor = ""
			note(fmt.Sprintf("search %q", w), *p, err)
		}
	}
	return validity.ReplaceAllString(out.String(), "$1")
}

// What is masked cannot be learnt: two mailboxes that differ in their codes and links alone
// give the same answers, whatever is asked.
func TestMailboxesThatDifferInTheirCodesAreTheSame(t *testing.T) {
	t.Parallel()
	for _, e := range mailtest.SharedEndpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			every, policies := e.Name == "in memory", []string{""}
			switch {
			case testmain.Rounds(0, 1) > 0:
				every, policies = true, []string{"", "*"}
			case !every:
				policies = []string{"*"}
			}
			var views [2]string
			now := time.Now()
			secrets := [2][2]string{{"482913", "Zk3x9QpLm2Vt7RbY4nWc"}, {"730156", "Qw8d5HjKs1Nf6GzX0mPv"}}
			for i, s := range secrets {
				for _, list := range policies {
					b := open(t, e, fmt.Sprintf("codes%d%d", i, len(list)), func(a *mail.Account) {
						a.Email = "codes@example.org"
						if list != "" { // messages are judged one by one
							a.AllowIn, a.SubjectPattern = mail.AllowList{}, "."
						}
					})
					uids := b.Add("INBOX", secretLetters(t, s[0], s[1], now)...)
					views[i] += everyView(b, uids, every)
					if p := b.search(mailbox.SearchQuery{Subject: "room 4711"}); len(p.Messages) != 1 || p.Messages[0].Subject != "Room 4711" {
						t.Errorf("a number that is no code is not found: %+v", p.Messages)
					}
				}
				for _, secret := range []string{s[0], s[1], s[0][:3] + " " + s[0][3:], s[1][:10]} {
					if at := strings.Index(views[i], secret); at >= 0 && !strings.HasPrefix(views[i][max(0, at-8):], `search "`) {
						t.Errorf("%q is shown: %.300s", secret, views[i][max(0, at-200):])
					}
				}
			}
			a, b := strings.Split(views[0], "\n"), strings.Split(views[1], "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("the answers differ:\n%.1500s\n%.1500s", a[i], b[i])
				}
			}
			if len(a) != len(b) || strings.Count(views[0], "[code hidden]") < 20 || strings.Count(views[0], "[link hidden]") < 4 {
				t.Errorf("%d and %d lines, %d codes and %d links hidden", len(a), len(b), strings.Count(views[0], "[code hidden]"), strings.Count(views[0], "[link hidden]"))
			}
		})
	}
}

// Nothing of an old message is masked, and nothing where the account shows codes.
func TestWhatIsOldOrShownIsNotMasked(t *testing.T) {
	e := mailtest.InMemory(t)
	b := open(t, e, "oldcodes")
	uids := b.Add("INBOX", secretLetters(t, "482913", "Zk3x9QpLm2Vt7RbY4nWc", time.Now().AddDate(0, 0, -4))...)
	check := func(b *box) {
		t.Helper()
		if m := b.Read("INBOX", uids[0], mailbox.GetQuery{}); !strings.Contains(m.BodyText, "482913") {
			t.Errorf("%q", m.BodyText)
		}
		if p := b.search(mailbox.SearchQuery{Words: "482913"}); len(p.Messages) != 11 || !slices.ContainsFunc(p.Messages, func(s mailbox.Summary) bool { return strings.HasPrefix(s.Subject, "482913") }) {
			t.Errorf("found %d: %+v", len(p.Messages), p.Messages)
		}
		must(t, second(b.Raw(t.Context(), b.Ref("INBOX", uids[0]), 0)))
		if a, err := b.Attachment(t.Context(), b.Ref("INBOX", uids[2]), "2"); err != nil || !strings.Contains(string(a.Content), "482913") {
			t.Error(err)
		}
	}
	check(b)
	shown := open(t, e, "showncodes", func(a *mail.Account) { a.Codes = mail.CodesShow })
	uids = shown.Add("INBOX", secretLetters(t, "482913", "Zk3x9QpLm2Vt7RbY4nWc", time.Now())...)
	check(shown)
}

// A code is given once, of a verified sender alone, and only while it is fresh.
func TestACodeIsGivenOnce(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "givencodes", func(a *mail.Account) {
		a.Codes, a.AuthServIDs = mail.CodesGive, []string{"mx.example.org"}
	})
	seen := &fakeSeenStore{states: map[string]mail.SeenState{}}
	client := func() *mailbox.Client { // as another process
		m := mailbox.New(mailbox.Options{Directory: b.Dir, Seen: seen})
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	add := func(from, result, code string, age time.Duration) {
		b.Add("INBOX", letter{Raw: []byte("Authentication-Results: mx.example.org; dmarc=" + result + " header.from=" + from[strings.Index(from, "@")+1:] +
			"\r\nReceived: from out.example.net (out.example.net [192.0.2.7]) by mx.example.org with ESMTPS; Mon, 23 Nov 2026 04:00:00 +0000\r\n" +
			"From: " + from + "\r\nTo: givencodes@example.org\r\nSubject: Sign in\r\nDate: " + time.Now().Format(time.RFC1123Z) + "\r\n\r\nYour verification code is " + code + ".\r\n"), Received: time.Now().Add(-age)})
	}
	ask := func(m *mailbox.Client, domain string) string {
		t.Helper()
		c, err := m.Code(t.Context(), account, mailbox.CodeQuery{From: domain})
		if err != nil {
			mailtest.WantKind(t, err, mail.KindNotFound)
			return ""
		}
		return c.Code
	}
	add("no-reply@shop.example.net", "fail", "111111", time.Minute)
	add("no-reply@other.example", "pass", "222222", time.Minute)
	add("no-reply@shop.example.net", "pass", "333333", 11*time.Minute)
	add("no-reply@notexample.net", "pass", "777777", time.Minute)
	if got := ask(client(), "example.net"); got != "" {
		t.Errorf("gave %s", got)
	}
	add("no-reply@shop.example.net", "pass", "444444", 2*time.Minute)
	add("no-reply@example.net", "pass", "555555", time.Minute)
	for i, want := range []string{"555555", "444444", "", ""} {
		if got := ask(client(), "example.net"); got != want {
			t.Errorf("call %d gave %q, want %q", i, got, want)
		}
	}
	m := client()
	answered := make(chan string, 1)
	go func() {
		c, err := m.Code(t.Context(), account, mailbox.CodeQuery{From: "example.net", Until: time.Now().Add(20 * time.Second), Aside: func(ctx context.Context, wait func(context.Context) error) error {
			add("no-reply@example.net", "fail", "888888", 0)
			add("no-reply@example.net", "pass", "666666", 0)
			return wait(ctx)
		}})
		answered <- fmt.Sprint(c != nil && c.Code == "666666", err)
	}()
	if got := <-answered; got != "true <nil>" {
		t.Error(got)
	}
	for _, codes := range []mail.Codes{"", mail.CodesMask, mail.CodesShow} {
		b.Dir.Edit(func(a *mail.Account) { a.Codes = codes })
		mailtest.WantKind(t, second(client().Code(t.Context(), account, mailbox.CodeQuery{From: "other.example"})), mail.KindReadOnly)
	}
}

// Once a text was read, a list hides what it says is a code, and nothing else. A conversation reads it.
func TestAListKnowsWhatWasRead(t *testing.T) {
	t.Parallel()
	b := open(t, mailtest.InMemory(t), "known")
	date := "Date: " + time.Now().Format(time.RFC1123Z) + "\r\n"
	uids := b.Add("INBOX", letter{Subject: "482913 - Acme", Body: "The PIN is 482913.\r\n", Extra: date}, letter{Subject: "Login in rooms 4711, 4712", Body: "We count 1200 visitors and 3400 pages.\r\n", Extra: date})
	shown := func(want ...string) {
		t.Helper()
		var got []string
		if p, err := b.List(t.Context(), account, mailbox.ListQuery{}); err == nil {
			for _, m := range p.Messages {
				got = append(got, m.Subject)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("a list shows %q, want %q", got, want)
		}
	}
	shown("Login in rooms [code hidden], [code hidden]", "482913 - Acme")
	long := b.Add("INBOX", letter{Subject: "482913 for you", Body: "The PIN is 482913.\r\n" + strings.Repeat("Nothing of interest.\r\n", 50_000), Extra: date})
	th, err := b.Thread(t.Context(), b.Ref("INBOX", long[0]), mailbox.ThreadQuery{Chars: 100})
	if err != nil || len(th.Messages) != 1 || th.Messages[0].Subject != "[code hidden] for you" || th.Subject != th.Messages[0].Subject {
		t.Errorf("the conversation: %+v %v", th, err)
	}
	b.Remove("INBOX", long[0])
	for _, u := range uids {
		b.Read("INBOX", u, mailbox.GetQuery{})
	}
	shown("Login in rooms 4711, 4712", "[code hidden] - Acme")
}

// With POP3 the same is masked.
func TestPOP3MasksCodes(t *testing.T) {
	const code = "482913"
	b := openPop(t, "popcodes")
	extra, body := mixed("Content-Type: text/plain\r\n\r\nYour verification code is "+code+".", "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=\"of "+code+".txt\"\r\n\r\nThe code is "+code)
	b.deliver("From: Bank <no-reply@example.net>\r\nTo: ann@example.org\r\nSubject: " + code + " is your verification code\r\nMessage-ID: <1@example.net>\r\nDate: " + time.Now().Format(time.RFC1123Z) + "\r\n" + extra + "\r\n" + body)
	b.deliver("From: bank@example.net\r\nTo: ann@example.org\r\nSubject: Hello\r\nMessage-ID: <2@example.net>\r\nDate: " + time.Now().Format(time.RFC1123Z) +
		"\r\n\r\n" + code + "\r\n" + strings.Repeat("Nothing of interest.\r\n", 4000) + "Enter the number above where you sign in.\r\n")
	p := b.list(mailbox.ListQuery{Snippet: 200, Full: true})
	if len(p.Messages) != 2 || strings.Contains(fmt.Sprint(p.Messages), code) {
		t.Fatalf("%+v", p)
	}
	ref := p.Messages[1].Ref
	m, err := b.Get(t.Context(), ref, mailbox.GetQuery{Headers: mailbox.HeadersAll, HTML: true, AttachmentText: true, Content: true})
	must(t, err)
	th, err := b.Thread(t.Context(), ref, mailbox.ThreadQuery{Chars: 1000, Full: true})
	must(t, err)
	if all := fmt.Sprintf("%+v %+v %+v", p.Messages, m, th); strings.Contains(all, code) || strings.Count(all, "[code hidden]") < 6 {
		t.Errorf("shows %s", all)
	}
	for _, a := range m.Attachments {
		if a.Text != "" || a.Content != nil {
			t.Errorf("%+v", a)
		}
	}
	_, err = b.Raw(t.Context(), ref, 0)
	if e := mailtest.WantKind(t, err, mail.KindReadOnly); e.Reason != "codes" {
		t.Errorf("%+v", e)
	}
	mailtest.WantKind(t, second(b.Attachment(t.Context(), ref, "2")), mail.KindReadOnly)
}
