package main

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// office is a house on a real submission server and the mail server it delivers
// to, with the accounts ann and bob, and a directory of files to send.
type office struct {
	*testHouse
	v       testVault
	dovecot *servertest.DovecotServer
	postfix *servertest.PostfixServer
	files   string
}

func newOffice(t testing.TB, c servertest.PostfixConfig, change ...func(*mail.Account)) *office {
	t.Helper()
	o := &office{v: newVault(t), dovecot: servertest.Dovecot(t, servertest.Config{Submission: true}), files: t.TempDir()}
	c.Dovecot = o.dovecot
	o.postfix = servertest.Postfix(t, c)
	for i, user := range []string{"ann", "bob"} {
		a := dovecotAccount(o.dovecot, user)
		a.Username = a.Email // where the mail is delivered
		a.Name, a.Mode, a.AllowOut = user, mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"@example.org", "@bücher.example"}}
		a.DisplayName = []string{"Ann Lee", "Bob Öztürk"}[i]
		// One logs in with STARTTLS, the other with TLS from the first byte.
		a.SMTP = []mail.Endpoint{{Host: o.postfix.Host, Port: o.postfix.SubmissionPort, Security: mail.StartTLS},
			{Host: o.postfix.Host, Port: o.postfix.SubmissionsPort, Security: mail.TLS}}[i]
		for _, c := range change {
			c(&a)
		}
		o.v.add(t, a, servertest.Password)
	}
	o.testHouse = houseOf(t, newProcess(t, "POSTERN_ATTACHMENTS="+o.files), o.v)
	return o
}

type sendData struct {
	ID         string   `json:"outbox_id"`
	State      string   `json:"state"`
	MessageID  string   `json:"internet_message_id"`
	Recipients []string `json:"recipients"`
	Subject    string   `json:"subject"`
	Digest     string   `json:"digest"`
	SentCopy   string   `json:"sent_copy"`
	Replayed   bool     `json:"replayed"`
}

type getData struct {
	Message struct {
		ID          string `json:"message_id"`
		Subject     string `json:"subject"`
		From        string `json:"from"`
		To          string `json:"to"`
		BodyText    string `json:"body_text"`
		InternetID  string `json:"internet_message_id"`
		Attachments []struct {
			PartID   string `json:"part_id"`
			Filename string `json:"filename"`
			Size     int64  `json:"size_bytes"`
		} `json:"attachments"`
	} `json:"message"`
}

// send sends and waits until it is there. It returns what bob sees of it.
func (o *office) send(t testing.TB, to string, tokens ...string) (sendData, getData) {
	t.Helper()
	line := discovery.JoinCommand(append([]string{"mail", "send"}, tokens...))
	var s sendData
	o.do(t, line, &s)
	if s.State != "accepted" {
		t.Fatalf("%s: %+v", line, s)
	}
	o.dovecot.WaitDelivered(t, to+"@example.org", strings.Trim(s.MessageID, "<>"))
	var list listData
	o.do(t, "mail list --account "+to+" --limit 1", &list)
	var g getData
	o.do(t, "mail get --chars 20000 "+discovery.JoinCommand([]string{list.Messages[0].ID}), &g)
	if g.Message.InternetID != strings.Trim(s.MessageID, "<>") {
		t.Fatalf("%s is there, %s was sent", g.Message.InternetID, s.MessageID)
	}
	return s, g
}

// kept counts the copies of a message in the sender's folder for them.
func (o *office) kept(t testing.TB, account, id string) (n int) {
	t.Helper()
	var list struct {
		Messages []struct {
			InternetID string   `json:"internet_message_id"`
			Flags      []string `json:"flags"`
		} `json:"messages"`
	}
	o.do(t, "mail list --folder Sent --limit 500 --full --account "+account, &list)
	for _, m := range list.Messages {
		if m.InternetID == id {
			n++
			if !slices.Contains(m.Flags, `\Seen`) {
				t.Errorf("the copy has the flags %v", m.Flags)
			}
		}
	}
	return n
}

