package mail

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// known is an account that knows the people of these tests, and hides nobody, with changes.
func known(t *testing.T, changes string) *Policy {
	t.Helper()
	a := Account{Mode: Reply, Email: "ann@own.example", OwnAddresses: []string{"ann@else.example"}, AllowIn: AllowList{Entries: []string{"bob@x.example", "@team.example", "ann@own.example"}}}
	return compiledPolicy(t, with(t, a, changes))
}

// answered is a header with these fields, that came an hour after it was dated, to the account.
func answered(fields string) rfc5322.Header {
	if !strings.Contains("\n"+fields, "\nTo: ") {
		fields = "To: ann@own.example\n" + fields
	}
	if !strings.Contains(fields, "Date: ") {
		fields = "Date: 20 Nov 2026 10:00:00 +0000\n" + fields
	}
	fields = "Received: by mx.own.example; 20 Nov 2026 11:00:00 +0000\n" + fields
	return rfc5322.ParseHeader([]byte(strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n\r\n"))
}

const fromBob = "From: Bob <bob@x.example>\nTo: ann@own.example, Carol <carol@team.example>\nCc: dan@team.example\nSubject: x"

func TestEachConditionAloneAsks(t *testing.T) {
	for _, c := range testmain.Table[struct{ Name, Asks, Account, Header, Facts string }](t, "testdata/cases/unasked.txt") {
		if c.Header == "" || strings.HasSuffix(c.Header, "\n") {
			c.Header += fromBob
		}
		f := ReplyFacts{Reply: true, Verified: true, Answered: answered(c.Header), Recipients: []string{"bob@x.example"}}
		must(t, json.Unmarshal([]byte(c.Facts), &f))
		got := known(t, c.Account).Asks(&f)
		if fmt.Sprint(got) != "["+c.Asks+"]" {
			t.Errorf("%s: asks %v, want %s", c.Name, got, c.Asks)
		}
		for _, a := range got {
			if s := a.Sentence(); s == Ask("").Sentence() || strings.HasSuffix(s, ".") {
				t.Errorf("%s: %q", a, s)
			}
		}
	}
	var none *Policy
	if none.RepliesUnasked() || none.Knows([]string{"bob@x.example"}) || known(t, `{"mode":"RW"}`).RepliesUnasked() || !known(t, "{}").RepliesUnasked() {
		t.Error("it is for mode reply alone")
	}
}
