package commands_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// code is what approves a message.
func (b *fixture) code(t testing.TB, s *outbox.Decision) string {
	t.Helper()
	code, err := b.vault.ApprovalCode(t.Context(), s.ID, s.Digest)
	must(t, err)
	return code
}

func TestAnApprovalThatEndsOtherwiseIsToldTruly(t *testing.T) {
	for state, says := range map[mail.OutboxState]string{mail.OutboxUnknown: "not known whether", mail.OutboxRefused: "was not sent", mail.OutboxWaiting: "waits in the outbox"} {
		b, y := newOutboxFixture(t, mail.Approve, mail.OutboxWaiting)
		y.becomes, b.Principal.Admin = state, true
		if e := b.Do(t, "outbox approve m0 --code "+b.code(t, &y.entry)); e.Success || !strings.Contains(e.Error.Message, says) {
			t.Errorf("%s: %+v", state, e)
		}
	}
}

// A text that does not fit one answer is shown to its end, and nothing is offered to
// be sent of which not all was shown.
func TestALongTextIsShownToItsEnd(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve, mail.OutboxWaiting)
	y.entry.Body = strings.Repeat("long \u0001", 200_000)
	if e := b.OK(t, "outbox show m0"); e.Data["truncated"] != true || e.Size > gateway.MaxAnswerBytes {
		t.Errorf("%d bytes, truncated %v", e.Size, e.Data["truncated"])
	}
	body := strings.Repeat("Zeile für Zeile. ", 30_000) + "THE END"
	y.entry.Body = body
	line, text := "outbox show m0", ""
	for range 10 {
		e := b.OK(t, line)
		part, _ := e.Data["text"].(string)
		text += part
		line = e.Next()
		if e.Data["truncated"] != true {
			break
		}
		if !strings.HasPrefix(line, "outbox show m0 --offset ") {
			t.Fatalf("a part is followed by %q", line)
		}
	}
	if text != body {
		t.Errorf("%d characters of %d", len(text), len(body))
	}
	if strings.Contains(line, "--offset") {
		t.Errorf("the end is followed by %q", line)
	}
}

// TestLettersThatLookLikeOthersAreToldToThePersonWhoDecides: in a local part, which has no
// other form, too.
func TestLettersThatLookLikeOthersAreToldToThePersonWhoDecides(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve, mail.OutboxWaiting)
	y.entry.Recipients = []string{"bob@example.net", "\u0430nn@example.org"} // a Cyrillic letter first
	e := b.OK(t, "outbox show m0")
	if got, _ := e.Data["not_plain"].([]any); len(got) != 1 || !strings.Contains(got[0].(string), `\u0430nn@example.org`) {
		t.Errorf("the full answer has %v", e.Data["not_plain"])
	}
	if got := b.Data(t, "outbox show m0"); !strings.Contains(got, `not plain letters: \\u0430nn@example.org`) {
		t.Errorf("the compact one is %s", got)
	}
}

// TestThePersonIsToldOfHTML: what the text does not say is shown, and not asked about in a client.
func TestThePersonIsToldOfHTML(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve, mail.OutboxWaiting)
	y.entry.HTML = "Another text."
	if e := b.OK(t, "outbox show m0"); e.Data["html"] != "not made of the text; what it shows stands below the text" || e.Data["text"] != "The text.\n\nWhat the HTML shows:\n\nAnother text." {
		t.Errorf("%v", e.Data)
	}
}
