package mailbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// talk is a letter with an id, what it answers, and an hour of one day.
func talk(hour int, subject, id string, refs ...string) letter {
	l := letter{Subject: subject, Date: time.Date(2026, 5, 4, hour, 0, 0, 0, time.UTC).Format(time.RFC1123Z), Extra: "Message-ID: <" + id + ">\r\n"}
	if len(refs) > 0 {
		l.Extra += "In-Reply-To: <" + refs[len(refs)-1] + ">\r\nReferences: <" + strings.Join(refs, "> <") + ">\r\n"
	}
	return l
}

func (b *box) thread(uid uint32, q mailbox.ThreadQuery) (*mailbox.Thread, []string) {
	b.T.Helper()
	th, err := b.Thread(b.T.Context(), b.Ref("INBOX", uid), q)
	if err != nil {
		b.T.Fatalf("thread of UID %d: %v", uid, err)
	}
	var out []string
	for _, m := range th.Messages {
		line := fmt.Sprintf("%d %s", m.Ref.UID, m.Subject)
		if m.Parent.UID != 0 {
			line += fmt.Sprintf(" < %d", m.Parent.UID)
		}
		out = append(out, line)
	}
	return th, out
}

func Test004_5_ThreadsByReferencesThenReplyThenSubject(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "threads")
		onlyReply := letter{Subject: "Antwort: Plan", Date: "Mon, 04 May 2026 13:00:00 +0000", Extra: "Message-ID: <d@x>\r\nIn-Reply-To: <c@x>\r\n"}
		b.Add("INBOX",
			talk(9, "Plan", "a@x"),                               // 1
			talk(9, "Newsletter", "n1@x"),                        // 2
			talk(10, "Re: Plan", "b@x", "a@x"),                   // 3
			talk(11, "AW: Plan (new room)", "c@x", "a@x", "b@x"), // 4: another subject
			onlyReply,                                  // 5: no References
			talk(12, "Newsletter", "n2@x"),             // 6: the same subject, no reply
			talk(14, "RE: [list] Fwd: Plan", "z@x"),    // 7: nothing but the subject of a reply
			talk(15, "", "e1@x"), talk(16, "", "e2@x"), // 8, 9: no subject
			talk(17, "Re: Lost", "f@x", "lost@x"), talk(18, "Re: Lost", "g@x", "lost@x"), // 10, 11: their root is not here
		)
		plan := []string{"1 Plan", "3 Re: Plan < 1", "4 AW: Plan (new room) < 3", "5 Antwort: Plan < 4", "7 RE: [list] Fwd: Plan < 1"}
		for uid, want := range map[uint32][]string{1: plan, 3: plan, 4: plan, 5: plan, 7: plan, 2: {"2 Newsletter"}, 6: {"6 Newsletter"},
			8: {"8"}, 10: {"10 Re: Lost", "11 Re: Lost"}, 11: {"10 Re: Lost", "11 Re: Lost"}} {
			th, got := b.thread(uid, mailbox.ThreadQuery{})
			for i := range got {
				got[i] = strings.TrimSpace(got[i])
			}
			if !slices.Equal(got, want) || th.Truncated || len(th.Issues) > 0 {
				t.Errorf("UID %d: %q, want %q", uid, got, want)
			}
		}
		if th, _ := b.thread(4, mailbox.ThreadQuery{}); th.Subject != "Plan" {
			t.Errorf("subject %q", th.Subject)
		}
		th, got := b.thread(1, mailbox.ThreadQuery{Limit: 2, Full: true})
		if len(got) != 2 || !th.Truncated || th.Messages[0].Ref.UID != 1 || th.Messages[1].Ref.UID != 7 || th.Messages[1].Size == 0 {
			t.Errorf("of a long one: %q %+v", got, th)
		}
		mailtest.WantKind(t, second(b.Thread(t.Context(), b.Ref("INBOX", 99), mailbox.ThreadQuery{})), mail.KindNotFound)
	})
}

// places is where the messages of a conversation are.
func places(th *mailbox.Thread) string {
	var all []string
	for _, m := range th.Messages {
		all = append(all, fmt.Sprintf("%s/%d", m.Ref.Folder, m.Ref.UID))
	}
	return strings.Join(all, " ")
}

