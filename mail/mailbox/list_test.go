package mailbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// known is a message as the test knows it.
type known struct {
	uid    uint32
	unread bool
	date   time.Time
}

// expect is what a list must show, worked out the long way.
func expect(all []known, q mailbox.ListQuery) (uids []uint32, more bool) {
	uids = []uint32{}
	if !q.OldestFirst {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	for _, k := range all {
		if q.Unread && !k.unread || q.Before.UID != 0 && k.uid >= q.Before.UID || k.uid <= q.After.UID ||
			!q.Since.IsZero() && k.date.Before(q.Since) || !q.Until.IsZero() && !k.date.Before(q.Until) {
			continue
		}
		if len(uids) == q.Limit {
			return uids, true
		}
		uids = append(uids, k.uid)
	}
	return uids, false
}

// Every combination of criteria gives exactly what a plain reading of them does,
// on a cold and on a warm connection, on servers with and without extensions,
// while messages come and go.
func Test000_7_ListAgreesWithAPlainReading(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "list")
		rnd := rand.New(rand.NewPCG(1, 2))
		start := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
		var all []known
		add := func(n int) {
			for range n {
				k := known{unread: rnd.IntN(3) > 0, date: start.Add(time.Duration(rnd.IntN(10*24)) * time.Hour)}
				zone := time.FixedZone("", (rnd.IntN(27)-12)*3600)
				l := letter{Subject: "s", Date: k.date.In(zone).Format(time.RFC1123Z), Received: start.AddDate(0, 1, 0)}
				if !k.unread {
					l.Flags = []imap.Flag{imap.FlagSeen}
				}
				if rnd.IntN(4) == 0 { // no readable Date: INTERNALDATE counts
					l.Date, l.Received = []string{"", "yesterday"}[rnd.IntN(2)], k.date
				}
				k.uid = b.Add("INBOX", l)[0]
				all = append(all, k)
			}
		}
		removeSome := func(n int) {
			for range n {
				i := rnd.IntN(len(all))
				b.Remove("INBOX", all[i].uid)
				all = slices.Delete(all, i, i+1)
			}
		}
		check := func(q mailbox.ListQuery) {
			t.Helper()
			p := b.list(q)
			if q.Limit == 0 {
				q.Limit = 50
			}
			want, more := expect(all, q)
			if !slices.Equal(uidsOf(p), want) || p.HasMore != more || len(p.Issues) > 0 || p.UIDValidity == 0 {
				t.Fatalf("%+v\n got %v more %v issues %v\nwant %v more %v", q, uidsOf(p), p.HasMore, p.Issues, want, more)
			}
		}
		check(mailbox.ListQuery{}) // empty, cold
		check(mailbox.ListQuery{})
		check(mailbox.ListQuery{OldestFirst: true})
		check(mailbox.ListQuery{Unread: true})
		add(30)
		removeSome(10)
		for round := range 60 {
			q := mailbox.ListQuery{Limit: []int{0, 1, 3, 10, 19, 20, 21, 500}[rnd.IntN(8)], OldestFirst: rnd.IntN(2) == 0}
			if rnd.IntN(3) == 0 {
				q.Unread = true
			}
			if rnd.IntN(3) == 0 {
				q.Before = b.Ref("INBOX", uint32(2+rnd.IntN(44)))
			}
			if uid := uint32(1 + rnd.IntN(44)); rnd.IntN(3) == 0 && (q.Before.UID == 0 || uid < q.Before.UID-1) {
				q.After = b.Ref("INBOX", uid)
			}
			if rnd.IntN(4) == 0 {
				q.Since = start.Add(time.Duration(rnd.IntN(12*24)) * time.Hour)
			}
			if rnd.IntN(4) == 0 {
				q.Until = start.Add(time.Duration(rnd.IntN(12*24)) * time.Hour)
			}
			switch round % 10 {
			case 3:
				add(2)
			case 6:
				removeSome(2)
			}
			check(q)
		}
		// The folder empties and fills while the session has it open.
		for len(all) > 0 {
			removeSome(min(len(all), 7))
			check(mailbox.ListQuery{Limit: 5})
			check(mailbox.ListQuery{Limit: 5, OldestFirst: true})
		}
		add(8)
		check(mailbox.ListQuery{Limit: 5})
		check(mailbox.ListQuery{After: b.Ref("INBOX", 1<<32-1)})
	})
}

