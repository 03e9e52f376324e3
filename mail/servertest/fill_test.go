package servertest

import (
	"bytes"
	"testing"

	"github.com/emersion/go-imap/v2"
)

func TestFillNumbersAndDatesWhatItMakes(t *testing.T) {
	t.Parallel()
	const n = 200
	for name, s := range map[string]*DovecotServer{"Maildir": server(t), "MDBox": SharedDovecotWith(t, Config{Storage: MDBox})} {
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
