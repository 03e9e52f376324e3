//go:build unix && !race

package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// TestHostileMailsEndWithTheCommand: fifty mails whose styles are made to take long cost a command
// no more of a processor than twice its time, and it says what it has. It runs beside no other
// test, whose cost would count, and not under the race detector, whose cost is another.
func TestHostileMailsEndWithTheCommand(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "hostile")
	style := strings.Repeat(":nth-child(2n+1):nth-last-child(3n+1):nth-of-type(2n){color:red}\n", 2000)
	html := "<style>\n" + style + "</style>\n" + strings.Repeat("<p class=x>x\n", 8000)
	var letters []letter
	for i := range 50 {
		letters = append(letters, letter{From: "eve@evil.example", Subject: "hostile", Date: "Mon, 2 Mar 2026 10:00:00 +0000", Body: html,
			Extra: fmt.Sprintf("Message-ID: <%d@evil.example>\r\nReferences: <0@evil.example>\r\nMIME-Version: 1.0\r\nContent-Type: text/html\r\n", i)})
	}
	uids := b.Add("INBOX", letters...)
	refs := b.refs("INBOX", uids[:20]...)
	for _, within := range []time.Duration{time.Second, 30 * time.Second}[:testmain.Rounds(1, 2)] {
		for name, read := range map[string]func(ctx context.Context) (rows int, issues []mail.Issue, err error){
			"list": func(ctx context.Context) (int, []mail.Issue, error) {
				p, err := b.List(ctx, account, mailbox.ListQuery{Snippet: 100})
				if err != nil {
					return 0, nil, err
				}
				return len(p.Messages), p.Issues, nil
			},
			"search": func(ctx context.Context) (int, []mail.Issue, error) {
				p, err := b.Search(ctx, []string{account}, mailbox.SearchQuery{Subject: "hostile", Limit: 50, Snippet: 100})
				if err != nil {
					return 0, nil, err
				}
				return len(p.Messages), p.Issues, nil
			},
			"get": func(ctx context.Context) (int, []mail.Issue, error) {
				p, err := b.GetEach(ctx, account, refs, mailbox.GetQuery{HTML: true})
				if err != nil {
					return 0, nil, err
				}
				return len(p.Messages), p.Issues, nil
			},
			"thread": func(ctx context.Context) (int, []mail.Issue, error) {
				p, err := b.Thread(ctx, refs[0], mailbox.ThreadQuery{Chars: 1000})
				if err != nil {
					return 0, nil, err
				}
				return len(p.Messages), p.Issues, nil
			},
		} {
			t.Run(fmt.Sprint(name, " ", within), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				var began, ended syscall.Rusage
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &began)
				rows, issues, err := read(ctx)
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ended)
				cost := time.Duration(ended.Utime.Nano() + ended.Stime.Nano() - began.Utime.Nano() - began.Stime.Nano())
				if cost > 2*within {
					t.Errorf("it took %v of a processor", cost)
				}
				var e *mail.Error
				if within < 5*time.Second && errors.As(err, &e) && e.Kind == mail.KindTimeout {
					return
				}
				said := false
				for _, i := range issues {
					said = said || i.Kind == mail.KindLimit || i.Kind == mail.KindTimeout
					if strings.Contains(i.Message, "firewall") {
						t.Errorf("of the network: %s", i.Message)
					}
				}
				if err != nil || rows == 0 || !said {
					t.Errorf("%d rows, %v, %v after %v", rows, issues, err, cost)
				}
			})
		}
	}
}
