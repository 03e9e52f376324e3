package mailbox_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

var fetchCommand = regexp.MustCompile(`^(UID )?FETCH ([0-9:,*]+) `)

// numbers reads a set of numbers as clients write it.
func numbers(t *testing.T, set string) (n []int) {
	t.Helper()
	for run := range strings.SplitSeq(set, ",") {
		low, high, ok := strings.Cut(run, ":")
		if !ok {
			high = low
		}
		a, errA := strconv.Atoi(low)
		b, errB := strconv.Atoi(high)
		if errA != nil || errB != nil {
			t.Errorf("set %q", set)
		}
		for i := min(a, b); i <= max(a, b); i++ {
			n = append(n, i)
		}
	}
	return n
}

// A BODYSTRUCTURE that cannot be read, by mistake or by intent, costs what it tells, and
// neither its message nor any other, in a list or a conversation: whether they have
// attachments is told by their headers then, and no list asks for what they are made of again.
func TestUnreadableStructureHidesNothing(t *testing.T) {
	const messages, bad = 20, 7
	body := strings.Repeat("some text\r\n", 2000)
	for name, structure := range map[string]string{
		"attached message without envelope": `("message" "rfc822" NIL NIL NIL "7bit" 10 NIL ("text" "plain" NIL NIL NIL "7bit" 1 1) 1)`,
		"nested without end":                strings.Repeat("(", 100_000),
		"enormous string":                   `("text" "plain" ("charset" "` + strings.Repeat("x", 100_000) + `") NIL NIL "7bit" 10 1)`,
		"nonsense":                          "(NIL)",
	} {
		t.Run(name, func(t *testing.T) {
			breaks := len(structure) > 1000 // the connection; the others are read without it
			var broke atomic.Int32
			m := scriptedClient(t, func(command string) (string, string) {
				switch {
				case strings.HasPrefix(command, "EXAMINE"):
					return fmt.Sprintf("* %d EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT %d] n\r\n", messages, messages+1), ""
				case strings.Contains(command, "SEARCH"):
					return fmt.Sprintf("* ESEARCH (TAG %q) UID ALL 1:%d\r\n", "%TAG%", messages), ""
				}
				f := fetchCommand.FindStringSubmatch(command)
				if f == nil {
					return "", ""
				}
				answer := ""
				for _, i := range numbers(t, strings.ReplaceAll(f[2], "*", strconv.Itoa(messages))) {
					kind := []string{"multipart/alternative", "multipart/mixed"}[i%2]
					if i == bad {
						kind = "text/plain"
					}
					head := fmt.Sprintf("From: bob@example.org\r\nSubject: Re: hello\r\nMessage-ID: <%d@x>\r\nIn-Reply-To: <1@x>\r\n"+
						"Date: Sun, 01 Mar 2026 10:00:%02d +0000\r\nContent-Type: %s; boundary=b\r\n\r\n", i, i, kind)
					items := fmt.Sprintf("UID %d FLAGS () RFC822.SIZE 22000", i)
					if strings.Contains(command, "BODYSTRUCTURE") && i == bad {
						items += " BODYSTRUCTURE " + structure
						broke.Add(1)
					} else if strings.Contains(command, "BODYSTRUCTURE") {
						items += ` BODYSTRUCTURE (("text" "plain" NIL NIL NIL "7bit" 1 1)("text" "html" NIL NIL NIL "7bit" 1 1) "mixed")`
					}
					for section, data := range map[string]string{"BODY.PEEK[HEADER.FIELDS": "BODY[HEADER.FIELDS (FROM)]<0> " + literal(head),
						"BODY.PEEK[HEADER]": "BODY[HEADER]<0> " + literal(head), "BODY.PEEK[TEXT]": "BODY[TEXT]<0> " + literal(body[:8192]),
						"BODY.PEEK[]": "BODY[]<0> " + literal(head+body)} {
						if strings.Contains(command, section) {
							items += " " + data
						}
					}
					answer += fmt.Sprintf("* %d FETCH (%s)\r\n", i, items)
				}
				return answer, ""
			})
			for range 2 {
				p, err := m.List(t.Context(), account, mailbox.ListQuery{})
				if err != nil || len(p.Messages) != messages || broke.Load() != 1 {
					t.Fatalf("%+v %v, %d answers broke", p, err, broke.Load())
				}
				for _, s := range p.Messages {
					if s.HasAttachments != (breaks && s.Ref.UID%2 == 1 && s.Ref.UID != bad) {
						t.Errorf("message %d has attachments: %t", s.Ref.UID, s.HasAttachments)
					}
				}
			}
			ref := mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: bad}
			for range 2 {
				got, err := m.Get(t.Context(), ref, mailbox.GetQuery{})
				if err != nil || got.Subject != "Re: hello" || !strings.HasPrefix(got.BodyText, "some text\nsome") || !got.BodyTruncated {
					t.Fatalf("%+v %v", got, err)
				}
			}
			ref.UID = 5
			thread, err := m.Thread(t.Context(), ref, mailbox.ThreadQuery{})
			if err != nil || len(thread.Messages) != messages {
				t.Fatalf("%+v %v", thread, err)
			}
		})
	}
}
