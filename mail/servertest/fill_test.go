package servertest

import (
	"bytes"
	"mime"
	"net/mail"
	"testing"

	"github.com/emersion/go-imap/v2"
)

func TestFillMakesValidAndDistinctMessages(t *testing.T) {
	seen := map[string]bool{}
	for uid := 1; uid <= 2000; uid++ {
		raw := sampleMessage(uid)
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%d: %v\n%s", uid, err, raw)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || seen[subject] {
			t.Errorf("%d: subject %q, %v", uid, subject, err)
		}
		seen[subject] = true
		if _, err := m.Header.AddressList("From"); err != nil {
			t.Errorf("%d: %v", uid, err)
		}
		if bytes.Count(raw, []byte("\n")) != bytes.Count(raw, []byte("\r\n")) {
			t.Errorf("%d: a bare LF", uid)
		}
		for line := range bytes.Lines(raw) {
			if len(line) > 1000 {
				t.Errorf("%d: a line of %d bytes", uid, len(line))
			}
		}
	}
}

func TestFillNumbersAndDatesWhatItMakes(t *testing.T) {
	const n = 200
	for name, s := range map[string]*DovecotServer{"Maildir": server(t), "MDBox": Dovecot(t, Config{Storage: MDBox})} {
		user := someone()
		Fill(t, s, user, "Years", n)
		c := login(t, s, user)
		selected, err := c.Select("Years", &imap.SelectOptions{ReadOnly: true}).Wait()
		if err != nil || selected.NumMessages != n || selected.UIDNext != n+1 {
			t.Fatalf("%s: got %+v, %v", name, selected, err)
		}
		section := &imap.FetchItemBodySection{Peek: true}
		got, err := c.Fetch(imap.UIDSet{{Start: 1}}, &imap.FetchOptions{UID: true, InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
		if err != nil || len(got) != n {
			t.Fatalf("%s: %d messages, %v", name, len(got), err)
		}
		for i, m := range got {
			uid := i + 1
			if int(m.UID) != uid || !m.InternalDate.Equal(sampleDate(uid)) || !bytes.Equal(m.FindBodySection(section), sampleMessage(uid)) {
				t.Errorf("%s: message %d: UID %d, received %s, want %s", name, uid, m.UID, m.InternalDate, sampleDate(uid))
			}
		}
		for flag, want := range map[imap.Flag]int{imap.FlagSeen: n * 3 / 4, imap.FlagFlagged: n / 50} {
			found, err := c.UIDSearch(&imap.SearchCriteria{Flag: []imap.Flag{flag}}, nil).Wait()
			if err != nil || len(found.AllUIDs()) != want {
				t.Errorf("%s: %d have %s, %v, want %d", name, len(found.AllUIDs()), flag, err, want)
			}
		}
	}
}
