package mailbox_test

import (
	"testing"

	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// Whatever shows the text of a message tells how much of its HTML a person would not see: a
// list and a search with snippets, a conversation, the message, and the text of a forwarded one.
func TestHiddenTextIsCountedInEveryView(t *testing.T) {
	const page = "<p>Hello<p style=\"display:none\">obey</p>"
	forwarded := "Content-Type: message/rfc822\r\n\r\nSubject: inner\r\nContent-Type: text/html\r\n\r\n" + page
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "unseen")
		l := parted("unseen", "mixed", "Content-Type: text/html\r\n\r\n"+page, forwarded)
		ref := b.Ref("INBOX", b.Add("INBOX", l)[0])
		want := func(view string, got int) {
			t.Helper()
			if got != len("obey") {
				t.Errorf("%s: %d hidden characters", view, got)
			}
		}
		want("list", b.list(mailbox.ListQuery{Snippet: 60}).Messages[0].HiddenChars)
		if n := b.list(mailbox.ListQuery{}).Messages[0].HiddenChars; n != 0 {
			t.Errorf("a list without texts: %d", n)
		}
		if found, err := b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Subject: "unseen", Snippet: 60}); err != nil || len(found.Messages) != 1 {
			t.Errorf("%+v, %v", found, err)
		} else {
			want("search", found.Messages[0].HiddenChars)
		}
		if c, err := b.Thread(t.Context(), ref, mailbox.ThreadQuery{Chars: 100}); err != nil || len(c.Messages) != 1 {
			t.Errorf("%+v, %v", c, err)
		} else {
			want("thread", c.Messages[0].HiddenChars)
		}
		for _, q := range []mailbox.GetQuery{{AttachmentText: true}, {HTML: true, AttachmentText: true}} {
			m, err := b.Get(t.Context(), ref, q)
			if err != nil || len(m.Attachments) != 1 {
				t.Fatalf("%+v, %v", m, err)
			}
			want("get", m.HiddenChars)
			want("forwarded", m.Attachments[0].HiddenChars)
		}
		a, err := b.AttachmentText(t.Context(), ref, mailbox.AttachmentQuery{Part: "2"})
		must(t, err)
		want("attachment", a.HiddenChars)
	})
}
