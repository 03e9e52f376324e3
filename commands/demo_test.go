package commands_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/mail/mailbox"
)

// newDemo is a bench on real Mailboxes and the sample servers, whose account may
// be changed.
func newDemo(t testing.TB) *bench {
	t.Helper()
	servers, err := demo.Start(demo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	var b *bench
	of := directory{func() mail.Directory { return b.vault }}
	boxes := mailbox.New(mailbox.Options{Directory: of, Seen: seen{&b}})
	t.Cleanup(func() { _ = boxes.Close() })
	b = newBench(t, boxes)
	a := servers.Account()
	a.Mode, a.ProcessBacklog = mail.ReadWrite, true
	if err := b.vault.AddAccount(t.Context(), a, servers.Password); err != nil {
		t.Fatal(err)
	}
	return b
}

// directory is one that does not exist yet.
type directory struct{ of func() mail.Directory }

func (d directory) Accounts(ctx context.Context) ([]mail.Account, error) { return d.of().Accounts(ctx) }
func (d directory) Account(ctx context.Context, name string) (mail.Account, error) {
	return d.of().Account(ctx, name)
}
func (d directory) Secret(ctx context.Context, name string) (mail.Secret, error) {
	return d.of().Secret(ctx, name)
}

// seen is the seen-set of a bench's vault.
type seen struct{ b **bench }

func (s seen) Seen(ctx context.Context, account, folder string) (mail.SeenState, error) {
	return (*s.b).vault.Seen(ctx, account, folder)
}

func (s seen) UpdateSeen(ctx context.Context, account, folder string, change func(*mail.SeenState) error) error {
	return (*s.b).vault.UpdateSeen(ctx, account, folder, change)
}

// ids are those of the messages of an answer.
func (e envelope) ids() []string {
	var ids []string
	for _, m := range e.Data["messages"].([]any) {
		ids = append(ids, m.(map[string]any)["message_id"].(string))
	}
	return ids
}

func TestPagingGoesThroughAllOfTheDemo(t *testing.T) {
	b := newDemo(t)
	var listed []string
	for line := "mail list --limit 7 --oldest-first"; strings.HasPrefix(line, "mail list"); {
		e := b.ok(t, line)
		listed = append(listed, e.ids()...)
		if line = e.next(); len(listed) > 60 {
			t.Fatal("paging does not end")
		}
	}
	if len(listed) != 50 || !slices.IsSortedFunc(listed, func(a, b string) int {
		x, _ := mail.ParseRef(a)
		y, _ := mail.ParseRef(b)
		return int(x.UID) - int(y.UID)
	}) {
		t.Errorf("paging gives %d messages: %q", len(listed), listed)
	}
	var found []string
	for line := "mail search --text the --limit 5 --snippet --snippet-chars 60"; strings.HasPrefix(line, "mail search"); {
		e := b.ok(t, line)
		found = append(found, e.ids()...)
		if line = e.next(); float64(len(found)) > e.Data["total"].(float64) {
			t.Fatal("paging does not end")
		}
		if line == "" || !strings.HasPrefix(line, "mail search") {
			if float64(len(found)) != e.Data["total"].(float64) || len(found) < 6 {
				t.Errorf("%d messages of %v", len(found), e.Data["total"])
			}
		}
	}
	if e := b.ok(t, "mail thread "+listed[len(listed)-10]); len(e.ids()) < 2 {
		t.Errorf("a conversation of %q", e.ids())
	}
}

func TestAnAttachmentOfTheDemoInFourWays(t *testing.T) {
	b := newDemo(t)
	var id string
	for _, m := range b.ok(t, "mail list --full").Data["messages"].([]any) {
		if e := m.(map[string]any); strings.HasPrefix(fmt.Sprint(e["subject"]), "Scan ") {
			id = e["message_id"].(string)
		}
	}
	inline := b.ok(t, "mail attachment "+id)
	content, err := base64.StdEncoding.DecodeString(inline.Data["content_base64"].(string))
	if err != nil || !strings.HasPrefix(string(content), "%PDF") {
		t.Fatalf("%d bytes, %v", len(content), err)
	}
	b.ok(t, "mail attachment "+id+" --save scans/one.pdf --part "+inline.Data["part_id"].(string))
	if string(b.saved["scans/one.pdf"]) != string(content) {
		t.Error("what is saved differs from what is answered")
	}
	with := b.ok(t, "mail get "+id+" --with-content").Data["message"].(map[string]any)["attachments"].([]any)[0].(map[string]any)
	if with["content_base64"] != inline.Data["content_base64"] {
		t.Error("mail get gives other content")
	}
	raw, err := base64.StdEncoding.DecodeString(b.ok(t, "mail raw "+id).Data["raw_source_base64"].(string))
	encoded := base64.StdEncoding.EncodeToString(content)
	if err != nil || !strings.Contains(strings.ReplaceAll(string(raw), "\r\n", ""), encoded) {
		t.Errorf("the source does not hold the attachment: %d bytes, %v", len(raw), err)
	}
	b.fails(t, "mail attachment "+id+" --part 9", discovery.NotFound, "no such attachment")
}

func TestChangingTheDemo(t *testing.T) {
	b := newDemo(t)
	unread := func() int { return len(b.ok(t, "mail list --unread").ids()) }
	before := unread()
	b.ok(t, "mail mark-read --uid 50,49")
	if after := unread(); after != before-2 {
		t.Errorf("%d unread messages became %d", before, after)
	}
	b.ok(t, `mail flags --uid 50 --add project-x --remove '\Seen'`)
	if after := unread(); after != before-1 {
		t.Errorf("after removing a flag: %d unread messages of %d", after, before)
	}
	b.fails(t, "mail mark-read --uid 48,999", discovery.NotFound, "999")
	if e := b.ok(t, "mail ack --uid 50,999"); e.Data["status"] != "partial" || len(e.ids()) != 1 {
		t.Errorf("ack of one that is not there: %v", e.Data)
	}
	if ids := b.ok(t, "mail list --new").ids(); len(ids) != 49 || slices.Contains(ids, "imap:demo:INBOX:1:50") {
		t.Errorf("%d new messages", len(ids))
	}
	moved := b.ok(t, "mail move --uid 1,2 --to Archive")
	fresh := moved.Data["messages"].([]any)[0].(map[string]any)["new_message_id"].(string)
	b.ok(t, "mail get "+fresh)
	b.fails(t, "mail get --uid 1", discovery.NotFound, "no such message")
	copied := b.ok(t, "mail copy "+fresh+" --to INBOX").Data["messages"].([]any)[0].(map[string]any)["new_message_id"].(string)
	if n := len(b.ok(t, "mail list").ids()); n != 49 {
		t.Errorf("%d messages after moving two and copying one back", n)
	}
	b.ok(t, "mail delete "+copied+" --confirm")
	b.fails(t, "mail get "+copied, discovery.NotFound, "no such message")
	b.fails(t, "mail copy --uid 3 --to Nowhere", discovery.NotFound, "no folder")
	b.ok(t, "account edit demo --mode RO")
	for _, line := range []string{"mail mark-read --uid 3", `mail flags --uid 3 --add '\Flagged'`, "mail copy --uid 3 --to Archive", "mail move --uid 3 --to Archive", "mail delete --uid 3 --confirm"} {
		b.fails(t, line, discovery.PermissionDenied, "read-only")
		if e := b.ok(t, `policy explain "`+strings.ReplaceAll(line, `\`, `\\`)+`"`); e.Data["allowed"] != false || e.Data["reason"] != mail.ReasonReadOnly {
			t.Errorf("%s: explained as %v", line, e.Data)
		}
	}
	b.ok(t, "mail ack --uid 3")
}
