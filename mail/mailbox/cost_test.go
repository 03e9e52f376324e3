package mailbox_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// counted is a mailbox on Dovecot behind a proxy that counts, over TLS as everybody has it.
func counted(t *testing.T, user string, sessions int, latency time.Duration) (*box, *servertest.Proxy) {
	t.Helper()
	t.Parallel()
	return countedOn(t, "dovecot", user, sessions, latency)
}

// countedOn is counted on one of the real servers.
func countedOn(t *testing.T, server, user string, sessions int, latency time.Duration) (*box, *servertest.Proxy) {
	t.Helper()
	config := servertest.Config{}
	if server == "dovecot without ESEARCH" {
		config.HideCapabilities = []string{"ESEARCH"}
	}
	s, e := mailtest.Shared(t, config)
	secure, ca := s.IMAPSAddr(), s.CAPEM
	if server == "courier" {
		s := servertest.SharedCourier(t)
		e, secure, ca = mailtest.SharedCourier(t), s.IMAPSAddr(), s.CAPEM
	}
	proxy := servertest.NewProxy(t, secure, servertest.ProxyOptions{Latency: latency})
	b := open(t, e, user, writable, func(a *mail.Account) {
		a.IMAP = mail.Endpoint{Host: proxy.Host, Port: proxy.Port, Security: mail.TLS}
		a.CAPEM = ca
	})
	b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, SessionsPerAccount: sessions})
	t.Cleanup(func() { _ = b.Close() })
	return b, proxy
}

// realistic is a message such as people get: a plain one, one in two forms, and
// now and then one with a file.
func realistic(i int) letter {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Hour)
	l := letter{From: fmt.Sprintf("Person %d <person%d@example.org>", i, i), Subject: fmt.Sprintf("About the meeting on day %d", i),
		Date: at.Format(time.RFC1123Z), Received: at,
		Body: strings.Repeat("A line of text that somebody wrote.\r\n", 10)}
	switch i % 5 {
	case 1, 3:
		l.Extra = "MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=\"b\"\r\n"
		l.Body = "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + l.Body + "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>" + l.Body + "</p>\r\n--b--\r\n"
	case 4:
		l.Extra, l.Body = mixed("Content-Type: text/plain; charset=utf-8\r\n\r\n"+l.Body, attachment("minutes.pdf", 4000))
	}
	return l
}

// cost is what a command may cost on a warm connection.
type cost struct {
	name  string
	trips int
	bytes int64 // from the server; 0 means any
	run   func() error
}

func (c cost) holds(t *testing.T, proxy *servertest.Proxy) {
	t.Helper()
	proxy.Reset()
	if err := c.run(); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	st := proxy.Stats()
	t.Logf("%-26s %d round trips, %d bytes out, %d bytes in", c.name, st.Flights, st.ToServer, st.ToClient)
	if st.Flights > c.trips || st.Connections != 0 {
		t.Errorf("%s: %d round trips on %d new connections, want %d", c.name, st.Flights, st.Connections, c.trips)
	}
	if c.bytes > 0 && st.ToClient > c.bytes {
		t.Errorf("%s: %d bytes from the server, want at most %d", c.name, st.ToClient, c.bytes)
	}
}