// The bounds are instants: a minute decides, in whatever zone the message was
// dated, and Until is open.
func Test004_5_SinceAndUntilAreExact(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "since")
		far := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		u := b.Add("INBOX",
			letter{Date: "Mon, 2 Feb 2026 13:59:00 +1400", Received: far}, // 1 Feb 23:59 UTC
			letter{Date: "Sun, 1 Feb 2026 12:00:00 -1200", Received: far}, // 2 Feb 00:00 UTC
			letter{Date: "Mon, 2 Feb 2026 00:00:00 +0000", Received: far}, // 2 Feb 00:00 UTC
			letter{Date: "Tue, 3 Feb 2026 13:59:59 +1400", Received: far}, // 2 Feb 23:59:59 UTC
			letter{Date: "Mon, 2 Feb 2026 12:00:00 -1200", Received: far}, // 3 Feb 00:00 UTC
			letter{Date: "", Received: time.Date(2026, 2, 2, 5, 0, 0, 0, time.UTC)},
			letter{Date: "no date", Received: time.Date(2026, 2, 3, 5, 0, 0, 0, time.UTC)},
		)
		day := time.Date(2026, 2, 2, 0, 0, 0, 0, time.UTC)
		tests := []struct {
			since, until time.Time
			want         []uint32
		}{
			{day, day.AddDate(0, 0, 1), []uint32{u[1], u[2], u[3], u[5]}},
			{day, time.Time{}, []uint32{u[1], u[2], u[3], u[4], u[5], u[6]}},
			{time.Time{}, day, []uint32{u[0]}},
			{day.Add(time.Second), day.Add(24*time.Hour - time.Second), []uint32{u[5]}},
			{day.In(time.FixedZone("", 9*3600)), day.Add(time.Nanosecond), []uint32{u[1], u[2]}},
		}
		for _, tc := range tests {
			p := b.list(mailbox.ListQuery{Since: tc.since, Until: tc.until, OldestFirst: true})
			if got := uidsOf(p); !slices.Equal(got, tc.want) || p.HasMore {
				t.Errorf("since %v until %v: %v, want %v", tc.since, tc.until, got, tc.want)
			}
		}
	})
}

