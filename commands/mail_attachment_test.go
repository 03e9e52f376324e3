package commands_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestAttachmentIsAnsweredOrSaved(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	content := []byte(strings.Repeat("\x00PDF", 100_000))
	b.part = mailbox.AttachmentContent{Ref: ref(1), Attachment: mailbox.Attachment{PartID: "2", Filename: "../../etc/passwd", ContentType: "application/pdf", Content: content}}
	e := b.OK(t, "mail attachment --uid 1 --part 2")
	if got, err := base64.StdEncoding.DecodeString(e.Data["content_base64"].(string)); err != nil || string(got) != string(content[:200_000]) || e.Data["truncated"] != true {
		t.Errorf("%d bytes, %v, %v", len(got), e.Data["truncated"], err)
	}
	if e.Data["size_bytes"] != float64(len(content)) || e.Data["saved_to"] != nil {
		t.Errorf("%v %v", e.Data["size_bytes"], e.Data["saved_to"])
	}
	if e := b.OK(t, "mail attachment --uid 1 --part 2 --max-bytes 400000"); e.Data["truncated"] != nil {
		t.Error("all of it is cut")
	}
	e = b.OK(t, "mail attachment imap:work:INBOX:7:1 --save a/b.pdf")
	if e.Data["saved_to"] != "/saved/a/b.pdf" || e.Data["content_base64"] != nil || string(b.saved["a/b.pdf"]) != string(content) || len(b.saved) != 1 {
		t.Errorf("%v, saved %d", e.Data, len(b.saved))
	}
	b.Fails(t, "mail attachment --uid 1 --save a/b.pdf", discovery.Conflict, "left as it is")
	b.Fails(t, "mail attachment --uid 1 --save beyond-the-share", discovery.StoreError, "The share of 'agent' in the saved attachments is full")
	for _, name := range []string{"../x", "/etc/x", `a\..\x`, "C:x"} {
		b.Fails(t, "mail attachment --uid 1 --save='"+name+"'", discovery.PathTraversal, "outside")
	}
	for _, name := range []string{"", "a/", "a\tb", "a\u202efdp.exe", "a/CON", "nul.txt", "com¹.pdf", "lpt9 ", ".env", "a/.vscode/tasks.json"} {
		b.Fails(t, "mail attachment --uid 1 --save='"+name+"'", discovery.ValidationError, "--save")
	}
	if len(b.saved) != 1 {
		t.Errorf("saved besides: %d", len(b.saved))
	}
	// A server that promises to change nothing writes no file either.
	b.Principal = gateway.Principal{Name: "agent", Scope: &gateway.Scope{Profile: gateway.ReadProfile()}}
	b.Fails(t, "mail attachment --uid 1 --save new.pdf", discovery.PermissionDenied, "changes nothing")
	if len(b.saved) != 1 {
		t.Errorf("saved besides: %d", len(b.saved))
	}
}
