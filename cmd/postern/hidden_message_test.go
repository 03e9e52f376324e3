package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// varying is what differs between two answers to the same command.
var varying = regexp.MustCompile(`"duration_ms":\d+|"now_utc":"[^"]*"`)

// TestHiddenIsAnsweredLikeMissing asks every command about a message that the
// rules hide and about one that does not exist: through the whole program the
// answers are the same bytes, times apart.
func TestHiddenIsAnsweredLikeMissing(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	letter := func(from, subject string) []byte {
		return []byte("From: " + from + "\r\nTo: ann@example.org\r\nSubject: " + subject + "\r\nMessage-ID: <" + subject + "@x>\r\nMIME-Version: 1.0\r\n" +
			"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nhi\r\n--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\n1,2\r\n--b--\r\n")
	}
	s.Deliver(t, user, "INBOX", letter("bob@example.org", "one"), letter("eve@evil.example", "hidden"), letter("bob@example.org", "two"))
	v := newVault(t)
	a := dovecotAccount(s, user)
	a.Mode, a.AllowIn = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"@example.org"}}
	v.add(t, a, servertest.Password)
	h := newHouse(t, v)
	h.do(t, "mail list", nil)
	const hidden, missing = "2", "9"
	for _, line := range []string{
		"mail get --folder INBOX --uid UID", "mail get --folder INBOX --uid UID --headers all --html --attachment-text --with-content",
		"mail raw --folder INBOX --uid UID", "mail attachment --folder INBOX --uid UID", "mail attachment --folder INBOX --uid UID --part 2",
		"mail thread --folder INBOX --uid UID", "mail ack --folder INBOX --uid UID", "mail ack --folder INBOX --uid UID,1", "mail mark-read --folder INBOX --uid UID",
		"mail mark-read --folder INBOX --uid UID,1", "mail flags --folder INBOX --uid UID --add x", "mail flags --folder INBOX --uid UID,3 --add x",
		"mail copy --folder INBOX --uid UID --to Archive", "mail copy --folder INBOX --uid UID,3 --to Archive", "mail move --folder INBOX --uid UID --to Archive",
		"mail trash --folder INBOX --uid UID", "mail delete --folder INBOX --uid UID --confirm",
		"account edit work --mode reply", "policy explain 'mail reply UID --body hi'", "account edit work --mode RW",
	} {
		answers := map[string]string{}
		for _, uid := range []string{hidden, missing} {
			raw := string(h.do(t, strings.Replace(line, "UID", uid, 1), nil).raw)
			// Copies get new UIDs, changes ids of their own, and the answer repeats the UID that was asked for.
			raw = regexp.MustCompile(`"(new_message_id|undo)":"[^"]*"`).ReplaceAllString(varying.ReplaceAllString(raw, ""), "")
			for _, form := range []string{"--uid %s", ":%s\"", "\"uid\":%s", "UID %s."} {
				raw = strings.ReplaceAll(raw, fmt.Sprintf(form, uid), fmt.Sprintf(form, "N"))
			}
			answers[uid] = raw
		}
		if answers[hidden] != answers[missing] {
			t.Errorf("%s\nhidden:  %s\nmissing: %s", line, answers[hidden], answers[missing])
		}
	}
	// The log tells the administrator apart what the answers do not.
	h.do(t, "mail get --folder INBOX --uid "+hidden, nil)
	h.do(t, "mail get --folder INBOX --uid "+missing, nil)
	var log struct {
		Entries []struct{ Result, Reason string }
	}
	h.do(t, "mail ack --folder INBOX --uid 1,"+hidden, nil)
	h.do(t, "mail ack --folder INBOX --uid 1,"+missing, nil)
	h.do(t, "audit list --limit 4", &log)
	if batch := log.Entries; batch[1].Result != "allowed" || batch[1].Reason != "filtered" || batch[0].Reason != "" {
		t.Errorf("batches audited: %+v", log)
	}
	if log.Entries = log.Entries[2:]; log.Entries[1].Result != "blocked" || log.Entries[1].Reason != "filtered" || log.Entries[0].Result != "allowed" {
		t.Errorf("audited: %+v", log)
	}
	for line, unwanted := range map[string]string{"mail list --full": "hidden", "mail search --subject hidden": `"total":1`, "mail folders --counts": `"messages":3`,
		"mail thread --folder INBOX --uid 1": "hidden", "mail search x --attachments": "hidden"} {
		if a := h.do(t, line, nil); !a.Success || strings.Contains(strings.Split(string(a.raw), `"_meta"`)[0], unwanted) {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
}

// TestAHundredCommandsInFlight sends them without waiting, as a client may: all
// are answered, over a few connections, and every change takes effect in the
// order in which the commands were sent.
func TestAHundredCommandsInFlight(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	s.Deliver(t, user, "INBOX", []byte("From: a@example.org\r\nSubject: one\r\n\r\nx\r\n"), []byte("From: a@example.org\r\nSubject: two\r\n\r\nx\r\n"))
	proxy := servertest.NewProxy(t, s.IMAPAddr(), servertest.ProxyOptions{})
	v := newVault(t)
	a := dovecotAccount(s, user)
	a.Mode = mail.ReadWrite
	a.IMAP = mail.Endpoint{Host: proxy.Host, Port: proxy.Port, Security: mail.Plaintext}
	v.add(t, a, servertest.Password)
	c := serving(t, v)
	const n = 100
	want := map[int]string{} // what the answer must show
	for i := 1; i <= n; i++ {
		command, flags := "mail get --folder INBOX --uid 2 --fields messages.subject", ""
		if i%2 == 1 { // each change undoes the one before
			command, flags = fmt.Sprintf("mail flags --full --folder INBOX --uid 1 --add n%d", i), fmt.Sprintf(`"flags":["n%d"]`, i)
			if i > 1 {
				command += fmt.Sprintf(" --remove n%d", i-2)
			}
		}
		want[c.Begin(command)] = flags
	}
	for id, flags := range want {
		if text := c.Answer(id).Text(); !strings.HasPrefix(text, `{"success":true`) || !strings.Contains(text, flags) {
			t.Errorf("%d: %s, want %s", id, text, flags)
		}
	}
	if got := proxy.Stats().Connections; got > 4 {
		t.Errorf("%d connections", got)
	}
	_ = c.Close()
}
