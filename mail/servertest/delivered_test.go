package servertest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
)

func TestAwaitChangeEndsInTime(t *testing.T) {
	t.Parallel()
	asked := 0
	err := awaitChange([]string{t.TempDir()}, time.Millisecond, func() (bool, error) {
		asked++
		return false, nil
	})
	if !errors.Is(err, os.ErrDeadlineExceeded) || asked == 0 {
		t.Errorf("got %v after %d questions", err, asked)
	}
	broken := errors.New("broken")
	if err := awaitChange([]string{t.TempDir()}, time.Minute, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := awaitChange([]string{filepath.Join(t.TempDir(), "missing")}, time.Millisecond, func() (bool, error) { return false, nil }); err == nil {
		t.Error("nothing is watched, and it is no error")
	}
}

func TestCopiesCountsOneMessageIDInTheInbox(t *testing.T) {
	t.Parallel()
	s, user := server(t), someone()
	if got := s.Copies(t, user, "1@x"); len(got) != 0 {
		t.Errorf("a user without a mailbox has %q", got)
	}
	s.Deliver(t, user, "INBOX",
		[]byte("message-id:\r\n <1@x>\r\n\r\nfolded"), []byte("Message-ID: <1@x>\r\n\r\nagain"),
		[]byte("Message-ID: <11@x>\r\n\r\nother"), []byte("Subject: none\r\n\r\nMessage-ID: <1@x>\r\n"),
		[]byte("Message-ID: <1@x>\r\nno colon\r\n\r\nbroken"))
	s.Deliver(t, user, "Sent", []byte("Message-ID: <1@x>\r\n\r\nelsewhere"))
	for range 2 {
		for _, id := range []string{"1@x", "<1@x>"} {
			if got := s.Copies(t, user, id); len(got) != 3 {
				t.Errorf("%s: got %q, want 3", id, got)
			}
		}
		// A session that marks them changes their names.
		c := login(t, s, user)
		if _, err := c.Select("INBOX", nil).Wait(); err != nil {
			t.Fatal(err)
		}
		seen := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagSeen}}
		must(t, c.Store(imap.SeqSetNum(1, 2), seen, nil).Close())
	}
}
