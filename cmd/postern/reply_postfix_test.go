package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail/servertest"
)

// reply sends a reply or hands a message on, and returns it as Python reads it.
func (o *office) reply(t *testing.T, to, line string) (sendData, servertest.PythonMessage) {
	t.Helper()
	var s sendData
	if a := o.do(t, line+" --full", &s); s.State != "accepted" {
		t.Fatalf("%s: %s", line, a.raw)
	}
	p := servertest.ReadPython(t, o.dovecot.WaitDelivered(t, to+"@example.org", strings.Trim(s.MessageID, "<>")))
	if len(p.Defects) > 0 {
		t.Errorf("%s: defects %q", line, p.Defects)
	}
	return s, p
}

// A correspondence by commands: an own address answers for itself, files go along byte for
// byte, also from another account where they may, and the answered message is marked.
func TestACorrespondenceByReplies(t *testing.T) {
	t.Parallel()
	o := newOffice(t, servertest.PostfixConfig{})
	o.do(t, "account edit ann --own-address sales@example.org", nil)
	if a := o.as(t, gateway.Principal{Name: "agent"}, "mail accounts"); !strings.Contains(string(a.raw), `"own_addresses":["sales@example.org"]`) {
		t.Errorf("accounts: %s", a.raw)
	}
	content := strings.Repeat("\x00\xff\r\n.", 500)
	sum := sha256.Sum256([]byte(content))
	writeFile(t, filepath.Join(o.files, "Überblick.bin"), content)
	o.send(t, "ann", "--account", "bob", "--to", "sales@example.org,ann@example.org", "--subject", "Offer", "--body", "See the file.", "--attach", "Überblick.bin")
	o.send(t, "ann", "--account", "bob", "--to", "ann@example.org", "--cc", "sales@example.org", "--subject", "both", "--body", "x")

	// Both of ann's addresses are in them: the account's first answers.
	_, p := o.reply(t, "bob", "mail reply ann:1 --quote --body 'Thank you.'")
	if len(p.From) != 1 || p.From[0] != [2]string{"Ann Lee", "ann@example.org"} || p.Subject != "Re: Offer" || p.Parent == "" || !strings.HasPrefix(p.Body, "Thank you.\n\nOn ") || !strings.HasSuffix(p.Body, "wrote:\n> See the file.\n") {
		t.Errorf("%+v", p)
	}
	if s, p := o.reply(t, "bob", "mail reply ann:2 --all --body x --as sales@example.org"); p.From[0][1] != "sales@example.org" || !slices.Equal(s.Recipients, []string{"bob@example.org"}) {
		t.Errorf("%+v, %+v", s, p)
	}
	agent := gateway.Principal{Name: "agent"}
	o.as(t, agent, "mail list --account ann")
	if a := o.as(t, agent, "mail draft --reply-to ann:2 --all --body x --to cy@example.org"); !strings.Contains(string(a.raw), `"recipients":["bob@example.org","cy@example.org"]`) {
		t.Errorf("it does not say to whom the draft is: %s", a.raw)
	}
	if a := o.do(t, "mail get ann:1 --full", nil); !strings.Contains(string(a.raw), `\\Answered`) {
		t.Errorf("not marked: %s", a.raw)
	}
	// The answer to what came from sales goes back there, and is from bob.
	var list listData
	o.do(t, "mail list --account bob --limit 1", &list)
	if s, _ := o.reply(t, "ann", "mail reply "+discovery.Quote(list.Messages[0].ID)+" --body back --to ann@example.org"); !slices.Equal(s.Recipients, []string{"sales@example.org", "ann@example.org"}) {
		t.Errorf("%+v", s)
	}
	// Its own sent message is answered to whom it went, by the address that wrote it.
	o.do(t, "mail list --account ann --folder Sent --limit 1", &list)
	if _, p := o.reply(t, "bob", "mail reply "+discovery.Quote(list.Messages[0].ID)+" --body again"); p.From[0][1] != "sales@example.org" || len(p.To) != 1 || p.To[0][1] != "bob@example.org" {
		t.Errorf("%+v", p)
	}

	for _, line := range []string{"mail forward ann:1 --to bob@example.org", "mail send --account ann --to bob@example.org --subject x --body x --attach-from ann:1 --part 2",
		"mail send --account bob --to bob@example.org --subject x --body x --attach-from ann:1"} {
		_, p := o.reply(t, "bob", line)
		if len(p.Files) != 1 || p.Files[0].Name != "Überblick.bin" || p.Files[0].SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %+v", line, p.Files)
		}
	}
	o.do(t, "account edit ann --mode approve", nil) // bob may send unasked what ann may not
	for line, code := range map[string]discovery.Code{
		"mail send --account bob --to bob@example.org --subject x --body x --attach-from ann:1": discovery.PermissionDenied,
		"mail draft --account bob --subject x --body x --attach-from ann:1":                     discovery.PermissionDenied,
		"mail forward ann:1 --account bob --to bob@example.org":                                 discovery.ValidationError,
		"mail draft --forward ann:1 --account bob":                                              discovery.ValidationError,
		"mail reply ann:1 --account bob --body x":                                               discovery.ValidationError,
		"mail reply ann:1 --body x --as bob@example.org":                                        discovery.ValidationError,
		"mail reply ann:1 --body x --to eve@evil.example":                                       discovery.PermissionDenied,
		"mail forward ann:1 --to eve@evil.example":                                              discovery.PermissionDenied,
		"mail reply ann:1 --body x":                                                             discovery.ApprovalRequired,
		"mail forward ann:1 --to bob@example.org --as-attachment":                               discovery.ApprovalRequired,
	} {
		if a := o.as(t, agent, line); a.Error.Code != code {
			t.Errorf("%s: %s, want %s", line, a.raw, code)
		}
	}
	for line, allowed := range map[string]bool{"mail send --account bob --to bob@example.org --subject x --body x --attach-from ann:1": false,
		"mail send --account ann --to bob@example.org --subject x --body x --attach-from ann:1": true, "mail reply ann:1 --body x": true} {
		var r struct {
			Allowed bool `json:"allowed"`
		}
		if o.do(t, "policy explain "+discovery.Quote(line), &r); r.Allowed != allowed {
			t.Errorf("%s: allowed is %v", line, r.Allowed)
		}
	}
	if _, err := os.Stat(filepath.Join(o.files, "Überblick.bin")); err != nil {
		t.Error(err)
	}
}
