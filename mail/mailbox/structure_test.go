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

// One message whose BODYSTRUCTURE breaks the connection hides none of the others, in a
// list or a conversation: whether they have attachments is told by their headers then,
// and no list asks for what they are made of again.
func TestUnreadableStructureHidesNoOther(t *testing.T) {
	const messages, bad = 20, 7
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
			head := fmt.Sprintf("From: bob@example.org\r\nSubject: Re: hello\r\nMessage-ID: <%d@x>\r\nIn-Reply-To: <1@x>\r\n"+
				"Date: Sun, 01 Mar 2026 10:00:%02d +0000\r\nContent-Type: %s; boundary=b\r\n\r\n", i, i, kind)
			structure := ""
			if strings.Contains(command, "BODYSTRUCTURE") {
				structure = ` BODYSTRUCTURE (("text" "plain" NIL NIL NIL "7bit" 1 1)("text" "html" NIL NIL NIL "7bit" 1 1) "mixed")`
				if i == bad {
					structure = " BODYSTRUCTURE " + strings.Repeat("(", 1000)
					broke.Add(1)
				}
			}
			answer += fmt.Sprintf("* %d FETCH (UID %d FLAGS ()%s BODY[HEADER.FIELDS (FROM)]<0> %s)\r\n", i, i, structure, literal(head))
		}
		return answer, ""
	})
	for range 2 {
		p, err := m.List(t.Context(), account, mailbox.ListQuery{})
		if err != nil || len(p.Messages) != messages || broke.Load() != 1 {
			t.Fatalf("%+v %v, %d answers broke", p, err, broke.Load())
		}
		for _, s := range p.Messages {
			if s.HasAttachments != (s.Ref.UID%2 == 1) {
				t.Errorf("message %d has attachments: %t", s.Ref.UID, s.HasAttachments)
			}
		}
	}
	thread, err := m.Thread(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: 5}, mailbox.ThreadQuery{})
	if err != nil || len(thread.Messages) != messages {
		t.Fatalf("%+v %v", thread, err)
	}
}
