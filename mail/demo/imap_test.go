package demo

import (
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

func open(t testing.TB, c *imapclient.Client, folder string, readOnly bool) *imap.SelectData {
	t.Helper()
	data, err := c.Select(folder, &imap.SelectOptions{ReadOnly: readOnly}).Wait()
	must(t, err)
	return data
}

// uidOf is the UID a sample has at start.
func uidOf(t testing.TB, file string) imap.UID {
	t.Helper()
	uids := map[string]imap.UID{}
	for _, m := range samples {
		uids[m.folder]++
		if m.file == file {
			return uids[m.folder]
		}
	}
	t.Fatalf("no sample %q", file)
	return 0
}

func TestOppositeMovesDoNotBlock(t *testing.T) {
	t.Parallel()
	s := start(t)
	done := make(chan error)
	for _, way := range [][2]string{{"INBOX", "Archive"}, {"Archive", "INBOX"}} {
		c := login(t, s)
		open(t, c, way[0], false)
		go func() {
			all := imap.UIDSet{}
			all.AddRange(1, 0)
			for range 20 {
				if _, err := c.Copy(all, way[1]).Wait(); err != nil {
					done <- err
					return
				}
				if _, err := c.Copy(imap.UIDSetNum(1), way[1]).Wait(); err != nil {
					done <- err
					return
				}
				all = imap.UIDSetNum(1, 2)
			}
			done <- nil
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