// What is written arrives as it was written, as ours and as other people's programs
// show it, with one copy in Sent.
func TestSentMailArrivesAsWritten(t *testing.T) {
	t.Parallel()
	o := newOffice(t, servertest.PostfixConfig{MessageSizeLimit: 30 << 20, SMTPUTF8: true})
	big := bytes.Repeat([]byte("0123456789abcdef\x00\xff\r\n."), testmain.Rounds(1, 10)<<20/21)
	writeFile(t, filepath.Join(o.files, "große Datei.bin"), string(big))
	long := strings.TrimSpace(strings.Repeat("This paragraph is longer than any line of a mail may be. ", 40))
	for name, c := range map[string]struct {
		tokens []string
		body   string
		attach bool
	}{
		"plain":            {[]string{"--subject", "Lunch"}, "Shall we say noon?", false},
		"not ASCII":        {[]string{"--subject", "Größe 日本語 🎉"}, "Grüße aus Köln.\n\n日本語の本文です。\n🎉", false},
		"paragraphs":       {[]string{"--subject", "long " + strings.Repeat("and longer ", 30)}, long + "\n\n" + long + "\n\n> quoted\n> > twice\n indented\nFrom here\n.\n..\n-- \nAnn", false},
		"a large file":     {[]string{"--subject", "big", "--attach", "große Datei.bin"}, "See the file.", true},
		"answered by name": {[]string{"--subject", "names", "--cc", `"Lee\, Ann" <ann@example.org>`}, "x", false},
	} {
		for from, to := range map[string]string{"ann": "bob", "bob": "ann"} {
			if name != "plain" && from != "ann" {
				continue // what is written does not depend on how the sender logs in
			}
			if testing.Short() && (from != "ann" || name != "not ASCII" && name != "paragraphs") {
				continue
			}
			t.Run(name+" from "+from, func(t *testing.T) {
				tokens := append([]string{"--account", from, "--to", to + "@example.org", "--body", c.body}, c.tokens...)
				s, g := o.send(t, to, tokens...)
				if subject := c.tokens[1]; g.Message.Subject != strings.TrimSpace(subject) {
					t.Errorf("subject %q", g.Message.Subject)
				}
				if g.Message.BodyText != c.body {
					i := 0
					for i < min(len(c.body), len(g.Message.BodyText)) && c.body[i] == g.Message.BodyText[i] {
						i++
					}
					t.Errorf("body differs from byte %d on: %.200q, want %.200q", i, g.Message.BodyText[i:], c.body[i:])
				}
				if want := map[string]string{"ann": "Ann Lee <ann@example.org>", "bob": "Bob Öztürk <bob@example.org>"}[from]; g.Message.From != want {
					t.Errorf("from %q", g.Message.From)
				}
				if c.attach {
					if len(g.Message.Attachments) != 1 || g.Message.Attachments[0].Filename != "große Datei.bin" || g.Message.Attachments[0].Size < int64(len(big))*99/100 {
						t.Fatalf("attachments %+v", g.Message.Attachments)
					}
					o.do(t, discovery.JoinCommand([]string{"mail", "attachment", g.Message.ID, "--save", from + ".bin"}), &struct{}{})
					got, err := os.ReadFile(filepath.Join(o.files, from+".bin"))
					if err != nil || sha256.Sum256(got) != sha256.Sum256(big) {
						t.Errorf("the attachment differs: %d bytes, %v", len(got), err)
					}
				}
				// The copy: one, seen, the same message.
				if s.SentCopy != "filed" {
					t.Errorf("copy %q", s.SentCopy)
				}
				id := s.MessageID
				if n := o.kept(t, from, id); n != 1 {
					t.Errorf("%d copies with the sender", n)
				}
				shown := servertest.ReadPython(t, o.dovecot.WaitDelivered(t, to+"@example.org", id))
				if shown.Subject != strings.TrimSpace(c.tokens[1]) {
					t.Errorf("another reader shows the subject %q", shown.Subject)
				}
				if got := shown.Body; got != c.body+"\n" {
					t.Errorf("another reader shows the text %q", got)
				}
			})
		}
	}
	o.postfix.WaitQueueEmpty(t)
}