// threadFrom is a conversation that can be read.
func (b *box) threadFrom(ref mail.Ref, q mailbox.ThreadQuery) *mailbox.Thread {
	b.T.Helper()
	th, err := b.Thread(b.T.Context(), ref, q)
	if err != nil {
		b.T.Fatalf("thread of %s: %v", ref, err)
	}
	return th
}

// A folder with the role \All has every message but those of Trash: it is looked in instead
// of INBOX, Sent and Archive.
func TestAConversationInTheFolderOfAllMail(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{All: true})
	b := open(t, e, "allmail")
	root, reply, late := talk(1, "Plan", "a@x"), talk(2, "Re: Plan", "b@x", "a@x"), talk(3, "AW: Plan", "c@x")
	b.Add("All", root, reply, late)
	for folder, l := range map[string]letter{"INBOX": root, "Sent": reply, "Archive": late} {
		b.Add(folder, l)
		for range 2 {
			th := b.threadFrom(b.Ref(folder, 1), mailbox.ThreadQuery{})
			if got := places(th); got != "All/1 All/2 All/3" || th.Folder != folder || th.Truncated {
				t.Errorf("from %s: %s, of %s, cut %v", folder, got, th.Folder, th.Truncated)
			}
		}
	}
	gone := b.Add("Trash", talk(4, "Re: Plan", "d@x", "a@x"))[0]
	if got := places(b.threadFrom(b.Ref("Trash", gone), mailbox.ThreadQuery{})); got != "All/1 All/2 All/3 Trash/1" {
		t.Errorf("from Trash: %s", got)
	}
}

// Copies are shown once: the account's own first, which no other wrote, then that of INBOX.
// A message that only claims to be another one is no copy.
func TestCopiesAreShownOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "copies")
		b.folders("Sent", "Archive", "Other")
		root, mine := talk(1, "Plan", "a@x"), talk(2, "Re: Plan", "b@x", "a@x")
		other := mine
		other.Body = "another text under the same id"
		for _, f := range []string{"Archive", "INBOX", "Other"} {
			b.Add(f, root)
		}
		for _, f := range []string{"INBOX", "Sent", "Archive"} {
			b.Add(f, mine)
		}
		b.Add("Archive", other)
		want := fmt.Sprintf("INBOX/1 %s/1 %s/3", b.In("Sent"), b.In("Archive"))
		for _, ref := range []mail.Ref{b.Ref("INBOX", 1), b.Ref("INBOX", 2), b.Ref("Sent", 1), b.Ref("Archive", 1), b.Ref("Archive", 3), b.Ref("Other", 1)} {
			if got := places(b.threadFrom(ref, mailbox.ThreadQuery{})); got != want {
				t.Errorf("from %s: %s, want %s", ref, got, want)
			}
		}
	})
}

// Each message has what is new in its text, wherever that stands, and its attachments.
func TestAConversationHasNewTexts(t *testing.T) {
	history := strings.Repeat("> a quoted line of the message before, as programs quote it\r\n", 200)
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "newtexts")
		b.folders("Sent")
		root, above, below, html := talk(1, "Plan", "a@x"), talk(2, "Re: Plan", "b@x", "a@x"), talk(3, "Re: Plan", "c@x", "a@x", "b@x"), talk(4, "Re: Plan", "d@x", "a@x")
		root.Body = strings.Repeat("word ", 400)
		above.Body = "New above.\r\n\r\nOn Mon, 4 May 2026, Bob <bob@example.org> wrote:\r\n" + history
		below.Body = "On Mon, 4 May 2026, Bob <bob@example.org> wrote:\r\n" + history + "\r\nNew below.\r\n"
		extra, body := mixed("Content-Type: text/html\r\n\r\n<p>New <b>in</b> HTML.</p><blockquote type=cite>old</blockquote>", attachment("minutes.pdf", 400))
		html.Extra, html.Body = html.Extra+extra, body
		b.Add("INBOX", root, below, html)
		b.Add("Sent", above)
		for range 2 {
			th := b.threadFrom(b.Ref("INBOX", 1), mailbox.ThreadQuery{Chars: 300})
			if len(th.Messages) != 4 {
				t.Fatalf("%+v", th)
			}
			m := th.Messages
			if !m[0].TextTruncated || len([]rune(m[0].Text)) != 300 || !strings.HasSuffix(m[0].Text, "…") {
				t.Errorf("the long text: %q", m[0].Text)
			}
			for i, want := range map[int]string{1: "New above.", 2: "New below.", 3: "New in HTML."} {
				if m[i].Text != want || m[i].TextTruncated {
					t.Errorf("%d: %q, cut %v", i, m[i].Text, m[i].TextTruncated)
				}
			}
			if a := m[3].Attachments; len(a) != 1 || a[0].Filename != "minutes.pdf" || a[0].PartID != "2" || a[0].Size != 400 || len(m[1].Attachments) > 0 {
				t.Errorf("attachments %+v, %+v", a, m[1].Attachments)
			}
			for _, m := range b.threadFrom(b.Ref("INBOX", 2), mailbox.ThreadQuery{}).Messages {
				if m.Text != "" || len(m.Attachments) > 0 != m.HasAttachments {
					t.Errorf("without texts: %+v", m)
				}
			}
		}
	})
}

