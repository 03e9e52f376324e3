package mailbox_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
func scriptedClient(t *testing.T, answer func(command string) (untagged, tagged string), change ...func(*mailbox.Options)) *mailbox.Client {
	t.Helper()
	return scriptedWith(t, "", answer, change...)
}

// scriptedWith offers more capabilities.
func scriptedWith(t *testing.T, more string, answer func(command string) (untagged, tagged string), change ...func(*mailbox.Options)) *mailbox.Client {
	t.Helper()
	return scriptedIn(t, more, func(_, command string) (string, string) { return answer(command) }, change...)
}

// scriptedIn is told which folder is open, too.
func scriptedIn(t *testing.T, more string, answer func(open, command string) (untagged, tagged string), change ...func(*mailbox.Options)) *mailbox.Client {
	t.Helper()
	caps := strings.TrimSpace("IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH LIST-EXTENDED LIST-STATUS " + more)
	return clientOf(t, scripted.Serve(t, func(c *scripted.Conn) {
		c.Greet(caps)
		for open := ""; ; {
			tag, command := c.Expect()
			if folder, ok := strings.CutPrefix(command, "EXAMINE "); ok {
				open = strings.Trim(folder, `"`)
			}
			untagged, tagged := answer(open, command)
			if tagged == "" {
				tagged = "OK done"
			}
			c.Send(strings.ReplaceAll(untagged, "%TAG%", tag) + tag + " " + tagged + "\r\n")
		}
	}), change...)
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
			if err != nil || len(p.Messages) != 0 || len(p.Issues) != 1 || p.Issues[0].UID != 5 || p.Issues[0].Stage != "parse" || p.HasMore || p.Next.UID != 5 {
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

// A page that is remembered up to the greatest UID there is, is asked for in few pieces.
func TestUIDsUpToTheGreatest(t *testing.T) {
	seen := &fakeSeenStore{states: map[string]mail.SeenState{}}
	for range 2 {
		m := scriptedClient(t, func(command string) (string, string) {
			switch {
			case strings.HasPrefix(command, "EXAMINE"):
				return strings.Replace(oneMessage, "UIDNEXT 6", "UIDNEXT 4294967295", 1), ""
			case strings.Contains(command, "FETCH"):
				return "* 1 FETCH (UID 1 FLAGS () BODY[HEADER.FIELDS (FROM)] " + literal("From: bob@example.org\r\n\r\n") + ")\r\n", ""
			}
			return "", ""
		}, func(o *mailbox.Options) { o.Seen = seen })
		if p, err := m.List(t.Context(), account, mailbox.ListQuery{}); err != nil || !slices.Equal(uidsOf(p), []uint32{1}) {
			t.Errorf("%+v %v", p, err)
		}
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
			var dir *mailtest.Directory
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
			}, func(o *mailbox.Options) { dir = o.Directory.(*mailtest.Directory) })
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
			ref.UID = bad
			a, _ := dir.Account(t.Context(), account)
			allowing("ann@example.org")(&a)
			dir.Set(a)
			mailtest.WantKind(t, second(m.Get(t.Context(), ref, mailbox.GetQuery{})), mail.KindNotFound)
		})
	}
}

// refusing is a server with a message in INBOX, two in Sent, of which it gives only the
// first, and one in Archive. With replaced, Archive is another folder from its second opening
// on.
func refusing(t *testing.T, replaced bool) *mailbox.Client {
	archives := 0
	return scriptedIn(t, "LITERAL+", func(open, command string) (string, string) {
		switch {
		case strings.HasPrefix(command, "LIST"):
			return "* LIST () \"/\" INBOX\r\n* LIST () \"/\" Sent\r\n* LIST () \"/\" Archive\r\n", ""
		case strings.HasPrefix(command, "EXAMINE") && open == "Archive":
			if archives++; archives > 1 && replaced {
				return oneMessage + "* OK [UIDVALIDITY 99] another\r\n", ""
			}
			return oneMessage, ""
		case strings.HasPrefix(command, "EXAMINE"):
			return oneMessage, ""
		case strings.Contains(command, "SEARCH"):
			return "* ESEARCH (TAG \"%TAG%\") UID ALL " + map[string]string{"INBOX": "5", "Sent": "5:6", "Archive": "5"}[open] + "\r\n", ""
		case command == "UID FETCH 5:6 (UID)":
			return "* 1 FETCH (UID 5)\r\n* 2 FETCH (UID 6)\r\n", ""
		case strings.HasPrefix(command, "UID FETCH 5:6 "), strings.HasPrefix(command, "UID FETCH 6 "):
			return "", "NO one of them cannot be read"
		case strings.HasPrefix(command, "UID FETCH 5 "):
			head := fmt.Sprintf("From: Bob <bob@example.org>\r\nSubject: Plan\r\nMessage-ID: <%s@x>\r\nReferences: <root@x>\r\n\r\n", open)
			return "* 1 FETCH (UID 5 FLAGS () INTERNALDATE \"01-Mar-2026 09:00:00 +0000\" RFC822.SIZE 100 BODY[HEADER.FIELDS (FROM)] " + literal(head) + ")\r\n", ""
		}
		return "", ""
	})
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
