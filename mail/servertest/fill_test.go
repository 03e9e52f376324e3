package servertest

import (
	"bytes"
	"fmt"
	"mime"
	"net/mail"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
)

func TestFillNumbersAndDatesWhatItMakes(t *testing.T) {
	t.Run("Maildir", func(t *testing.T) { testFill(t, server(t)) })
	t.Run("MDBox", func(t *testing.T) { testFill(t, Dovecot(t, Config{Storage: MDBox})) })
}

func testFill(t *testing.T, s *DovecotServer) {
	user := someone()
	const n = 200
	Fill(t, s, user, "Years", n)
	c := login(t, s, user)
	selected, err := c.Select("Years", &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil || selected.NumMessages != n || selected.UIDNext != n+1 {
		t.Fatalf("got %+v, %v", selected, err)
	}
	all := imap.UIDSet{}
	all.AddRange(1, 0)
	section := &imap.FetchItemBodySection{Peek: true}
	got, err := c.Fetch(all, &imap.FetchOptions{
		UID: true, Envelope: true, InternalDate: true, Flags: true, RFC822Size: true,
		BodyStructure: &imap.FetchItemBodyStructure{Extended: true}, BodySection: []*imap.FetchItemBodySection{section},
	}).Collect()
	if err != nil || len(got) != n {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	kinds, senders, flagged := map[string]int{}, map[string]bool{}, 0
	for i, m := range got {
		uid := i + 1
		if int(m.UID) != uid || !strings.HasSuffix(m.Envelope.Subject, fmt.Sprintf(" #%d", uid)) {
			t.Fatalf("message %d: UID %d, subject %q", uid, m.UID, m.Envelope.Subject)
		}
		if !m.InternalDate.Equal(sampleDate(uid)) || !m.Envelope.Date.Equal(sampleDate(uid)) {
			t.Errorf("UID %d: received %s, date %s, want %s", uid, m.InternalDate, m.Envelope.Date, sampleDate(uid))
		}
		body := m.FindBodySection(section)
		if !bytes.Equal(body, sampleMessage(uid)) || m.RFC822Size != int64(len(body)) {
			t.Errorf("UID %d: %d bytes, size %d, want %d", uid, len(body), m.RFC822Size, len(sampleMessage(uid)))
		}
		kinds[strings.ToLower(m.BodyStructure.MediaType())]++
		senders[m.Envelope.From[0].Addr()] = true
		for _, f := range m.Flags {
			if f == imap.FlagFlagged {
				flagged++
			}
		}
	}
	if kinds["text/plain"] != n*6/10 || kinds["multipart/alternative"] != n*3/10 || kinds["multipart/mixed"] != n/10 {
		t.Errorf("kinds %v", kinds)
	}
	if len(senders) < 100 || flagged != n/50 {
		t.Errorf("%d senders, %d flagged", len(senders), flagged)
	}
	unseen, err := c.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen}}, nil).Wait()
	if err != nil || len(unseen.AllUIDs()) != n/4 {
		t.Errorf("%d unseen, %v", len(unseen.AllUIDs()), err)
	}
}

func TestFillIsFollowedByWhatIsDelivered(t *testing.T) {
	s := server(t)
	user := someone()
	Fill(t, s, user, "", 3)
	s.Deliver(t, user, "", exact[0])
	c := login(t, s, user)
	if selected, err := c.Select("INBOX", nil).Wait(); err != nil || selected.NumMessages != 4 || selected.UIDNext != 5 {
		t.Errorf("got %+v, %v", selected, err)
	}
}

func TestStorageWithoutAMaildirRefusesToDeliver(t *testing.T) {
	s := Dovecot(t, Config{Storage: MDBox})
	if err := s.deliver(someone(), "", exact); err == nil {
		t.Error("delivered")
	}
	if _, err := s.files(someone()); err == nil {
		t.Error("listed")
	}
	if _, err := StartDovecot(Config{Storage: "x"}); err == nil {
		t.Error("a server with an unknown storage started")
	}
}

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

func TestFillWantsAnEmptyFolder(t *testing.T) {
	s := server(t)
	user := someone()
	s.Deliver(t, user, "", exact[0])
	if err := s.fill(user, "", 1); err == nil {
		t.Error("accepted")
	}
}

func BenchmarkFill(b *testing.B) {
	server(b)
	s := Dovecot(b, Config{Storage: MDBox})
	for _, n := range []int{200, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Fill(b, s, someone(), "", n)
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