// POP3 gives the same texts, also of a message so long that only its beginning is read.
func TestAConversationHasNewTextsByPOP3(t *testing.T) {
	b := openPop(t, "poptexts")
	note := func(n int, extra, body string) string {
		return fmt.Sprintf("From: bob@example.org\r\nSubject: Re: plan\r\nDate: Mon, 04 May 2026 0%d:00:00 +0000\r\nMessage-ID: <%d@x>\r\nIn-Reply-To: <1@x>\r\n%s\r\n%s", n, n, extra, body)
	}
	extra, body := mixed("Content-Type: text/plain\r\n\r\nNew.\r\n\r\n> old", attachment("f.pdf", 4000))
	long, longBody := mixed("Content-Type: text/plain\r\n\r\nNew too.\r\n\r\n> old", attachment("large.pdf", 1<<20))
	b.deliver(note(1, extra, body), note(2, long, longBody))
	p := b.list(mailbox.ListQuery{OldestFirst: true})
	th, err := b.Thread(t.Context(), p.Messages[1].Ref, mailbox.ThreadQuery{Chars: 100})
	if err != nil || len(th.Messages) != 2 {
		t.Fatalf("%+v %v", th, err)
	}
	if m := th.Messages[0]; m.Text != "New." || m.TextTruncated || len(m.Attachments) != 1 || m.Attachments[0].Size != 4000 {
		t.Errorf("%+v", m)
	}
	if m := th.Messages[1]; m.Text != "New too." || !m.TextTruncated || len(m.Attachments) > 0 || !m.HasAttachments {
		t.Errorf("the long one: %+v", m)
	}
}

// A hidden message links nothing, in whatever folder it is; the account's own in Sent does.
func TestHiddenMessagesLinkNoFolders(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "hiddenlinks", allowing("bob@example.org"))
		b.folders("Sent", "Archive")
		mine, hidden := talk(2, "Second", "b@x", "a@x"), talk(4, "Fourth", "d@x", "c@x")
		mine.From, hidden.From = "hiddenlinks@example.org", "eve@evil.example"
		b.Add("INBOX", talk(1, "First", "a@x"))
		b.Add("Sent", mine)
		b.Add("Archive", talk(3, "Third", "c@x", "b@x"), hidden)
		b.Add("INBOX", talk(5, "Fifth", "e@x", "d@x"))
		want := fmt.Sprintf("INBOX/1 %s/1 %s/1", b.In("Sent"), b.In("Archive"))
		for _, ref := range []mail.Ref{b.Ref("INBOX", 1), b.Ref("Sent", 1), b.Ref("Archive", 1)} {
			if got := places(b.threadFrom(ref, mailbox.ThreadQuery{Chars: 100})); got != want {
				t.Errorf("from %s: %s, want %s", ref, got, want)
			}
		}
		if got := places(b.threadFrom(b.Ref("INBOX", 2), mailbox.ThreadQuery{})); got != "INBOX/2" {
			t.Errorf("behind the hidden one: %s", got)
		}
	})
}

