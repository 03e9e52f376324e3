package mailbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

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
