package mailbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// scriptedClient is of a server whose answers a test makes up: answer gets each command
// after login and returns the untagged lines, and the tagged answer without its
// tag; empty means OK.
func scriptedClient(t *testing.T, answer func(command string) (untagged, tagged string)) *mailbox.Client {
	t.Helper()
	return scriptedWith(t, "", answer)
}

// scriptedWith offers more capabilities.
func scriptedWith(t *testing.T, more string, answer func(command string) (untagged, tagged string)) *mailbox.Client {
	t.Helper()
	caps := strings.TrimSpace("IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH LIST-EXTENDED LIST-STATUS " + more)
	return clientOf(t, scripted.Serve(t, func(c *scripted.Conn) {
		c.Greet(caps)
		for {
			tag, command := c.Expect()
			untagged, tagged := answer(command)
			if tagged == "" {
				tagged = "OK done"
			}
			c.Send(strings.ReplaceAll(untagged, "%TAG%", tag) + tag + " " + tagged + "\r\n")
		}
	}))
}

// clientOf reads and writes the mailbox of a scripted server.
func clientOf(t *testing.T, sv *scripted.Server, change ...func(*mailbox.Options)) *mailbox.Client {
	d := &mailtest.Directory{Known: map[string]mail.Account{}, Password: "p"}
	a := mailtest.Settings("127.0.0.1", sv.Port, "x")
	a.Mode = mail.ReadWrite
	d.Set(a)
	o := mailbox.Options{Directory: d}
	for _, c := range change {
		c(&o)
	}
	m := mailbox.New(o)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

const oneMessage = "* 1 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 6] n\r\n"

func literal(s string) string { return fmt.Sprintf("{%d}\r\n%s", len(s), s) }

// Whatever a server claims, an answer is bounded and about what was asked.
func TestLyingServers(t *testing.T) {
	head := "From: Bob <bob@example.org>\r\nSubject: hello\r\n\r\n"
	one := func(uid uint32) string {
		return fmt.Sprintf("* 1 FETCH (UID %d FLAGS () BODY[HEADER] %s BODY[HEADER.FIELDS (FROM)] %s BODY[TEXT]<0> %s)\r\n", uid, literal(head), literal(head), literal("text"))
	}
	tests := []struct {
		name    string
		examine string
		fetch   string
		search  string
		check   func(t *testing.T, m *mailbox.Client)
	}{
		{"another message than asked", oneMessage, one(6), "", func(t *testing.T, m *mailbox.Client) {
			got, err := m.Get(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: 5}, mailbox.GetQuery{})
			if got != nil {
				t.Errorf("%+v", got)
			}
			mailtest.WantKind(t, err, mail.KindNotFound)
		}},
		{"another UIDVALIDITY", strings.Replace(oneMessage, "7", "8", 1), one(5), "", func(t *testing.T, m *mailbox.Client) {
			got, err := m.Get(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: 5}, mailbox.GetQuery{})
			if got != nil {
				t.Errorf("%+v", got)
			}
			mailtest.WantKind(t, err, mail.KindConflict)
		}},
		{"four billion messages that are not there", strings.Replace(oneMessage, "1 EXISTS", "4294967295 EXISTS", 1), "", "", func(t *testing.T, m *mailbox.Client) {
			for _, q := range []mailbox.ListQuery{{}, {OldestFirst: true}, {Limit: 500}} {
				mailtest.WantKind(t, second(m.List(t.Context(), account, q)), mail.KindRefused)
			}
		}},
		{"four billion matches", oneMessage, "", "* ESEARCH (TAG \"%TAG%\") UID ALL 1:4294967295\r\n", func(t *testing.T, m *mailbox.Client) {
			mailtest.WantKind(t, second(m.List(t.Context(), account, mailbox.ListQuery{Unread: true})), mail.KindRefused)
		}},
		{"the greatest UID there is", oneMessage, "", "* ESEARCH (TAG \"%TAG%\") UID ALL 4294967295\r\n", func(t *testing.T, m *mailbox.Client) {
			p, err := m.Search(t.Context(), []string{account}, mailbox.SearchQuery{})
			if err != nil || p.Total != 1 || p.Failed != 1 || p.HasMore {
				t.Errorf("%+v %v", p, err)
			}
		}},
		{"more messages than asked", oneMessage, one(5) + strings.Replace(one(6), "* 1", "* 2", 1) + strings.Replace(one(7), "* 1", "* 3", 1), "* ESEARCH (TAG \"%TAG%\") UID ALL 5\r\n", func(t *testing.T, m *mailbox.Client) {
			p, err := m.List(t.Context(), account, mailbox.ListQuery{Unread: true})
			if err != nil || !slices.Equal(uidsOf(p), []uint32{5}) {
				t.Errorf("%+v %v", p, err)
			}
			if p, err = m.List(t.Context(), account, mailbox.ListQuery{Limit: 1}); err != nil || len(p.Messages) != 1 {
				t.Errorf("%+v %v", p, err)
			}
		}},
		{"a message without its header", oneMessage, "* 1 FETCH (UID 5 FLAGS (\\Seen))\r\n", "", func(t *testing.T, m *mailbox.Client) {
			p, err := m.List(t.Context(), account, mailbox.ListQuery{})
			if err != nil || len(p.Messages) != 0 || len(p.Issues) != 1 || p.Issues[0].UID != 5 || p.Issues[0].Stage != "parse" || p.HasMore {
				t.Errorf("%+v %v", p, err)
			}
		}},
		{"no message that can be", oneMessage, "* 0 FETCH (UID 0 FLAGS ())\r\n* 4294967295 FETCH (UID 4294967295 FLAGS () RFC822.SIZE 9223372036854775807)\r\n* 1 FETCH (UID 0 FLAGS ())\r\n", "", func(t *testing.T, m *mailbox.Client) {
			for range 2 { // with its EXAMINE known, too
				p, err := m.List(t.Context(), account, mailbox.ListQuery{})
				if err != nil || len(p.Messages) != 0 || len(p.Issues) != 1 || p.Issues[0].Kind != mail.KindRefused || p.HasMore {
					t.Errorf("%+v %v", p, err)
				}
			}
		}},
		{"nothing", oneMessage, "", "", func(t *testing.T, m *mailbox.Client) {
			for range 2 {
				if p, err := m.List(t.Context(), account, mailbox.ListQuery{}); err != nil || len(p.Issues) != 1 || p.Issues[0].Stage != "fetch" {
					t.Errorf("%+v %v", p, err)
				}
			}
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.check(t, scriptedClient(t, func(command string) (string, string) {
				switch {
				case strings.HasPrefix(command, "EXAMINE"):
					return tc.examine, ""
				case strings.Contains(command, "FETCH"):
					return tc.fetch, ""
				case strings.Contains(command, "SEARCH"):
					return tc.search, ""
				}
				return "", ""
			}))
		})
	}
}

