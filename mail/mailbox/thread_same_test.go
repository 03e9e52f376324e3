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
