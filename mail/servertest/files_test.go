package servertest

import (
	"slices"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// A proof by Files that nothing changed is worth what Files notices.
func TestFilesStayEqualUnderReadingAndDifferAfterAnyChange(t *testing.T) {
	t.Parallel()
	s := server(t)
	seen := imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}}
	for name, test := range map[string]struct {
		readOnly bool
		do       func(c *imapclient.Client) error
		same     bool
	}{
		"examine and peek": {true, func(c *imapclient.Client) error {
			_, err := c.Fetch(imap.UIDSetNum(1), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{{Peek: true}}}).Collect()
			return err
		}, true},
		"fetch without peek": {false, func(c *imapclient.Client) error {
			_, err := c.Fetch(imap.UIDSetNum(1), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{{}}}).Collect()
			return err
		}, false},
		"seen": {false, func(c *imapclient.Client) error {
			return c.Store(imap.UIDSetNum(1), &seen, nil).Close()
		}, false},
		"copy": {false, func(c *imapclient.Client) error {
			_, err := c.Copy(imap.UIDSetNum(1), "Archive").Wait()
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			user := someone()
			s.Deliver(t, user, "INBOX", exact[0], exact[1])
			before := s.Files(t, user)
			c := login(t, s, user)
			if _, err := c.Select("INBOX", &imap.SelectOptions{ReadOnly: test.readOnly}).Wait(); err != nil {
				t.Fatal(err)
			}
			must(t, test.do(c))
			// The server may write flags lazily, but not past the end of the session.
			must(t, c.Logout().Wait())
			after := s.Files(t, user)
			if same := slices.Equal(before, after); same != test.same {
				t.Errorf("equal %v, want %v\nbefore %+v\nafter  %+v", same, test.same, before, after)
			}
		})
	}
}