// One folder that cannot be counted is an issue; the others are counted.
func TestOneFolderWithoutCounts(t *testing.T) {
	m := scriptedClient(t, func(command string) (string, string) {
		switch {
		case strings.HasPrefix(command, "LIST"):
			return "* LIST () \"/\" INBOX\r\n* STATUS INBOX (MESSAGES 2 UNSEEN 1 UIDNEXT 3 UIDVALIDITY 7)\r\n* LIST () \"/\" Broken\r\n" +
				"* LIST (\\Noselect) \"/\" Only\r\n* LIST () \"/\" Late\r\n* LIST () \"/\" \"con&AAE-trol\"\r\n", ""
		case strings.HasPrefix(command, `STATUS "Broken"`):
			return "", "NO [SERVERBUG] broken"
		case strings.HasPrefix(command, `STATUS "Late"`):
			return "* STATUS Late (MESSAGES 5 UNSEEN 0 UIDNEXT 9 UIDVALIDITY 8)\r\n", ""
		}
		return "", "BAD unexpected " + command
	})
	l, err := m.Folders(t.Context(), account, mailbox.FolderQuery{Counts: true})
	if err != nil || len(l.Folders) != 4 || len(l.Issues) != 2 {
		t.Fatalf("%+v %v", l, err)
	}
	f := l.Folders
	if f[0].Counts == nil || f[0].Counts.Messages != 2 || f[1].Counts != nil || f[2].Counts == nil || f[2].Counts.Messages != 5 || f[3].Counts != nil || !f[3].NoSelect() {
		t.Errorf("%+v", f)
	}
}

