package mailbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// refusing is a server with a message in INBOX, two in Sent, of which it gives only the
// first, and one in Archive. With replaced, Archive is another folder from its second opening
// on.
func refusing(t *testing.T, replaced bool) *mailbox.Client {
	return clientOf(t, scripted.Serve(t, func(c *scripted.Conn) {
		c.Greet("IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH LITERAL+")
		open, archives := "", 0
		for {
			tag, command := c.Expect()
			answer := " OK done\r\n"
			switch {
			case strings.HasPrefix(command, "LIST"):
				c.Send("* LIST () \"/\" INBOX\r\n* LIST () \"/\" Sent\r\n* LIST () \"/\" Archive\r\n")
			case strings.HasPrefix(command, "EXAMINE"):
				open = strings.Trim(strings.TrimPrefix(command, "EXAMINE "), `"`)
				if open == "Archive" {
					archives++
				}
				c.Send(oneMessage)
				if open == "Archive" && archives > 1 && replaced {
					c.Send("* OK [UIDVALIDITY 99] another\r\n")
				}
			case strings.Contains(command, "SEARCH"):
				c.Send(fmt.Sprintf("* ESEARCH (TAG %q) UID ALL %s\r\n", tag, map[string]string{"INBOX": "5", "Sent": "5:6", "Archive": "5"}[open]))
			case command == "UID FETCH 5:6 (UID)":
				c.Send("* 1 FETCH (UID 5)\r\n* 2 FETCH (UID 6)\r\n")
			case strings.HasPrefix(command, "UID FETCH 5:6 "), strings.HasPrefix(command, "UID FETCH 6 "):
				answer = " NO one of them cannot be read\r\n"
			case strings.HasPrefix(command, "UID FETCH 5 "):
				head := fmt.Sprintf("From: Bob <bob@example.org>\r\nSubject: Plan\r\nMessage-ID: <%s@x>\r\nReferences: <root@x>\r\n\r\n", open)
				c.Send("* 1 FETCH (UID 5 FLAGS () INTERNALDATE \"01-Mar-2026 09:00:00 +0000\" RFC822.SIZE 100 BODY[HEADER.FIELDS (FROM)] " + literal(head) + ")\r\n")
			}
			c.Send(tag + answer)
		}
	}))
}

// What a server refuses in one folder is fetched message by message, and costs no other
// folder.
func TestARefusedFetchCostsOneMessage(t *testing.T) {
	p, err := refusing(t, false).Search(t.Context(), []string{account}, mailbox.SearchQuery{Words: "x"})
	if err != nil || len(p.Messages) != 3 || p.Failed != 1 || p.Total != 4 || len(p.Issues) != 1 || p.Issues[0].UID != 6 {
		t.Errorf("a search: %+v %v", p, err)
	}
	th, err := refusing(t, false).Thread(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: 5}, mailbox.ThreadQuery{})
	if err != nil || places(th) != "Sent/5 INBOX/5 Archive/5" {
		t.Errorf("a conversation: %+v %v", th, err)
	}
}

// Messages of a folder that was replaced between a search and the fetch are not shown.
func TestAFolderReplacedMeanwhile(t *testing.T) {
	p, err := refusing(t, true).Search(t.Context(), []string{account}, mailbox.SearchQuery{Words: "x"})
	if err != nil || len(p.Messages) != 2 || len(p.Issues) != 2 || p.Issues[0].Kind != mail.KindConflict || p.Issues[1].UID != 6 {
		t.Errorf("a search: %+v %v", p, err)
	}
	mailtest.WantKind(t, second(refusing(t, true).Thread(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: 5}, mailbox.ThreadQuery{})), mail.KindConflict)
}