func TestListShowsWhatItSays(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "shows")
		received := time.Date(2026, 3, 1, 1, 2, 3, 0, time.UTC)
		u := b.Add("INBOX",
			letter{Subject: "=?UTF-8?B?R3LDvMOfZQ==?= \u202edeen", From: "=?UTF-8?Q?J=C3=BCrgen?= <j@example.org>", Date: "Sun, 01 Mar 2026 10:00:00 +0100",
				Extra: "Message-ID: <a@b>\r\nCc: c@example.org\r\n", Received: received, Flags: []imap.Flag{imap.FlagFlagged}},
			letter{Subject: "with a file", Date: "garbage", Received: received,
				Extra: "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n",
				Body:  "--x\r\nContent-Type: text/plain\r\n\r\nhi\r\n--x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF\r\n--x--\r\n"},
		)
		p := b.list(mailbox.ListQuery{OldestFirst: true, Full: true})
		if len(p.Messages) != 2 || p.UIDNext != u[1]+1 && e.Name != "courier" || p.Folder != "INBOX" {
			t.Fatalf("%+v", p)
		}
		m := p.Messages[0]
		if m.Subject != "Grüße deen" || !slices.Equal(m.From, []mail.Address{{Name: "Jürgen", Addr: "j@example.org"}}) || !slices.Equal(m.To, []mail.Address{{Name: "Ann", Addr: "ann@example.org"}}) ||
			!slices.Equal(m.CC, []mail.Address{{Addr: "c@example.org"}}) || m.InternetMessageID == "" || m.HasAttachments || !slices.Equal(m.Flags, []string{`\Flagged`}) ||
			!m.Date.Equal(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)) || !m.InternalDate.Equal(received) || m.Size == 0 || m.Ref.UID != u[0] || m.Ref.UIDValidity == 0 {
			t.Errorf("%+v", m)
		}
		if m = p.Messages[1]; !m.HasAttachments {
			t.Errorf("%+v", m)
		}
		// A message without a readable Date is dated by its arrival, in every list and when it is read.
		dates := []time.Time{m.Date, m.InternalDate, b.Read("INBOX", u[1], mailbox.GetQuery{}).Date}
		for _, q := range []mailbox.ListQuery{{}, {Unread: true}, {Snippet: 50}} {
			dates = append(dates, b.list(q).Messages[0].Date)
		}
		if slices.ContainsFunc(dates, func(at time.Time) bool { return !at.Equal(received) }) {
			t.Errorf("dated %v", dates)
		}
		if m = b.list(mailbox.ListQuery{}).Messages[1]; m.To != nil || m.CC != nil || m.Size != 0 || m.InternetMessageID != "" || !m.InternalDate.IsZero() || m.Subject == "" {
			t.Errorf("compact: %+v", m)
		}
		must(t, second(mail.ParseRef(m.Ref.String())))
	})
}

func TestListOfAFolderThatIsNot(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "nofolder")
		for range 2 {
			for _, folder := range []string{"Nowhere", "a\r\nb", "\xff"} {
				mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{Folder: folder})), mail.KindNotFound)
				mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{Folder: folder, Unread: true})), mail.KindNotFound)
				mailtest.WantKind(t, second(b.Get(t.Context(), b.Ref(folder, 1), mailbox.GetQuery{})), mail.KindNotFound)
			}
			b.list(mailbox.ListQuery{})
		}
	})
}

// A folder whose name is not ASCII, or means something to a command line or to
// IMAP, is a folder like another.
func TestFolderNames(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "names")
		for _, name := range []string{"Entwürfe", "日本語", "a & b", `quote"d`, "paren(s)", "with {5}", "100% *", "x:y:1:2"} {
			subject := name
			name = b.In(name)
			if err := b.Admin.Create(name, nil).Wait(); err != nil {
				t.Fatal(name, err)
			}
			u := b.Add(name, letter{Subject: subject})
			p := b.list(mailbox.ListQuery{Folder: name})
			if !slices.Equal(uidsOf(p), u) || p.Messages[0].Subject != subject {
				t.Errorf("%s: %+v", name, p)
			}
			ref, err := mail.ParseRef(p.Messages[0].Ref.String())
			must(t, err)
			if m, err := b.Get(t.Context(), ref, mailbox.GetQuery{}); err != nil || m.Subject != subject {
				t.Errorf("%s: %+v %v", name, m, err)
			}
		}
	})
}

// A long header costs what is shown of it, and hides nobody else's message.
func TestListWithEnormousHeaders(t *testing.T) {
	b := onDovecot(t, "enormous")
	to := strings.Repeat(" somebody@example.org,\r\n", 20_000)
	u := b.Add("INBOX", letter{Subject: "before"}, letter{Subject: "long", Extra: "Cc:" + to + " x@example.org\r\n"}, letter{Subject: "after"})
	p := b.list(mailbox.ListQuery{OldestFirst: true, Full: true})
	if !slices.Equal(uidsOf(p), u) || len(p.Messages[1].CC) > 100 {
		t.Errorf("%v, %d addresses", uidsOf(p), len(p.Messages[1].CC))
	}
}