// What cannot be shown or found within the bounds is said.
func TestCutConversationsSaySo(t *testing.T) {
	b := onDovecot(t, "cutthreads")
	for i := range 210 {
		b.Add("INBOX", talk(i%24, "Re: long", fmt.Sprintf("l%d@x", i)))
	}
	if th, got := b.thread(5, mailbox.ThreadQuery{Limit: 1000}); len(got) != 200 || !th.Truncated {
		t.Errorf("%d messages, cut %v", len(got), th.Truncated)
	}
	// Each of a chain names the one before it alone, and there are too many answers to read.
	for i := range 120 {
		b.Add("Archive", talk(1, fmt.Sprintf("Step %d%c", i, 'a'+i%26), fmt.Sprintf("c%d@x", i), fmt.Sprintf("c%d@x", i-1)))
	}
	th := b.threadFrom(b.Ref("Archive", 1), mailbox.ThreadQuery{})
	if n := len(th.Messages); !th.Truncated || n < 30 || n >= 120 {
		t.Errorf("of a chain of 120: %d messages, cut %v", n, th.Truncated)
	}
}

// A folder that is gone since the folders were listed costs itself.
func TestAConversationWithoutAFolder(t *testing.T) {
	t.Parallel()
	b := open(t, mailtest.SharedCourier(t), "goneconv")
	b.folder("Archive")
	b.Add("INBOX", talk(1, "Plan", "a@x"), talk(2, "Re: Plan", "b@x", "a@x"))
	want := []string{"1 Plan", "2 Re: Plan < 1"}
	for _, issues := range []int{0, 1, 1} {
		th, got := b.thread(2, mailbox.ThreadQuery{Chars: 100})
		if !slices.Equal(got, want) || len(th.Issues) != issues || issues > 0 && !strings.Contains(th.Issues[0].Message, "Archive") {
			t.Errorf("%q, %+v", got, th.Issues)
		}
		if issues == 0 {
			must(t, b.Admin.Delete(b.In("Archive")).Wait())
		}
	}
}

// correspondence is random conversations: replies that name all that came before, the
// message they answer, or nothing but a subject in some language; with subjects that change.
func correspondence(rng *rand.Rand, n int) []letter {
	type sent struct {
		id, subject string
		refs        []string
	}
	var all []sent
	var letters []letter
	for i := range n {
		m := sent{id: fmt.Sprintf("%d.%x@x", i, rng.Uint32()), subject: fmt.Sprintf("Topic %c of the day", 'A'+rune(i))}
		extra := ""
		if i > 2 && rng.IntN(6) > 0 {
			to := all[rng.IntN(i)]
			base := to.subject
			if rng.IntN(3) == 0 {
				base = m.subject
			}
			m.subject = []string{"Re: ", "AW: ", "Antw: ", "SV: ", "Fwd: "}[rng.IntN(5)] + strings.TrimPrefix(strings.TrimPrefix(base, "Re: "), "AW: ")
			switch rng.IntN(4) {
			case 0:
				m.refs = append(slices.Clone(to.refs), to.id)
				extra = "In-Reply-To: <" + to.id + ">\r\nReferences: <" + strings.Join(m.refs, ">\r\n <") + ">\r\n"
			case 1:
				m.refs = []string{to.id}
				extra = "References: <" + to.id + ">\r\n"
			case 2:
				m.refs = []string{to.id}
				extra = "In-Reply-To: <" + to.id + ">\r\n"
			}
		}
		all = append(all, m)
		date := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * 40 * time.Hour)
		letters = append(letters, letter{Received: date, Subject: m.subject, Extra: "Message-ID: <" + m.id + ">\r\n" + extra, Body: fmt.Sprint("letter ", i),
			From: []string{"bob@example.org", "ann@example.org"}[rng.IntN(2)], Date: date.Format(time.RFC1123Z)})
	}
	return letters
}

// conversationOf is the messages of a conversation, in short.
func conversationOf(t *testing.T, m *mailbox.Client, ref mail.Ref) (shown string, refs []mail.Ref) {
	t.Helper()
	th, err := m.Thread(t.Context(), ref, mailbox.ThreadQuery{Chars: 100})
	if err != nil {
		t.Fatalf("thread of %s: %v", ref, err)
	}
	if th.Truncated || len(th.Issues) > 0 {
		t.Errorf("thread of %s: cut %v, %+v", ref, th.Truncated, th.Issues)
	}
	lines := []string{th.Subject}
	for _, m := range th.Messages {
		lines = append(lines, fmt.Sprintf("%s %s %q < %s", m.Ref, m.Subject, m.Text, m.Parent))
		refs = append(refs, m.Ref)
	}
	return strings.Join(lines, "\n"), refs
}

