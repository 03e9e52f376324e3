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
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	address := strings.Repeat("a", 60) + "@" + strings.Repeat("very-long.", 20) + "example.org"
	whole := mailbox.Summary{Ref: ref(1), Date: at, Subject: strings.Repeat("s", 120), From: []mail.Address{{Name: strings.Repeat("n", 120), Addr: address}}}
	long := mailbox.Summary{Ref: ref(2), Date: at, Subject: strings.Repeat("é", 4000), From: []mail.Address{{Name: strings.Repeat("é", 4000), Addr: address}}}
	many := mailbox.Summary{Ref: ref(3), Date: at, From: slices.Repeat([]mail.Address{{Addr: address}}, 9)}
	b.page = mailbox.Page{Messages: []mailbox.Summary{whole, long, many}}
	shown := func(line string) (subjects, froms []any) {
		for _, m := range b.ok(t, line).Data["messages"].([]any) {
			e := m.(map[string]any)
			subjects, froms = append(subjects, e["subject"]), append(froms, e["from"])
		}
		return subjects, froms
	}
	cut := strings.Repeat("é", 119) + "…"
	subjects, froms := shown("mail list")
	if want := []any{whole.Subject, cut, nil}; !slices.Equal(subjects, want) {
		t.Errorf("subjects %q", subjects)
	}
	if want := []any{whole.From[0].String(), cut + " <" + address + ">", strings.Repeat(address+", ", 5) + "…"}; !slices.Equal(froms, want) {
		t.Errorf("senders %q", froms)
	}
	for _, line := range []string{"mail list --full", "mail list --fields messages.subject,messages.from"} {
		subjects, froms = shown(line)
		if subjects[1] != long.Subject || froms[1] != long.From[0].String() || froms[2] != strings.TrimSuffix(strings.Repeat(address+", ", 9), ", ") {
			t.Errorf("%s cuts: %.80q %.80q", line, subjects, froms)
		}
	}
}

func TestAnEntryHasMoreWithFull(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	b.page = mailbox.Page{Messages: summaries(1, 20, 0)}
	few, full := b.ok(t, "mail list"), b.ok(t, "mail list --full")
	short, whole := few.Data["messages"].([]any)[0].(map[string]any), full.Data["messages"].([]any)[0].(map[string]any)
	if short["date"] != "2026-03-09T23:30:00Z" || whole["date"] != "2026-03-10T00:30:00+01:00" || short["to"] != nil || whole["to"] != "desk@example.org" {
		t.Errorf("%v, whole %v", short, whole)
	}
	if got, want := few.Meta.Untrusted, []string{"messages.from", "messages.subject"}; !slices.Equal(got, want) {
		t.Errorf("untrusted of a compact list: %q", got)
	}
	if !slices.Contains(full.Meta.Untrusted, "messages.to") {
		t.Errorf("untrusted of a full list: %q", full.Meta.Untrusted)
	}
}

func TestAThreadDoesNotRepeatItsSubject(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	b.thread = mailbox.Thread{Folder: "INBOX", UIDValidity: 7, Subject: "Shelves", Messages: []mailbox.ThreadMessage{
		{Summary: mailbox.Summary{Ref: ref(1), Subject: "Shelves"}},
		{Summary: mailbox.Summary{Ref: ref(2), Subject: "Re: shelves"}, Parent: ref(1)},
		{Summary: mailbox.Summary{Ref: ref(3), Subject: "Lamps (was: something else entirely) Shelves"}, Parent: ref(2)}}}
	e := b.ok(t, "mail thread --uid 2")
	got, _ := json.Marshal(e.Data)
	if want := `{"columns":["id","subject"],"rows":[["1",""],["2",""],["3","Lamps (was: something else entirely) Shelves"]],"subject":"Shelves","untrusted":"subject"}`; string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if e := b.ok(t, "mail thread --uid 2 --full").Data["messages"].([]any)[1].(map[string]any); e["subject"] != "Re: shelves" {
		t.Errorf("--full: %v", e)
	}
}
