package servertest

import (
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

func TestFilesListsWhatWasDelivered(t *testing.T) {
	s := server(t)
	user := someone()
	if got := s.Files(t, user); len(got) != 0 {
		t.Fatalf("a user without mail has %v", got)
	}
	for i, folder := range []string{"INBOX", "Projects/Été"} {
		s.Deliver(t, user, folder, exact[2*i], exact[2*i+1])
	}
	got := s.Files(t, user)
	if len(got) != 4 {
		t.Fatalf("%d files, want 4", len(got))
	}
	for i, folder := range []string{"INBOX", "INBOX", "Projects/Été", "Projects/Été"} {
		if got[i].Folder != folder || got[i].Flags != "" || got[i].Sum != sha256.Sum256(exact[i]) {
			t.Errorf("file %d: got %+v, want message %d in %s", i, got[i], i, folder)
		}
	}
}

func TestFilesRefusesNamesThatLeaveTheMailbox(t *testing.T) {
	for _, user := range []string{"", ".", "..", "../x", "a/b", "a\x00"} {
		if _, err := server(t).files(user); err == nil {
			t.Errorf("user %q: accepted", user)
		}
	}
}

// A proof by Files that nothing changed is worth what Files notices.
func TestFilesStayEqualUnderReadingAndDifferAfterAnyChange(t *testing.T) {
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
		"move": {false, func(c *imapclient.Client) error {
			_, err := c.Move(imap.UIDSetNum(1), "Archive").Wait()
			return err
		}, false},
		"append": {false, func(c *imapclient.Client) error {
			a := c.Append("Drafts", int64(len(exact[0])), nil)
			if _, err := a.Write(exact[0]); err != nil {
				return err
			}
			if err := a.Close(); err != nil {
				return err
			}
			_, err := a.Wait()
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
			if err := test.do(c); err != nil {
				t.Fatal(err)
			}
			// The server may write flags lazily, but not past the end of the session.
			if err := c.Logout().Wait(); err != nil {
				t.Fatal(err)
			}
			after := s.Files(t, user)
			if same := slices.Equal(before, after); same != test.same {
				t.Errorf("equal %v, want %v\nbefore %+v\nafter  %+v", same, test.same, before, after)
			}
		})
	}
}
