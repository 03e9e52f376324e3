package commands_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// specIssues is an issue with every field of one.
var specIssues = []mail.Issue{{Kind: mail.KindRefused, Stage: "parse", UID: 2, MessageID: "imap:work:INBOX:7:2", Message: "It could not be read.", Retryable: true}}

const (
	specOutcome = "status issues issues.code issues.stage issues.message issues.retryable "
	specIssue   = "issues.uid issues.message_id "
	// of 001 section 4 and of 000 section 7.1
	specPage = "account_id folder uidvalidity has_more messages messages.message_id messages.folder messages.uidvalidity messages.uid messages.date messages.from " +
		"messages.subject messages.flags messages.snippet messages.to messages.internet_message_id messages.has_attachments"
	specNext = "next_action.instruction next_action.tool next_action.arguments "
)

// The full answers of commands have every field that 000 and 001 give them. The names are
// those of the specs, but for mailbox, which is folder here, and uid, from and so on of 000,
// which are the same.
func Test001_FullAnswersHaveEveryFieldOfTheSpecs(t *testing.T) {
	list := summaries(2, 20, 0)
	list[0].Snippet, list[0].HasAttachments = "how it begins", true
	for _, tc := range []struct {
		line, fields string
		set          func(*fakeMailboxes)
	}{
		{"mail accounts", "accounts accounts.account_id accounts.host accounts.port accounts.secure " + specNext, nil},
		{"mail verify", specOutcome + specNext + "account_id ok latency_ms server.host server.port server.secure capabilities",
			func(s *fakeMailboxes) { s.verified = mail.Verification{Issues: specIssues} }},
		{"mail folders --counts", specOutcome + specNext + "account_id folders folders.name folders.delimiter",
			func(s *fakeMailboxes) {
				s.folders = mailbox.FolderList{Folders: []mailbox.Folder{{Name: "INBOX", Delimiter: "/"}}, Issues: specIssues}
			}},
		{"mail search --snippet 200", specOutcome + specIssue + specNext + "account_id folder uidvalidity total attempted returned failed next_cursor has_more messages messages.message_id " +
			"messages.folder messages.uidvalidity messages.uid messages.date messages.from messages.subject messages.flags messages.snippet",
			func(s *fakeMailboxes) {
				s.search = mailbox.SearchPage{Page: mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: list, HasMore: true, Issues: specIssues}, Searched: []string{"INBOX"},
					Total: 9, Attempted: 3, Failed: 1, NextCursor: "c"}
			}},
		{"mail list --snippet 60", specOutcome + specIssue + specNext + specPage, func(s *fakeMailboxes) {
			s.page = mailbox.Page{Messages: list, Issues: specIssues, HasMore: true}
		}},
		{"mail watch", specOutcome + specIssue + specNext + specPage, func(s *fakeMailboxes) {
			s.watch = mailbox.WatchPage{Page: mailbox.Page{UIDValidity: 7, Messages: list, Issues: specIssues}, After: ref(2)}
		}},
	} {
		b := newFixture(t, nil, work("work", mail.ReadOnly))
		if tc.set != nil {
			tc.set(b.fakeMailboxes)
		}
		path, _, _ := strings.Cut(tc.line, " --")
		command := b.Registry.Lookup(path)
		for _, full := range []bool{true, false} {
			a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: tc.line, Full: full})
			var e struct{ Data json.RawMessage }
			if err := json.Unmarshal(a.JSON, &e); err != nil || !a.Success() {
				t.Fatalf("%s: %s", tc.line, a.JSON)
			}
			data, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Data))
			must(t, err)
			if err := gatewaytest.Schema(t, command.OutputSchema(full)).Validate(data); err != nil {
				t.Errorf("%s, full %v: %v\n%s", tc.line, full, err, e.Data)
			}
			if !full {
				continue
			}
			for _, field := range strings.Fields(tc.fields) {
				if !hasField(data, strings.Split(field, ".")) {
					t.Errorf("%s has no %s: %s", tc.line, field, e.Data)
				}
			}
		}
	}
}

// What the test above shows of whole answers, of the schemas of the other commands.
func Test001_SchemasHaveEveryFieldOfTheSpecs(t *testing.T) {
	r := newRegistry(t)
	for _, c := range testmain.Table[struct {
		Path   string
		Fields []string
	}](t, "testdata/cases/spec_fields.txt") {
		has := r.Lookup(c.Path).FieldNames(true)
		for _, field := range c.Fields {
			if !slices.Contains(has, field) {
				t.Errorf("%s has no %s: %q", c.Path, field, has)
			}
		}
	}
}

// hasField reports whether a value has a field; an array, whether an entry of it has.
func hasField(v any, path []string) bool {
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[path[0]]
		return ok && (len(path) == 1 || hasField(inner, path[1:]))
	case []any:
		for _, x := range v {
			if hasField(x, path) {
				return true
			}
		}
	}
	return false
}