// What each command costs on a warm connection: round trips, connections and
// bytes. These are the figures to hold (a change that needs more has to say why).
func TestWarmCosts(t *testing.T) {
	b, proxy := counted(t, "warm", 0, 0)
	for i := range 60 {
		b.Add("INBOX", realistic(i))
	}
	text := strings.Repeat("text of the letter. ", 100)
	extra, body := mixed("Content-Type: text/plain\r\n\r\n"+text, attachment("f", 5<<20))
	large := b.Add("Sent", letter{Subject: "large", Extra: extra, Body: body})[0]
	b.Add("Sent", letter{Extra: "Message-ID: <a@example.org>\r\n"}, letter{Extra: "Message-ID: <b@example.org>\r\n"})
	var bounces []mail.Ref
	for _, id := range []string{"a", "b"} {
		l := letter{From: "mailer-daemon@example.org", Extra: "In-Reply-To: <" + id + "@example.org>\r\n"}
		bounces = append(bounces, b.refs("Archive", b.Add("Archive", l)...)...)
	}
	b.folder("Other")
	must(t, b.Warm(t.Context(), account))
	first := b.list(mailbox.ListQuery{})
	id := func(i int) mail.Ref { return first.Messages[i].Ref }
	oldest := func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{OldestFirst: true})) }
	for _, c := range []cost{
		{"first copy", 2, 0, func() error { return second(b.Copy(t.Context(), account, []mail.Ref{id(20)}, "", "Other")) }},
		{"list", 1, 16_000, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{})) }},
		{"list of 10", 1, 3_600, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Limit: 10})) }},
		{"list with snippets", 1, 120_000, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Snippet: 120})) }},
		// What the oldest are made of is not known yet, and asked for once.
		{"list, oldest first", 2, 0, oldest}, {"list, oldest first again", 1, 0, oldest},
		{"list of everything", 1, 0, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Limit: 500})) }},
		{"list of the unread", 2, 0, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Unread: true})) }},
		{"list by UID", 2, 0, func() error {
			return second(b.List(t.Context(), account, mailbox.ListQuery{Before: b.Ref("INBOX", 30), After: b.Ref("INBOX", 10)}))
		}},
		{"list with something new", 2, 0, func() error {
			b.Add("INBOX", letter{Subject: "new", Date: "Mon, 2 Mar 2026 09:00:00 +0000"})
			p, err := b.List(t.Context(), account, mailbox.ListQuery{})
			if err == nil && p.Messages[0].Subject != "new" {
				t.Errorf("newest is %q", p.Messages[0].Subject)
			}
			return err
		}},
		{"list with something new of several parts", 2, 0, func() error {
			extra, body := mixed("Content-Type: text/plain\r\n\r\nx", attachment("f", 100))
			b.Add("INBOX", letter{Subject: "new parts", Date: "Mon, 2 Mar 2026 09:00:00 +0000", Extra: extra, Body: body})
			p, err := b.List(t.Context(), account, mailbox.ListQuery{})
			if err == nil && (p.Messages[0].Subject != "new parts" || !p.Messages[0].HasAttachments) {
				t.Errorf("newest is %+v", p.Messages[0])
			}
			return err
		}},
		{"get", 1, 8_000, func() error { return second(b.Get(t.Context(), id(0), mailbox.GetQuery{})) }},
		{"bounces", 2, 0, func() error {
			all, err := b.GetEach(t.Context(), account, bounces, mailbox.GetQuery{})
			if err == nil && (all.Messages[0].Returned.UID != large+1 || all.Messages[1].Returned.UID != large+2) {
				t.Errorf("%v, %v", all.Messages[0].Returned, all.Messages[1].Returned)
			}
			return err
		}},
		{"get beside 5 MB", 1, int64(len(text)) + 8<<10, func() error { return second(b.Get(t.Context(), b.Ref("Sent", large), mailbox.GetQuery{})) }},
		{"what a reply answers", 1, 3_000, func() error { return second(b.Original(t.Context(), "mail send", id(0), mailbox.OriginalQuery{})) }},
		{"what a reply quotes", 1, 8_000, func() error {
			return second(b.Original(t.Context(), "mail send", id(0), mailbox.OriginalQuery{Text: true}))
		}},
		{"what is handed on with a file", 2, 14_000, func() error {
			return second(b.Original(t.Context(), "mail send", id(0), mailbox.OriginalQuery{Text: true, Files: true}))
		}},
		{"what is handed on with 5 MB", 2, 0, func() error {
			o, err := b.Original(t.Context(), "mail send", b.Ref("Sent", large), mailbox.OriginalQuery{Text: true, Files: true})
			if err == nil && (len(o.Files) != 1 || o.Files[0].Size < 3<<20) {
				t.Errorf("%+v", o.Files)
			}
			return err
		}},
		{"what is handed on whole", 1, 8_000, func() error {
			return second(b.Original(t.Context(), "mail send", id(0), mailbox.OriginalQuery{Source: 1 << 20}))
		}},
		{"folders", 1, 2_000, func() error { return second(b.Folders(t.Context(), account, mailbox.FolderQuery{Counts: true})) }},
		{"first mark-read", 2, 1_500, func() error { return second(b.MarkRead(t.Context(), account, []mail.Ref{id(0)})) }},
		{"mark-read", 2, 1_500, func() error { return second(b.MarkRead(t.Context(), account, []mail.Ref{id(1)})) }},
		{"mark-read of several", 2, 2_000, func() error { return second(b.MarkRead(t.Context(), account, []mail.Ref{id(2), id(3)})) }},
		{"flags", 2, 1_500, func() error { return second(b.SetFlags(t.Context(), account, []mail.Ref{id(1)}, []string{"x"}, nil)) }},
		{"search", 2, 6_000, func() error {
			return second(b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"INBOX"}, Subject: "meeting", Limit: 10}))
		}},
		{"search with snippets", 2, 30_000, func() error {
			return second(b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"INBOX"}, Subject: "meeting", Limit: 10, Snippet: 200}))
		}},
		{"raw", 1, 0, func() error { return second(b.Raw(t.Context(), id(0), 0)) }},
		{"attachment", 2, 0, func() error { _, err := b.Attachment(t.Context(), id(0), ""); return ignore(err, mail.KindNotFound) }},
		{"copy", 2, 1_500, func() error { return second(b.Copy(t.Context(), account, []mail.Ref{id(5)}, "", "Other")) }},
		{"move", 2, 1_500, func() error { return second(b.Move(t.Context(), account, []mail.Ref{id(6)}, "Other")) }},
		{"delete", 3, 2_000, func() error { return second(b.Delete(t.Context(), account, []mail.Ref{id(7)})) }},
		{"list that judges senders", 1, 0, func() error {
			b.Dir.Edit(judging)
			return second(b.List(t.Context(), account, mailbox.ListQuery{}))
		}},
		{"get that judges a sender", 1, 0, func() error { return second(b.Get(t.Context(), id(0), mailbox.GetQuery{})) }},
		{"watch that finds nothing", 1, 1_000, func() error {
			return second(b.Watch(t.Context(), account, mailbox.WatchQuery{FromNow: true, Until: time.Now()}))
		}},
	} {
		c.holds(t, proxy)
	}
}