// A read sees what anybody has done before it, also on a connection that had the
// folder open already.
func TestReadsSeeWhatOthersDid(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "others", writable)
		another := open(t, e, "others", writable)
		u := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"})
		b.list(mailbox.ListQuery{})
		for round, uid := range u {
			must(t, another.through("flags", b.Ref("INBOX", uid)))
			p := b.list(mailbox.ListQuery{OldestFirst: true})
			if len(p.Messages) <= round || !slices.Contains(p.Messages[round].Flags, "x") {
				t.Errorf("round %d: a flag is not seen: %+v", round, p.Messages)
			}
			if m := b.Read("INBOX", uid, mailbox.GetQuery{}); !slices.Contains(m.Flags, "x") {
				t.Errorf("round %d: get: %q", round, m.Flags)
			}
			v := b.Add("INBOX", letter{Subject: "new"})[0]
			if m := b.Read("INBOX", v, mailbox.GetQuery{}); m.Subject != "new" {
				t.Errorf("round %d: %+v", round, m)
			}
			b.Remove("INBOX", v)
			mailtest.WantKind(t, second(b.Get(t.Context(), b.Ref("INBOX", v), mailbox.GetQuery{})), mail.KindNotFound)
		}
	})
}

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

// parted is a letter of several parts, each with its own header.
func parted(subject, multipart string, parts ...string) letter {
	return letter{Subject: subject, Extra: "MIME-Version: 1.0\r\nContent-Type: multipart/" + multipart + "; boundary=b\r\n",
		Body: "--b\r\n" + strings.Join(parts, "\r\n--b\r\n") + "\r\n--b--\r\n"}
}

const (
	plainPart    = "Content-Type: text/plain; charset=utf-8\r\n\r\nhello"
	htmlPart     = "Content-Type: text/html; charset=utf-8\r\n\r\n<p>hello</p>"
	calendarPart = "Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR"
	icsPart      = "Content-Type: application/ics; name=i.ics\r\nContent-Disposition: attachment; filename=i.ics\r\n\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR"
	filePart     = "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF"
)

// A list and a search know invitations and attachments as a single message does, from the
// first time on and in every folder; of hidden messages none of them tells.
func TestListsSearchesAndMessagesAgreeAboutAttachments(t *testing.T) {
	all := []letter{
		{Subject: "none none", Body: "hi"}, parted("none none", "alternative", plainPart, htmlPart), parted("attachments none", "mixed", plainPart, filePart),
		parted("none invitation", "alternative", plainPart, htmlPart, calendarPart), parted("none invitation", "mixed", plainPart, icsPart),
		parted("attachments invitation", "mixed", plainPart, calendarPart, filePart),
	}
	strange := parted("hidden attachments invitation", "mixed", plainPart, calendarPart, filePart)
	strange.From = "eve@example.net"
	marks := func(s *mailbox.Summary) string {
		return map[bool]string{true: "attachments", false: "none"}[s.HasAttachments] + " " + map[bool]string{true: "invitation", false: "none"}[s.Invitation]
	}
	t.Parallel()
	for _, e := range mailtest.SharedServers(t) { // the one in memory tells no dispositions
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": allowing("@example.org")} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				b := open(t, e, "parts"+name, rules)
				b.folders("Work")
				b.Add("INBOX", all[:3]...)
				b.Add("Work", all[5])
				if name == "rules" {
					b.Add("INBOX", strange)
				}
				b.list(mailbox.ListQuery{})
				b.Add("INBOX", all[3:]...)
				for round := range 2 {
					for _, q := range []mailbox.ListQuery{{}, {Full: true}, {Snippet: 60}} {
						p := b.list(q)
						if len(p.Messages) != len(all) || len(p.Issues) > 0 {
							t.Fatalf("%+v", p)
						}
						for i := range p.Messages {
							m := &p.Messages[i]
							one, err := b.Get(t.Context(), m.Ref, mailbox.GetQuery{})
							if err != nil || marks(m) != m.Subject || marks(&one.Summary) != m.Subject {
								t.Errorf("round %d: %q: list %q, get %q, %v", round, m.Subject, marks(m), marks(&one.Summary), err)
							}
						}
					}
				}
				for _, tc := range []struct {
					q    mailbox.SearchQuery
					want int
				}{
					{mailbox.SearchQuery{Attachments: true}, 3},
					{mailbox.SearchQuery{Invitations: true, Unread: true, Snippet: 50}, 4},
					{mailbox.SearchQuery{Invitations: true, Subject: "none inv"}, 2},
					{mailbox.SearchQuery{Attachments: true, Invitations: true}, 2},
				} {
					p := b.search(tc.q)
					for i := range p.Messages {
						m := &p.Messages[i]
						if tc.q.Attachments && !m.HasAttachments || tc.q.Invitations && !m.Invitation || marks(m) != m.Subject {
							t.Errorf("%+v: found %q", tc.q, m.Subject)
						}
					}
					if len(p.Messages) != tc.want || p.Total != tc.want || len(p.Issues) > 0 {
						t.Errorf("%+v: %q of %d, %v, want %d", tc.q, found(p), p.Total, p.Issues, tc.want)
					}
				}
			})
		}
	}
}

