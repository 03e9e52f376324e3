package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

const draftOne = "imap:work:Drafts:3:1"

func TestTextIsAddedToADraft(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	b.saved["c.txt"] = []byte("c")
	e := b.ok(t, "mail draft --append-to "+draftOne+" --body 'The next part.' --attach c.txt")
	if y.appended.String() != draftOne || y.draft.Body != "The next part." || len(y.draft.Attachments) != 1 || e.Data["message_id"] != "imap:work:Drafts:3:4" || e.Data["issues"] != nil {
		t.Errorf("added %+v to %s: %v", y.draft, y.appended, e.Data)
	}
	if got := fmt.Sprint(e.Data["recipients"]); got != "[reader@example.org]" {
		t.Errorf("it does not say to whom the draft is: %s", got)
	}
	y.left = &mail.Issue{Kind: mail.KindUnsupported, MessageID: draftOne, Message: "The server has no UIDPLUS."}
	e = b.ok(t, "mail draft --append-to "+draftOne+" --body x")
	if !strings.Contains(fmt.Sprint(e.Data), "The draft without this text may still be there: The server has no UIDPLUS.") {
		t.Errorf("it does not say that two drafts are there: %s", fmt.Sprint(e.Data))
	}
}

func TestADraftIsSentAsItStands(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	y.begins = mail.OutboxWaiting
	e := b.fails(t, "mail send --draft "+draftOne, discovery.ApprovalRequired, "waits in the outbox")
	if y.request.Stored == nil || y.request.Stored.String() != draftOne || y.request.Key != "" || len(y.request.Draft.To) > 0 {
		t.Errorf("asked for %+v", y.request)
	}
	if !strings.Contains(e.Error.Hint, "sending the same draft again queues no second one") {
		t.Errorf("the hint is %q", e.Error.Hint)
	}
	b.ok(t, "policy explain 'mail send --draft "+draftOne+"'")
	y.begins = ""
	if got := b.data(t, "mail send --draft "+draftOne); !strings.Contains(got, `"to":["ann@example.org"]`) {
		t.Errorf("it does not say to whom it went: %s", got)
	}
	y.draftLeft = &mail.Issue{Kind: mail.KindConnection, Message: "The message was sent, and its draft may still be there."}
	if e := b.ok(t, "mail send --draft "+draftOne); !strings.Contains(fmt.Sprint(e.Data), "its draft may still be there") {
		t.Errorf("it does not say that the draft is there: %s", fmt.Sprint(e.Data))
	}
}

// Beside the id of a draft nothing of a message can be given that would be overlooked.
func TestWhatCannotBeGivenWithADraft(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	for line, says := range map[string]string{
		"mail send --draft nonsense":                                   "--draft",
		"mail draft --append-to nonsense --body x":                     "--append-to",
		"mail draft --append-to " + draftOne:                           "text is missing",
		"mail draft --forward 5 --reply-to 6":                          "not both",
		"mail draft --forward 5 --quote":                               "--quote need the message",
		"mail draft --all --body x":                                    "--all and --quote need",
		"mail draft --reply-to 5 --as-attachment --body x":             "--as-attachment needs the message",
		"mail send --draft " + draftOne + " --account other":           "another account",
		"mail draft --append-to " + draftOne + " --body x --account o": "another account",
	} {
		b.fails(t, line, discovery.ValidationError, says)
	}
	for _, option := range []string{"--to a@example.org", "--cc a@example.org", "--bcc a@example.org", "--subject x", "--reply-to 5", "--markdown"} {
		b.fails(t, "mail send --draft "+draftOne+" "+option, discovery.ValidationError, "sent as it stands")
		b.fails(t, "mail draft --append-to "+draftOne+" --body x "+option, discovery.ValidationError, "only a text and files")
	}
	b.fails(t, "mail draft --append-to "+draftOne+" --body x --as-attachment", discovery.ValidationError, "only a text and files")
	for _, option := range []string{"--body x", "--body-file x", "--attach x", "--idempotency-key k"} {
		b.fails(t, "mail send --draft "+draftOne+" "+option, discovery.ValidationError, "sent as it stands")
	}
	if y.request.Stored != nil || y.appended.UID != 0 {
		t.Error("something was done")
	}
}

// TestThePersonIsToldOfHTML shows what decides about HTML: what was made of the text needs no
// look of its own, and what was not is shown, and not asked about in a client.
func TestThePersonIsToldOfHTML(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	b.ok(t, "mail send --to ann@example.org --body '# x' --markdown --dry-run")
	if !y.request.Draft.Markdown {
		t.Error("it is no Markdown")
	}
	s := y.put("mine", "agent", mail.OutboxWaiting)
	s.Markdown = true
	if e := b.ok(t, "outbox show mine"); e.Data["html"] != "made of this text as Markdown, goes beside it" || e.Data["text"] != s.Body {
		t.Errorf("%v", e.Data)
	}
	s.Markdown, s.HTML = false, "Another text."
	if e := b.ok(t, "outbox show mine"); e.Data["html"] != "not made of the text; what it shows stands below the text" || e.Data["text"] != s.Body+"\n\nWhat the HTML shows:\n\nAnother text." {
		t.Errorf("%v", e.Data)
	}
}
