package commands

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// What is cut for the size of an answer is cut in its compact form, too: senders with
// enormous addresses do not make every search that finds them fail.
func TestCompactAnswersCanBeCutToFit(t *testing.T) {
	const room = 250 << 10
	from := []mail.Address{{Addr: strings.Repeat("x", 12_000) + "@evil.example"}, {Addr: strings.Repeat("y", 12_000) + "@evil.example"}}
	list := make([]mailbox.Summary, 50)
	all := &mailbox.Messages{}
	for i := range list {
		list[i] = mailbox.Summary{Ref: mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "INBOX", UIDValidity: 1, UID: uint32(i + 1)}, From: from,
			Subject: "hello", Snippet: strings.Repeat("s", 500)}
		all.Messages = append(all.Messages, &mailbox.Message{Summary: list[i]})
	}
	search := &MailSearchResult{Messages: entriesOf(list), args: &mailSearchArgs{}, Outcome: answer.Outcome{IDs: &answer.IDs{}}}
	get := &MailGetResult{Outcome: answer.Outcome{IDs: &answer.IDs{}}}
	for _, m := range all.Messages {
		get.Messages = append(get.Messages, detailOf(m, false))
	}
	for name, r := range map[string]interface {
		discovery.Truncator
		json() ([]byte, error)
	}{"search": briefOf[mailSearchBrief]{search}, "get": briefOf[mailGetBrief]{get}} {
		fits := false
		for range 10 {
			data, err := r.json()
			if err != nil {
				t.Fatal(err)
			}
			if fits = len(data) <= room; fits || !r.Truncate(float64(room)/float64(len(data))) {
				break
			}
		}
		if !fits {
			t.Errorf("%s: the compact answer cannot be made to fit", name)
		}
	}
}

type briefOf[B any] struct {
	of interface {
		discovery.Truncator
		Brief() B
	}
}

func (b briefOf[B]) Truncate(fraction float64) bool { return b.of.Truncate(fraction) }
func (b briefOf[B]) json() ([]byte, error)          { return json.Marshal(b.of.Brief()) }
