package commands_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestSubjectsAndNamesAreCutAndAddressesAreNot(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	address := strings.Repeat("a", 60) + "@" + strings.Repeat("very-long.", 20) + "example.org"
	whole := mailbox.Summary{Ref: ref(1), Date: at, Subject: strings.Repeat("s", 120), From: []mail.Address{{Name: strings.Repeat("n", 120), Addr: address}}}
	long := mailbox.Summary{Ref: ref(2), Date: at, Subject: strings.Repeat("é", 4000), From: []mail.Address{{Name: strings.Repeat("é", 4000), Addr: address}}}
	many := mailbox.Summary{Ref: ref(3), Date: at, From: slices.Repeat([]mail.Address{{Addr: address}}, 9)}
	b.page = mailbox.Page{Messages: []mailbox.Summary{whole, long, many}}
	cut := strings.Repeat("é", 119) + "…"
	for i, want := range [][]any{{whole.From[0].String(), whole.Subject}, {cut + " <" + address + ">", cut}, {strings.Repeat(address+", ", 5) + "and 4 more", ""}} {
		if got := b.OK(t, "mail list --fields from,subject").Data["rows"].([]any)[i].([]any); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	for i, m := range b.OK(t, "mail list --full").Data["messages"].([]any) {
		e, s := m.(map[string]any), b.page.Messages[i]
		if subject, _ := e["subject"].(string); subject != s.Subject || e["from"] != strings.TrimSuffix(strings.Repeat(s.From[0].String()+", ", len(s.From)), ", ") {
			t.Errorf("--full cuts: %.80q", e)
		}
	}
}

func TestAThreadDoesNotRepeatItsSubject(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	b.thread = mailbox.Thread{Folder: "INBOX", UIDValidity: 7, Subject: "Shelves", Messages: []mailbox.ThreadMessage{
		{Summary: mailbox.Summary{Ref: ref(1), Subject: "Shelves"}},
		{Summary: mailbox.Summary{Ref: ref(2), Subject: "Re: shelves"}, Parent: ref(1)},
		{Summary: mailbox.Summary{Ref: ref(3), Subject: "Lamps (was: something else entirely) Shelves"}, Parent: ref(2)}}}
	e := b.OK(t, "mail thread --uid 2")
	got, _ := json.Marshal(e.Data)
	if want := `{"columns":["id","subject"],"rows":[["1",""],["2",""],["3","Lamps (was: something else entirely) Shelves"]],"subject":"Shelves","untrusted":"subject"}`; string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if e := b.OK(t, "mail thread --uid 2 --full").Data["messages"].([]any)[1].(map[string]any); e["subject"] != "Re: shelves" {
		t.Errorf("--full: %v", e)
	}
}