// texts is what the messages of a conversation say.
func textsOf(shown string) []string {
	var out []string
	for line := range strings.SplitSeq(shown, "\n") {
		if _, text, ok := strings.Cut(line, `"`); ok {
			text, _, _ = strings.Cut(text, `"`)
			out = append(out, text)
		}
	}
	return out
}

// A conversation is the same from any of its messages, whatever the server can do, whether
// the policy hides anything, and by POP3, which reads every header.
func TestAConversationIsTheSameFromAnyOfItsMessages(t *testing.T) {
	t.Parallel()
	for n, e := range mailtest.SharedServers(t) { // the one in memory has no Sent
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			for round := range 2 {
				if round != n && testmain.Rounds(0, 1) == 0 {
					continue // one of the two on each server, but at night
				}
				rng := rand.New(rand.NewPCG(uint64(n), uint64(round)))
				letters := correspondence(rng, 14)
				user := fmt.Sprint("same", round)
				b := open(t, e, user)
				var all []mail.Ref
				b.folders("Sent", "Archive")
				for _, l := range letters {
					folder := []string{"INBOX", "INBOX", "Sent", "Archive"}[rng.IntN(4)]
					if e.Name == "dovecot" && round == 0 {
						folder = "INBOX"
					}
					all = append(all, b.Ref(folder, b.Add(folder, l)[0]))
					if rng.IntN(8) == 0 && folder != "Archive" {
						b.Add("Archive", l) // a copy
					}
				}
				for i := range 90 * (round % 2) { // more answers than are read to see whom they answer
					b.Add("Archive", talk(1, fmt.Sprint("Re: other ", i), fmt.Sprintf("other%d@x", i), "gone@x"))
				}
				judged := open(t, e, user, allowing("@example.org"))
				seen := map[mail.Ref]bool{}
				for i, ref := range all {
					want, refs := conversationOf(t, b.Client, ref)
					if got, _ := conversationOf(t, judged.Client, ref); got != want {
						t.Errorf("round %d, with an inbound list, from %d:\n%s\nwithout:\n%s", round, i, got, want)
					}
					if e.Name == "dovecot" && round == 0 {
						p := openPopOn(t, servertest.SharedDovecot(t), e.User(user))
						page, err := p.List(t.Context(), account, mailbox.ListQuery{Full: true, Limit: 100, OldestFirst: true})
						must(t, err)
						at := slices.IndexFunc(page.Messages, func(m mailbox.Summary) bool {
							return strings.Contains(letters[i].Extra, "Message-ID: <"+m.InternetMessageID+">")
						})
						if byPop, _ := conversationOf(t, p.Client, page.Messages[at].Ref); !slices.Equal(textsOf(byPop), textsOf(want)) {
							t.Errorf("round %d, by POP3:\n%s\nby IMAP:\n%s", round, byPop, want)
						}
					}
					if seen[ref] {
						continue
					}
					for _, other := range refs {
						if got, _ := conversationOf(t, b.Client, other); got != want {
							t.Errorf("round %d, from %s:\n%s\nfrom %s:\n%s", round, ref, want, other, got)
						}
						seen[other] = true
					}
				}
			}
		})
	}
}

// Chains in which each message names only the one before it, under subjects that change, are
// followed to their ends; one that is longer than the searches says that it was cut.
func TestChainsAreFollowedToTheirEnds(t *testing.T) {
	t.Parallel()
	on(t, mailtest.SharedServers(t), func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "chains")
		const long = 60
		for i := range long {
			l := letter{Subject: fmt.Sprintf("Step %c%c", 'a'+i/20, 'a'+i%20), Date: time.Date(2026, 5, 4, 9, i, 0, 0, time.UTC).Format(time.RFC1123Z),
				Extra: fmt.Sprintf("Message-ID: <%d.@x>\r\n", i), Body: "x"}
			if i > 0 && i != 14 {
				l.Extra += fmt.Sprintf("In-Reply-To: <%d.@x>\r\n", i-1)
			}
			b.Add("INBOX", l)
		}
		for _, uid := range []uint32{1, 7, 14} {
			if th, got := b.thread(uid, mailbox.ThreadQuery{}); len(got) != 14 || th.Truncated {
				t.Errorf("%s: from UID %d: %d messages, cut %v", e.Name, uid, len(got), th.Truncated)
			}
		}
	})
}
