package mail

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// known is an account that knows the people of these tests, and hides nobody.
func known(t *testing.T, change ...func(*Account)) *Policy {
	t.Helper()
	a := Account{Mode: Reply, Email: "ann@own.example", OwnAddresses: []string{"ann@else.example"}, AllowIn: AllowList{Entries: []string{"bob@x.example", "@team.example", "ann@own.example"}}}
	for _, c := range change {
		c(&a)
	}
	return compiledPolicy(t, a)
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

func TestAReplyGoesUnaskedWhereNoConditionFails(t *testing.T) {
	for name, change := range map[string]func(*ReplyFacts){
		"to its sender": func(*ReplyFacts) {},
		"to all": func(f *ReplyFacts) {
			f.Recipients = []string{"bob@x.example", "carol@team.example", "dan@team.example"}
		},
		"spelled otherwise":      func(f *ReplyFacts) { f.Recipients = []string{"Bob@X.example"} },
		"to a part of them":      func(f *ReplyFacts) { f.Recipients = []string{"dan@team.example"} },
		"Reply-To is its sender": func(f *ReplyFacts) { f.Answered = answered("Reply-To: <BOB@x.example>\n" + fromBob) },
		"two authors": func(f *ReplyFacts) {
			f.Answered = answered("From: bob@x.example, eva@team.example\nReply-To: eva@team.example, bob@x.example")
		},
		"the fifth of the hour": func(f *ReplyFacts) { f.Unasked = 4 },
	} {
		f := ReplyFacts{Reply: true, Verified: true, Answered: answered(fromBob), Recipients: []string{"bob@x.example"}}
		if change(&f); len(known(t).Asks(&f)) > 0 {
			t.Errorf("%s: %v", name, known(t).Asks(&f))
		}
	}
}

func TestEachConditionAloneAsks(t *testing.T) {
	from := func(fields string) func(*ReplyFacts) { return func(f *ReplyFacts) { f.Answered = answered(fields) } }
	to := func(r ...string) func(*ReplyFacts) { return func(f *ReplyFacts) { f.Recipients = r } }
	list := func(entries ...string) func(*Account) { return func(a *Account) { a.AllowIn.Entries = entries } }
	for name, c := range map[string]struct {
		change  func(*ReplyFacts)
		account func(*Account)
		want    []Ask
	}{
		"no reply":                       {func(f *ReplyFacts) { f.Reply = false }, nil, []Ask{AskNoReply}},
		"not verified":                   {func(f *ReplyFacts) { f.Verified = false }, nil, []Ask{AskUnverified}},
		"sender unknown":                 {from("From: eve@x.example\nTo: bob@x.example"), nil, []Ask{AskUnnamed, AskSender}},
		"one of two senders unknown":     {from("From: bob@x.example, eve@x.example"), nil, []Ask{AskSender}},
		"no sender":                      {from("To: bob@x.example"), nil, []Ask{AskUnnamed, AskSender}},
		"two From fields":                {from("From: bob@x.example\nFrom: eve@x.example"), nil, []Ask{AskSender}},
		"a group as sender":              {from("From: team: bob@x.example;"), nil, []Ask{AskSender, AskOutsider}},
		"a further From may be there":    {from("From: bob@x.example\n\x00From: eve@x.example"), nil, []Ask{AskSender, AskOutsider}},
		"everybody on the list":          {func(*ReplyFacts) {}, list("*"), []Ask{AskSender, AskRecipient}},
		"everybody verified on the list": {func(*ReplyFacts) {}, func(a *Account) { a.AllowIn = AllowList{Verified: []string{"*"}} }, []Ask{AskSender, AskRecipient}},
		"entries that demand a verdict":  {func(*ReplyFacts) {}, func(a *Account) { a.AllowIn = AllowList{Verified: []string{"@x.example"}} }, nil},
		"an empty list":                  {func(*ReplyFacts) {}, list(), []Ask{AskSender, AskRecipient}},
		"a list that hides":              {func(*ReplyFacts) {}, func(a *Account) { a.AllowIn.Enabled = true }, nil},
		"recipient unknown": {func(f *ReplyFacts) {
			from("From: bob@x.example\nCc: eve@y.example")(f)
			to("bob@x.example", "eve@y.example")(f)
		}, nil, []Ask{AskRecipient}},
		"led elsewhere": {func(f *ReplyFacts) {
			from("From: bob@x.example\nCc: eve%evil.example@team.example")(f)
			to("bob@x.example", "eve%evil.example@team.example")(f)
		}, nil, []Ask{AskRecipient}},
		"subdomain": {func(f *ReplyFacts) {
			from("From: bob@x.example\nCc: eve@sub.team.example")(f)
			to("eve@sub.team.example")(f)
		}, nil, []Ask{AskRecipient}},
		"nobody":                  {to(), nil, []Ask{AskRecipient}},
		"known, but took no part": {to("bob@x.example", "fay@team.example"), nil, []Ask{AskOutsider}},
		"named in the subject alone": {func(f *ReplyFacts) {
			from("From: bob@x.example\nSubject: fay@team.example")(f)
			to("fay@team.example")(f)
		}, nil, []Ask{AskOutsider}},
		"oneself":                    {to("ann@own.example"), nil, []Ask{AskOutsider}},
		"Reply-To":                   {from("Reply-To: carol@team.example\n" + fromBob), nil, []Ask{AskElsewhere}},
		"Reply-To of more":           {from("Reply-To: bob@x.example, carol@team.example\n" + fromBob), nil, []Ask{AskElsewhere}},
		"Reply-To that nobody reads": {from("Reply-To: team: bob@x.example;\n" + fromBob), nil, []Ask{AskElsewhere}},
		"two Reply-To":               {from("Reply-To: bob@x.example\nReply-To: eve@x.example\n" + fromBob), nil, []Ask{AskElsewhere}},
		"an empty Reply-To":          {from("Reply-To: \n" + fromBob), nil, []Ask{AskElsewhere}},
		"List-Id":                    {from("List-Id: <club.chess.example>\n" + fromBob), nil, []Ask{AskList}},
		"List-Post":                  {from("List-Post: <mailto:club@chess.example>\n" + fromBob), nil, []Ask{AskList}},
		"file":                       {func(f *ReplyFacts) { f.FromFile = true }, nil, []Ask{AskFile}},
		"to somebody else":           {from("From: bob@x.example\nTo: mallory@evil.example"), nil, []Ask{AskUnnamed}},
		"a second To":                {from("From: bob@x.example\nTo: ann@own.example\nTo: mallory@evil.example"), nil, []Ask{AskUnnamed}},
		"a second Date":              {from("From: bob@x.example\nDate: 20 Nov 2026 10:00:00 +0000\nDate: 13 Nov 2026 10:00:00 +0000"), nil, []Ask{AskOld}},
		"dated a week before":        {from("Date: 13 Nov 2026 10:00:00 +0000\nFrom: bob@x.example"), nil, []Ask{AskOld}},
		"without a date":             {from("Date: soon\nFrom: bob@x.example"), nil, []Ask{AskOld}},
		"number":                     {func(f *ReplyFacts) { f.ForeignNumber = true }, nil, []Ask{AskNumber}},
		"attachment":                 {func(f *ReplyFacts) { f.Attachments = 1 }, nil, []Ask{AskAttachment}},
		"link":                       {func(f *ReplyFacts) { f.ForeignLink = true }, nil, []Ask{AskLink}},
		"subject":                    {func(f *ReplyFacts) { f.NewSubject = true }, nil, []Ask{AskSubject}},
		"code":                       {func(f *ReplyFacts) { f.CarriesCode = true }, nil, []Ask{AskCode}},
		"the sixth of the hour":      {func(f *ReplyFacts) { f.Unasked = 5 }, nil, []Ask{AskOften}},
		"several":                    {func(f *ReplyFacts) { f.Verified, f.Attachments, f.Unasked = false, 2, 9 }, nil, []Ask{AskUnverified, AskAttachment, AskOften}},
	} {
		t.Run(name, func(t *testing.T) {
			f := ReplyFacts{Reply: true, Verified: true, Answered: answered(fromBob), Recipients: []string{"bob@x.example"}}
			c.change(&f)
			p := known(t)
			if c.account != nil {
				p = known(t, c.account)
			}
			got := p.Asks(&f)
			if !slices.Equal(got, c.want) {
				t.Errorf("asks %v, want %v", got, c.want)
			}
			for _, a := range got {
				if s := a.Sentence(); s == Ask("").Sentence() || strings.HasSuffix(s, ".") {
					t.Errorf("%s: %q", a, s)
				}
			}
		})
	}
	var none *Policy
	if none.RepliesUnasked() || none.Knows([]string{"bob@x.example"}) || known(t, func(a *Account) { a.Mode = ReadWrite }).RepliesUnasked() {
		t.Error("it is for mode reply alone")
	}
}
