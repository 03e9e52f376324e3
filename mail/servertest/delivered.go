package servertest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WaitDelivered returns a message with this Message-ID, with or without its
// angle brackets, once it is in the INBOX of the user, as it lies on disk. After
// half a minute it fails the test. A session finds the message at its next
// command that looks for new mail.
func (s *DovecotServer) WaitDelivered(t testing.TB, user, messageID string) []byte {
	t.Helper()
	var found [][]byte
	err := s.awaitDelivery(user, func() (_ bool, err error) {
		found, err = s.copies(user, messageID)
		return len(found) > 0, err
	})
	if err != nil {
		t.Fatalf("wait for %s to reach %s: %v", messageID, user, err)
	}
	return found[0]
}

// Copies returns every message with this Message-ID in the INBOX of the user, as
// it lies on disk, or fails the test.
func (s *DovecotServer) Copies(t testing.TB, user, messageID string) [][]byte {
	t.Helper()
	found, err := s.copies(user, messageID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *DovecotServer) awaitDelivery(user string, ready func() (bool, error)) error {
	if s.store != Maildir {
		return fmt.Errorf("the mail lies in %s", s.store)
	}
	inbox, err := s.maildirs().folder(user, "")
	if err != nil {
		return err
	}
	return awaitChange([]string{filepath.Join(inbox, "new"), filepath.Join(inbox, "cur")}, startTimeout, ready)
}

func (s *DovecotServer) copies(user, messageID string) (found [][]byte, err error) {
	if s.store != Maildir {
		return nil, fmt.Errorf("look for %s: the mail lies in %s", messageID, s.store)
	}
	home, err := s.maildirs().user(user)
	if err != nil {
		return nil, err
	}
	// A session moves files from new to cur and gives them other names there. If a file
	// moves during the search, the search is repeated.
	for again := true; again; {
		found, again, err = scan(filepath.Join(home, "Maildir"), bareID(messageID))
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", messageID, err)
	}
	return found, nil
}

// scan reads the messages with this Message-ID in one Maildir. It says when one was moved
// meanwhile, since it may have missed it.
func scan(maildir, id string) (found [][]byte, moved bool, err error) {
	seen := map[string]bool{}
	for _, sub := range []string{"new", "cur"} {
		entries, err := os.ReadDir(filepath.Join(maildir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
		for _, e := range entries {
			name, _, _ := strings.Cut(e.Name(), ":")
			if seen[name] {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(maildir, sub, e.Name()))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil, true, nil
			case err != nil:
				return nil, false, err
			}
			seen[name] = true
			if bareID(headerID(raw)) == id {
				found = append(found, raw)
			}
		}
	}
	return found, false, nil
}

// headerID returns the Message-ID of a message, empty where it has none.
func headerID(raw []byte) string {
	// The fields after an unreadable line are lost, those before it are not.
	header, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(raw))).ReadMIMEHeader()
	return header.Get("Message-Id")
}

func bareID(id string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(id), "<"), ">")
}