// What codes cost that are masked: the texts of recent messages that a search matches, and
// nothing where it is about subjects alone; the text beside an attachment.
func TestCostsOfRecentMessages(t *testing.T) {
	b, proxy := counted(t, "recent", 0, 0)
	for i := range 20 {
		l := realistic(i)
		l.Received = time.Now()
		b.Add("INBOX", l)
	}
	last := b.list(mailbox.ListQuery{}).Messages[0].Ref
	search := func(q mailbox.SearchQuery, want int) func() error {
		return func() error {
			p, err := b.Search(t.Context(), []string{account}, q)
			if err == nil && p.Total != want {
				t.Errorf("%d matches", p.Total)
			}
			return err
		}
	}
	for _, c := range []cost{
		{"search of subjects", 2, 12_000, search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Subject: "meeting", Limit: 10}, 20)},
		{"search", 2, 60_000, search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Words: "somebody", Limit: 10}, 20)},
		{"search for one", 2, 3_000, search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Words: "on day 17"}, 1)},
		{"search that finds nothing", 1, 1_000, search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Words: "nowhere"}, 0)},
		{"attachment", 2, 20_000, func() error { return second(b.Attachment(t.Context(), last, "")) }},
		{"raw", 1, 10_000, func() error { return second(b.Raw(t.Context(), last, 0)) }},
	} {
		c.holds(t, proxy)
	}
}

// second is the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }

func ignore(err error, kind mail.Kind) error {
	var e *mail.Error
	if errors.As(err, &e) && e.Kind == kind {
		return nil
	}
	return err
}

// first is a command that a process begins with, and the round trips it may take, with TCP's.
// The proxy sees a flight for each of ClientHello, what follows the server's part of the
// handshake, and what answers the greeting; TCP's own handshake comes before and is not seen.
type first struct {
	name  string
	trips int
	run   func(m *mailbox.Client) error
}

// holds measures it, with a connection that is made ahead or without.
func (c first) holds(t *testing.T, proxy *servertest.Proxy, ahead bool, o mailbox.Options) {
	t.Helper()
	m := mailbox.New(o)
	defer m.Close()
	proxy.Reset()
	var made sync.WaitGroup
	if ahead {
		made.Go(func() {
			if err := m.Warm(t.Context(), account); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
		for proxy.Stats().Connections == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if err := c.run(m); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	made.Wait()
	st := proxy.Stats()
	t.Logf("%-10s %d round trips with TCP's, %d bytes out, %d bytes in", c.name, st.Flights+1, st.ToServer, st.ToClient)
	if st.Flights+1 > c.trips || st.Connections != 1 {
		t.Errorf("%s: %d round trips on %d connections, want %d on one", c.name, st.Flights+1, st.Connections, c.trips)
	}
}

// What a command costs that has to connect first.
func TestColdCosts(t *testing.T) {
	b, proxy := counted(t, "cold", 0, 0)
	for i := range 5 {
		b.Add("INBOX", realistic(i))
	}
	for _, c := range []first{
		{"get", 4, func(m *mailbox.Client) error {
			return second(m.Get(t.Context(), b.Ref("INBOX", 1), mailbox.GetQuery{}))
		}},
		{"list", 5, func(m *mailbox.Client) error { return second(m.List(t.Context(), account, mailbox.ListQuery{})) }},
		{"search", 5, func(m *mailbox.Client) error {
			return second(m.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"INBOX"}, Subject: "meeting"}))
		}},
	} {
		c.holds(t, proxy, false, mailbox.Options{Directory: b.Dir})
	}
}