// What was found before the server failed, or the time was over, is kept, and said to be a part.
func TestListKeepsWhatItFound(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	for want, second := range map[mail.Kind]func() string{ // what ends a second FETCH
		mail.KindRefused: func() string { return "NO [UNAVAILABLE] the disk is away" },
		mail.KindTimeout: func() string { <-block; return "" },
	} {
		within := map[mail.Kind]time.Duration{mail.KindRefused: time.Minute, mail.KindTimeout: 300 * time.Millisecond}[want]
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		fetches := 0
		m := scriptedClient(t, func(command string) (string, string) {
			switch {
			case strings.HasPrefix(command, "EXAMINE"):
				return strings.Replace(oneMessage, "1 EXISTS", "5000 EXISTS", 1), ""
			case strings.Contains(command, "SEARCH"):
				return "* ESEARCH (TAG \"%TAG%\") UID ALL 1:5000\r\n", ""
			case strings.Contains(command, "FETCH"):
				if fetches++; fetches > 1 {
					return "", second()
				}
				return "* 5000 FETCH (UID 5000 FLAGS () INTERNALDATE \"01-Mar-2026 10:00:00 +0000\" BODY[HEADER.FIELDS (FROM)] " + literal("From: a@example.org\r\n\r\n") + ")\r\n", ""
			}
			return "", ""
		})
		p, err := m.List(ctx, account, mailbox.ListQuery{Since: dayOne})
		if err != nil || len(p.Messages) != 1 || !p.HasMore || len(p.Issues) != 1 || p.Issues[0].Kind != want || !p.Issues[0].Retryable || p.Issues[0].Stage != "fetch" {
			t.Errorf("%s: %+v %v", want, p, err)
		}
	}
}

// A message that the server refuses to give costs itself and no other.
func TestOneRefusedMessageIsOneIssue(t *testing.T) {
	for name, search := range map[string]bool{"list": false, "unread": true} {
		t.Run(name, func(t *testing.T) {
			data := func(uid int) string {
				return fmt.Sprintf("* %d FETCH (UID %d FLAGS () BODY[HEADER.FIELDS (FROM)] %s)\r\n", uid-4, uid, literal(fmt.Sprintf("Subject: m%d\r\n\r\n", uid)))
			}
			m := scriptedClient(t, func(command string) (string, string) {
				switch {
				case strings.HasPrefix(command, "EXAMINE"):
					return strings.Replace(oneMessage, "1 EXISTS", "3 EXISTS", 1), ""
				case strings.Contains(command, "SEARCH"):
					return "* ESEARCH (TAG \"%TAG%\") UID ALL 5:7\r\n", ""
				case strings.HasSuffix(command, "(UID)"):
					return "* 1 FETCH (UID 5)\r\n* 2 FETCH (UID 6)\r\n* 3 FETCH (UID 7)\r\n", ""
				case strings.HasPrefix(command, "UID FETCH 6 "):
					return "", "NO [SERVERBUG] this one cannot be read"
				case strings.HasPrefix(command, "UID FETCH 7 "):
					return data(7), ""
				case strings.Contains(command, "FETCH"):
					return data(5), "NO [SERVERBUG] some cannot be read"
				}
				return "", ""
			})
			p, err := m.List(t.Context(), account, mailbox.ListQuery{Unread: search})
			if err != nil || !slices.Equal(uidsOf(p), []uint32{7, 5}) || len(p.Issues) != 1 || p.Issues[0].UID != 6 {
				t.Errorf("%+v %v", p, err)
			}
			found, err := m.Search(t.Context(), []string{account}, mailbox.SearchQuery{Subject: "m"})
			if err != nil || !slices.Equal(uidsOf(&found.Page), []uint32{7, 5}) || found.Failed != 1 || found.Attempted != 3 || found.Total != 3 || found.Issues[0].UID != 6 {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

// A folder that the server lists and does not open is there: the refusal is told in the server's
// words, and not as a folder that does not exist.
func TestAFolderThatIsListedAndNotOpened(t *testing.T) {
	m := scriptedClient(t, func(command string) (string, string) {
		switch {
		case strings.HasPrefix(command, "EXAMINE"):
			return "", "NO [NOPERM] ask the team for the key"
		case strings.HasPrefix(command, "LIST"):
			return "* LIST () \"/\" INBOX\r\n* LIST () \"/\" Team\r\n", ""
		}
		return "", ""
	})
	_, err := m.List(t.Context(), account, mailbox.ListQuery{Folder: "Team"})
	if e := mailtest.WantKind(t, err, mail.KindRefused); !strings.Contains(e.Message, "ask the team for the key") || !e.Foreign {
		t.Errorf("%+v", e)
	}
	mailtest.WantKind(t, second(m.List(t.Context(), account, mailbox.ListQuery{Folder: "Other"})), mail.KindNotFound)
}
