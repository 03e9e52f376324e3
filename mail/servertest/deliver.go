package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Deliver puts messages into a user's folder, or fails the test. Their UIDs
// follow the order of the arguments and of the calls; sessions that have the
// folder open learn of them together, at their next command. The messages are
// unseen and dated now. A folder that does not exist is made; its name is in
// UTF-8 with / between the levels and has no dot in it; empty means INBOX.
//
// Bytes are kept as they are, except that a server must show every line end as
// CRLF: a message that holds a bare LF comes out longer.
func (s *DovecotServer) Deliver(t testing.TB, user, folder string, raw ...[]byte) {
	t.Helper()
	if err := s.deliver(user, folder, raw); err != nil {
		t.Fatal(err)
	}
}

// Rights leaves the user only these rights to a folder, by their letters in RFC 4314. It
// needs Config.ACL, and holds for sessions that open the folder afterwards.
func (s *DovecotServer) Rights(t testing.TB, user, folder, rights string) {
	t.Helper()
	s.access(t, user, folder, "owner "+rights+"\n")
}

// Share gives every user these rights to a folder of a user, which then is
// shared/USER/FOLDER. It needs Config.Others, and the owner keeps every right.
func (s *DovecotServer) Share(t testing.TB, user, folder, rights string) {
	t.Helper()
	s.access(t, user, folder, "owner lrwstipekxa\nanyone "+rights+"\n")
}

// access writes who may do what with a folder.
func (s *DovecotServer) access(t testing.TB, user, folder, acl string) {
	t.Helper()
	dir, err := s.maildirs().folder(user, folder)
	Check(t, err)
	path := filepath.Join(dir, "dovecot-acl")
	Check(t, os.WriteFile(path, []byte(acl), 0o600))
	Check(t, s.give(path))
}

func (s *DovecotServer) deliver(user, folder string, raw [][]byte) error {
	// Delivery writes the Maildir itself: APPEND and doveadm take a transaction
	// per message, which a folder of 200,000 cannot wait for.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("deliver: the server is stopped")
	}
	if s.store != Maildir {
		return fmt.Errorf("deliver: the mail lies in %s", s.store)
	}
	dir, err := s.maildirs().folder(user, folder)
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	now := time.Now().Unix()
	names := make([]string, len(raw))
	for i, message := range raw {
		s.sequence++
		lf := bytes.Count(message, []byte("\n")) - bytes.Count(message, []byte("\r\n"))
		// Dovecot numbers new files by the leading number, then by the rest of
		// the name. The sizes spare it from reading each file for them.
		names[i] = fmt.Sprintf("%010d.%09d.test,S=%d,W=%d:2,", now, s.sequence, len(message), len(message)+lf)
		path := filepath.Join(dir, "tmp", names[i])
		if err := os.WriteFile(path, message, 0o600); err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
		if err := s.give(path); err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
	}
	// A reader that scanned the directory during the renames could see a later message
	// without an earlier one and number it first. It scans only while it holds this lock.
	unlock, err := s.lock(filepath.Join(dir, "dovecot-uidlist.lock"))
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	defer unlock()
	for _, name := range names {
		// cur and not new: the server would move each file there itself at the
		// first SELECT.
		if err := os.Rename(filepath.Join(dir, "tmp", name), filepath.Join(dir, "cur", name)); err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
	}
	return nil
}

// lock takes a lock file in the way the server does and returns the function that releases
// it.
func (s *DovecotServer) lock(path string) (unlock func(), err error) {
	deadline := time.Now().Add(startTimeout)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			err = errors.Join(s.give(path), f.Close())
			return func() { _ = os.Remove(path) }, err
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s is held", filepath.Base(path))
		}
		time.Sleep(pollInterval)
	}
}