// The same of lists and folders on a server without ESEARCH and LIST-STATUS.
func TestWarmCostsOfListsOnCourier(t *testing.T) {
	t.Parallel()
	b, proxy := countedOn(t, "courier", "warm", 0, 0)
	for i := range 60 {
		b.Add("INBOX", realistic(i))
	}
	for i := range 5 {
		b.folder(fmt.Sprint("Folder ", i))
	}
	b.list(mailbox.ListQuery{})
	for _, c := range []cost{
		{"first copy", 2, 0, func() error {
			return second(b.Copy(t.Context(), account, b.refs("INBOX", 1), "", b.In("Folder 1")))
		}},
		{"list", 1, 0, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{})) }},
		{"list with snippets", 1, 0, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Snippet: 120})) }},
		{"next page", 2, 0, func() error {
			return second(b.List(t.Context(), account, mailbox.ListQuery{Before: b.Ref("INBOX", 30)}))
		}},
		{"list of the unread", 2, 0, func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Unread: true})) }},
		{"list of the oldest unread", 2, 0, func() error {
			return second(b.List(t.Context(), account, mailbox.ListQuery{Unread: true, OldestFirst: true}))
		}},
		{"folders", 2, 0, func() error { return second(b.Folders(t.Context(), account, mailbox.FolderQuery{Counts: true})) }},
	} {
		c.holds(t, proxy)
	}
}

// The first command after a start, while the connection ahead of it is being made: one
// connection, and as many round trips as if the command had made it itself. Where a folder's
// newest messages were is remembered; only the first list ever on Courier takes six.
func TestTheFirstCommandUsesWhatIsMadeAhead(t *testing.T) {
	for server, trips := range map[string]struct{ get, first, list int }{
		"dovecot": {4, 5, 4},
		"courier": {5, 6, 5}, // the login must be answered before a command may follow
	} {
		t.Run(server, func(t *testing.T) {
			b, proxy := countedOn(t, server, "ahead", 0, 20*time.Millisecond)
			for i := range 5 {
				b.Add("INBOX", realistic(i))
			}
			uids := uidsOf(b.list(mailbox.ListQuery{OldestFirst: true}))
			list := func(m *mailbox.Client) error {
				p, err := m.List(t.Context(), account, mailbox.ListQuery{})
				if err == nil && len(p.Messages) != len(uids) {
					t.Errorf("%d messages", len(p.Messages))
				}
				return err
			}
			seen := &fakeSeenStore{states: map[string]mail.SeenState{}}
			for _, c := range []first{
				{"get", trips.get, func(m *mailbox.Client) error {
					return second(m.Get(t.Context(), b.Ref("INBOX", uids[0]), mailbox.GetQuery{}))
				}},
				{"first list", trips.first, list},
				{"list", trips.list, list},
			} {
				c.holds(t, proxy, true, mailbox.Options{Directory: b.Dir, Seen: seen})
			}
		})
	}
}

// Fifty reads at once over a slow line share round trips: one goes ahead, the
// others go together, and what is long of them is fetched together once more.
func TestFiftyGetsShareRoundTrips(t *testing.T) {
	for name, tc := range map[string]struct{ repeat, trips int }{
		"short": {1, 2},
		"long":  {2000, 4}, // each of the two goes twice
	} {
		t.Run(name, func(t *testing.T) {
			b, proxy := counted(t, "fifty"+name, 1, 25*time.Millisecond)
			for i := range 50 {
				b.Add("INBOX", letter{Subject: fmt.Sprint(i), Body: strings.Repeat("a long letter. ", tc.repeat)})
			}
			b.list(mailbox.ListQuery{})
			proxy.Reset()
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					if m, err := b.Get(t.Context(), b.Ref("INBOX", uint32(i+1)), mailbox.GetQuery{BodyChars: 20_000}); err != nil || m.Subject != fmt.Sprint(i) {
						t.Errorf("%+v %v", m, err)
					}
				})
			}
			wg.Wait()
			st := proxy.Stats()
			t.Logf("%d round trips, %d bytes out, %d bytes in", st.Flights, st.ToServer, st.ToClient)
			if st.Flights > tc.trips+1 || st.Connections != 0 { // one more if some came late
				t.Errorf("%d round trips on %d new connections, want %d", st.Flights, st.Connections, tc.trips)
			}
		})
	}
}