// snippetLetters are texts and what a list shows of them.
func snippetLetters() (letters []letter, want []string) {
	long := strings.Repeat("word ", 4000)
	letters = []letter{
		{Subject: "short", Body: "Hello,\r\n\r\nis this   new?\r\n"},
		{Subject: "answer", Body: "New words.\r\n\r\nOn Monday Bob wrote:\r\n> old words\r\n"},
		{Subject: "long", Body: long},
		parted("parts", "mixed", "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nR3LDvMOfZQ==", filePart),
		parted("html", "alternative", "Content-Type: text/html; charset=utf-8\r\n\r\n<style>"+strings.Repeat("p { color: red }\r\n", 300)+"</style><p>shown</p>"),
		{Subject: "empty"},
	}
	return letters, []string{"Hello, is this new?", "New words.", long[:59] + "…", "Grüße", "shown", ""}
}

func TestListsAndSearchesShowTheOpeningOfEach(t *testing.T) {
	t.Parallel()
	letters, want := snippetLetters()
	for _, e := range mailtest.SharedEndpoints(t) {
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": allowing("bob@example.org")} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				b := open(t, e, "openings"+name, rules)
				b.Add("INBOX", letters...)
				for _, m := range b.search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Snippet: 60}).Messages {
					if i := int(m.Ref.UID) - 1; m.Snippet != want[i] {
						t.Errorf("a search: %s: %q, want %q", m.Subject, m.Snippet, want[i])
					}
				}
				for _, q := range []mailbox.ListQuery{{Snippet: 60, OldestFirst: true}, {Snippet: 60, Unread: true, OldestFirst: true}, {Snippet: 1, OldestFirst: true}, {OldestFirst: true}} {
					for i, m := range b.list(q).Messages {
						switch expected := want[i]; {
						case q.Snippet == 0 && m.Snippet != "", q.Snippet == 60 && m.Snippet != expected, q.Snippet == 1 && len([]rune(m.Snippet)) > 50:
							t.Errorf("%+v: %s: %q, want %q", q, m.Subject, m.Snippet, expected)
						}
					}
				}
			})
		}
	}
}

func TestPOP3ListShowsTheOpeningOfEach(t *testing.T) {
	b := openPop(t, "popopenings")
	letters, want := snippetLetters()
	for _, l := range letters {
		b.deliver(fmt.Sprintf("From: bob@example.org\r\nSubject: %s\r\n%s\r\n%s", l.Subject, l.Extra, l.Body))
	}
	for i, m := range b.list(mailbox.ListQuery{Snippet: 60, OldestFirst: true}).Messages {
		if m.Subject != letters[i].Subject || m.Snippet != want[i] {
			t.Errorf("%s: %q, want %q", m.Subject, m.Snippet, want[i])
		}
	}
}
