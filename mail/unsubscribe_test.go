package mail

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestLeavingNeedsWhatTheSenderSigned(t *testing.T) {
	p := judged(t, func(*Account) {})
	for _, c := range testmain.Table[struct{ Name, Results, Signatures, Fields, Want string }](t, "testdata/cases/leaving.txt") {
		header := "Authentication-Results: mx.example.org; "
		if c.Results == "" {
			c.Results = "dkim=pass header.d=news.example"
		}
		if c.Signatures == "" {
			c.Signatures = "v=1; d=news.example; s=a; h=From:Subject:List-Unsubscribe:List-Unsubscribe-Post; b=abcd efghij"
		}
		header += c.Results + "\r\n" + arrived
		for s := range strings.SplitSeq(c.Signatures, "\n") {
			header += "DKIM-Signature: " + s + "\r\n"
		}
		header += "From: News <news@news.example>\r\nList-Id: The news <News.list.example>\r\n" +
			strings.Replace(c.Fields, "*", "List-Unsubscribe: <https://news.example/u?x=1>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n", 1)
		l := p.Leaving(judgeable(header))
		got, letter := l.URI, ""
		if (got == "") == (l.Why == "") || l.Key != "news@news.example news.list.example" || l.List != "The news <News.list.example>" {
			t.Errorf("%s: %+v", c.Name, l)
		}
		if l.Letter != nil {
			letter = l.Letter.To + "," + l.Letter.Subject + "," + l.Letter.Body
		}
		if want, post, _ := strings.Cut(c.Want, "|"); letter != post || got != want && (got != "" || !strings.HasPrefix(string(l.Why), want)) {
			t.Errorf("%s: %q %q %q, want %s", c.Name, got, l.Why, letter, c.Want)
		}
	}
}