// A conversation over INBOX, Sent and Archive costs three round trips where References or
// the subject tie it together: the message, a search in all folders, and what that found.
// Its bytes do not grow with the folders.
func TestThreadRoundTrips(t *testing.T) {
	t.Parallel()
	for _, e := range mailtest.SharedServers(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			proxy := servertest.NewProxy(t, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), servertest.ProxyOptions{})
			b := open(t, e, "threadcost", func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
			b.folders("Sent", "Archive")
			for i := range 200 {
				b.Add([]string{"INBOX", "Sent", "Archive"}[i%3], talk(i%24, fmt.Sprint("other ", i), fmt.Sprintf("o%d@x", i)))
			}
			root := b.Ref("Archive", b.Add("Archive", talk(1, "Plan", "a@x"))[0])
			middle := b.Ref("Sent", b.Add("Sent", talk(2, "Re: Plan", "b@x", "a@x"))[0])
			agreed := talk(3, "Re: Plan", "c@x", "a@x", "b@x")
			agreed.Body = "Agreed."
			leaf := b.Ref("INBOX", b.Add("INBOX", agreed)[0])
			asked := b.Ref("INBOX", b.Add("INBOX", talk(4, "Lunch", "l1@x"))[0])
			answered := b.Ref("Sent", b.Add("Sent", talk(5, "AW: Lunch", "l2@x"))[0])
			alone := b.Ref("INBOX", b.Add("INBOX", talk(6, "Alone", "n@x"))[0])
			b.list(mailbox.ListQuery{Limit: 1})
			if _, err := b.Thread(t.Context(), alone, mailbox.ThreadQuery{}); err != nil { // the folders are known from here on
				t.Fatal(err)
			}
			for _, tc := range []struct {
				name            string
				from            mail.Ref
				messages, trips int
			}{{"root", root, 3, 3}, {"middle", middle, 3, 3}, {"leaf", leaf, 3, 3}, {"asked", asked, 2, 3}, {"answered", answered, 2, 3}, {"alone", alone, 1, 2}} {
				proxy.Reset()
				th, err := b.Thread(t.Context(), tc.from, mailbox.ThreadQuery{Chars: 1000})
				if err != nil || len(th.Messages) != tc.messages {
					t.Errorf("from %s: %+v %v", tc.name, th, err)
				}
				st := proxy.Stats()
				t.Logf("from %-8s %d round trips, %d bytes out, %d bytes in", tc.name, st.Flights, st.ToServer, st.ToClient)
				if st.Flights > tc.trips || st.Connections > 0 || st.ToClient > 8000 {
					t.Errorf("from %s: %d round trips, %d connections, %d bytes", tc.name, st.Flights, st.Connections, st.ToClient)
				}
			}
			// With an inbound list, headers come first: the texts of what is shown come with the
			// search that finds no more.
			b.Dir.Edit(allowing("@example.org"))
			proxy.Reset()
			th := b.threadFrom(root, mailbox.ThreadQuery{Chars: 1000})
			if st := proxy.Stats(); st.Flights > 4 || st.Connections > 0 || len(th.Messages) != 3 || th.Messages[2].Text != "Agreed." {
				t.Errorf("with an inbound list: %d round trips, %d connections, %+v", st.Flights, st.Connections, th)
			}
		})
	}
}

// sizes are folders whose reads have to cost the same.
var sizes = []int{200, 20_000, 200_000}

// BenchmarkFolderSize reads from folders of very different sizes on Dovecot.
func BenchmarkFolderSize(b *testing.B) {
	s := servertest.Dovecot(b, servertest.Config{Storage: servertest.MDBox})
	for _, n := range sizes {
		user := fmt.Sprintf("size%d", n)
		servertest.Fill(b, s, user, "INBOX", n)
		d := &mailtest.Directory{Known: map[string]mail.Account{account: mailtest.Settings(s.Host, s.IMAPPort, user)}, Password: servertest.Password}
		m := mailbox.New(mailbox.Options{Directory: d})
		list := func(b *testing.B) {
			if p, err := m.List(b.Context(), account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 50 || p.Messages[0].Ref.UID != uint32(n) {
				b.Fatalf("%+v %v", p, err)
			}
		}
		list(b) // Dovecot indexes a folder when it is first opened
		b.Run(fmt.Sprintf("list/%d", n), func(b *testing.B) {
			for b.Loop() {
				list(b)
			}
		})
		b.Run(fmt.Sprintf("get/%d", n), func(b *testing.B) {
			uid := uint32(n / 2)
			for b.Loop() {
				must(b, second(m.Get(b.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: uid}, mailbox.GetQuery{})))
			}
		})
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	}
}
