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
	"github.com/postern-mail/postern/mail/servertest/scripted"
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

// One message whose BODYSTRUCTURE breaks the connection costs what its own tells,
// and not what those of the others on the page and in the conversation tell.
func TestUnreadableStructureSpoilsNoOther(t *testing.T) {
	const messages = 20
	for _, bad := range [][]int{{7}, {1}, {20}, {3, 16}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			scripted.Settle(t)
			var broke atomic.Int32
			head := func(i int) string {
				return fmt.Sprintf("From: bob@example.org\r\nSubject: Re: hello\r\nMessage-ID: <%d@x>\r\nIn-Reply-To: <1@x>\r\n"+
					"Date: Sun, 01 Mar 2026 10:00:%02d +0000\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n", i, i)
			}
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
				var b strings.Builder
				for _, i := range numbers(t, strings.ReplaceAll(f[2], "*", strconv.Itoa(messages))) {
					items := fmt.Sprintf("UID %d FLAGS ()", i)
					if strings.Contains(command, "BODYSTRUCTURE") {
						structure := `(("text" "plain" NIL NIL NIL "7bit" 1 1)("text" "html" NIL NIL NIL "7bit" 1 1) "mixed")`
						if i%3 == 0 {
							structure = `(("text" "plain" NIL NIL NIL "7bit" 1 1)("application" "pdf" NIL NIL NIL "base64" 10 NIL ("attachment" NIL) NIL) "mixed")`
						}
						for _, n := range bad {
							if i == n {
								structure = strings.Repeat("(", 1000)
								broke.Add(1)
							}
						}
						items += " BODYSTRUCTURE " + structure
					}
					if strings.Contains(command, "BODY.PEEK[HEADER.FIELDS") {
						items += " BODY[HEADER.FIELDS (FROM)]<0> " + literal(head(i))
					} else if strings.Contains(command, "BODY.PEEK[HEADER]") {
						items += " BODY[HEADER]<0> " + literal(head(i))
					}
					fmt.Fprintf(&b, "* %d FETCH (%s)\r\n", i, items)
				}
				return b.String(), ""
			})
			check := func(uid uint32, has bool) {
				t.Helper()
				want := uid%3 == 0
				for _, n := range bad {
					want = want || uid == uint32(n) // by its header, roughly
				}
				if has != want {
					t.Errorf("message %d has attachments: %t", uid, has)
				}
			}
			for round := range 2 {
				before := broke.Load()
				p, err := m.List(t.Context(), account, mailbox.ListQuery{})
				if err != nil || len(p.Messages) != messages {
					t.Fatalf("%+v %v", p, err)
				}
				for _, s := range p.Messages {
					check(s.Ref.UID, s.HasAttachments)
				}
				if round == 1 && broke.Load() != before {
					t.Error("a structure that could not be read was asked for again")
				}
			}
			thread, err := m.Thread(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: 5}, mailbox.ThreadQuery{})
			if err != nil || len(thread.Messages) != messages {
				t.Fatalf("%+v %v", thread, err)
			}
			for _, s := range thread.Messages {
				check(s.Ref.UID, s.HasAttachments)
			}
		})
	}
}
