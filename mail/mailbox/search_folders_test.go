package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

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
