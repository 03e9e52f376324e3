package demo

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

func open(t testing.TB, c *imapclient.Client, folder string, readOnly bool) *imap.SelectData {
	t.Helper()
	data, err := c.Select(folder, &imap.SelectOptions{ReadOnly: readOnly}).Wait()
	must(t, err)
	return data
}

// everyFlag maps UIDs to flags of the selected folder.
func everyFlag(t testing.TB, c *imapclient.Client) map[imap.UID][]string {
	t.Helper()
	all := imap.UIDSet{}
	all.AddRange(1, 0)
	messages, err := c.Fetch(all, &imap.FetchOptions{UID: true, Flags: true}).Collect()
	must(t, err)
	flags := map[imap.UID][]string{}
	for _, m := range messages {
		flags[m.UID] = []string{}
		for _, f := range m.Flags {
			flags[m.UID] = append(flags[m.UID], string(f))
		}
		slices.Sort(flags[m.UID])
	}
	return flags
}

func wantNO(t testing.TB, what string, err error) {
	t.Helper()
	var no *imap.Error
	if !errors.As(err, &no) || no.Type != imap.StatusResponseTypeNo {
		t.Errorf("%s: got %v, want NO", what, err)
	}
}

func TestFoldersAndCounts(t *testing.T) {
	t.Parallel()
	c := login(t, start(t))
	got, err := c.List("", "*", &imap.ListOptions{
		ReturnStatus: &imap.StatusOptions{NumMessages: true, NumUnseen: true, UIDNext: true, UIDValidity: true},
	}).Collect()
	must(t, err)
	want := map[string]struct{ messages, unseen int }{}
	for _, m := range samples {
		n := want[m.folder]
		n.messages++
		if !slices.Contains(m.flags, imap.FlagSeen) {
			n.unseen++
		}
		want[m.folder] = n
	}
	var names []string
	for _, f := range got {
		names = append(names, fmt.Sprint(f.Mailbox, f.Attrs))
		if f.Mailbox == "Projects" {
			continue
		}
		if n := want[f.Mailbox]; f.Status == nil || int(*f.Status.NumMessages) != n.messages || int(*f.Status.NumUnseen) != n.unseen {
			t.Errorf("%s: got %+v, want %+v", f.Mailbox, f.Status, n)
		}
	}
	wantNames := []string{
		`INBOX[\HasNoChildren]`,
		`Archive[\HasNoChildren \Archive]`,
		`Drafts[\HasNoChildren \Drafts]`,
		`Junk[\HasNoChildren \Junk]`,
		`Projects[\NonExistent \Noselect \HasChildren]`,
		`Projects/Été[\HasNoChildren]`,
		`Sent[\HasNoChildren \Sent]`,
		`Trash[\HasNoChildren \Trash]`,
	}
	if !slices.Equal(names, wantNames) {
		t.Errorf("got  %q\nwant %q", names, wantNames)
	}
	if n := want["INBOX"].messages; n < 45 {
		t.Errorf("INBOX holds %d messages", n)
	}
}

func TestExamineChangesNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	data := open(t, c, "INBOX", true)
	if len(data.PermanentFlags) != 0 {
		t.Errorf("permanent flags %q", data.PermanentFlags)
	}
	before := everyFlag(t, c)
	first := imap.UIDSetNum(uidOf(t, "welcome"))
	for _, peek := range []bool{true, false} {
		section := &imap.FetchItemBodySection{Peek: peek}
		got, err := c.Fetch(first, &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
		if err != nil || len(got) != 1 || len(got[0].FindBodySection(section)) == 0 {
			t.Fatalf("peek %v: %d messages, %v", peek, len(got), err)
		}
	}
	deleted := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}}
	wantNO(t, "STORE", c.Store(first, deleted, nil).Close())
	wantNO(t, "UID EXPUNGE", c.UIDExpunge(first).Close())
	wantNO(t, "EXPUNGE", c.Expunge().Close())
	if _, err := c.Move(first, "Trash").Wait(); err == nil {
		t.Error("MOVE succeeded")
	}
	if after := everyFlag(t, c); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("flags changed:\n%v\n%v", before, after)
	}
	// Another session marks it; CLOSE of the read-only session must not expunge.
	writer := login(t, s)
	open(t, writer, "INBOX", false)
	must(t, writer.Store(first, deleted, nil).Close())
	if err := c.UnselectAndExpunge().Wait(); err != nil {
		t.Errorf("CLOSE: %v", err)
	}
	if after := everyFlag(t, writer); len(after) != len(before) {
		t.Errorf("%d messages left of %d", len(after), len(before))
	}
	// Read-only is over with the folder.
	if data := open(t, c, "INBOX", false); len(data.PermanentFlags) < 6 {
		t.Errorf("permanent flags after SELECT: %q", data.PermanentFlags)
	}
	if err := c.Store(first, deleted, nil).Close(); err != nil {
		t.Errorf("STORE after SELECT: %v", err)
	}
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

func TestSelectSetsSeenUnlessPeeked(t *testing.T) {
	t.Parallel()
	c := login(t, start(t))
	open(t, c, "INBOX", false)
	uid := uidOf(t, "welcome")
	for _, peek := range []bool{true, false} {
		section := &imap.FetchItemBodySection{Peek: peek}
		must(t, c.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Close())
		if got := slices.Contains(everyFlag(t, c)[uid], string(imap.FlagSeen)); got == peek {
			t.Errorf("after peek %v the message is seen: %v", peek, got)
		}
	}
}

func TestMoveAndCopy(t *testing.T) {
	t.Parallel()
	c := login(t, start(t))
	count := open(t, c, "INBOX", false).NumMessages
	uid := uidOf(t, "welcome")
	moved, err := c.Move(imap.UIDSetNum(uid), "Archive").Wait()
	must(t, err)
	if fmt.Sprint(moved.SourceUIDs) != fmt.Sprint(imap.UIDSetNum(uid)) {
		t.Errorf("moved %v", moved.SourceUIDs)
	}
	if got := c.Mailbox().NumMessages; got != count-1 {
		t.Errorf("the client counts %d messages after the move, want %d", got, count-1)
	}
	if _, there := everyFlag(t, c)[uid]; there {
		t.Error("the message is still there")
	}
	none, err := c.Copy(imap.UIDSetNum(9999), "Archive").Wait()
	if err != nil || len(none.SourceUIDs) != 0 {
		t.Errorf("a copy of nothing: %+v, %v", none, err)
	}
	_, err = c.Copy(imap.UIDSetNum(1), "No such folder").Wait()
	wantNO(t, "COPY", err)
	open(t, c, "Archive", true)
	for _, flags := range everyFlag(t, c) {
		if slices.Contains(flags, string(imap.FlagDeleted)) {
			t.Error("the moved message is marked as deleted")
		}
	}
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

func TestFolderManagement(t *testing.T) {
	t.Parallel()
	c := login(t, start(t))
	must(t, c.Create("Projects/Été/Lac", nil).Wait())
	must(t, c.Rename("Projects/Été", "Projects/Hiver", nil).Wait())
	if got := open(t, c, "Projects/Hiver", true).NumMessages; got != 3 {
		t.Errorf("%d messages after the rename", got)
	}
	open(t, c, "Projects/Hiver/Lac", true)
	wantNO(t, "DELETE INBOX", c.Delete("INBOX").Wait())
	wantNO(t, "RENAME INBOX", c.Rename("INBOX", "Old", nil).Wait())
	wantNO(t, "CREATE again", c.Create("Sent", nil).Wait())
	wantNO(t, "CREATE a//b", c.Create("a//b", nil).Wait())
	wantNO(t, "SUBSCRIBE", c.Subscribe("nothing").Wait())
	if err := c.Delete("Projects/Hiver/Lac").Wait(); err != nil {
		t.Error(err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	c := login(t, start(t))
	open(t, c, "INBOX", true)
	for name, test := range map[string]struct {
		criteria imap.SearchCriteria
		want     []string // files, in order
	}{
		"since":        {imap.SearchCriteria{Since: testNow.AddDate(0, 0, -1), Flag: []imap.Flag{}}, []string{"disk-alert", "phishing", "bidi-subject", "question", "only-attachment", "parcel", "no-date", "sign-in-code", "welcome"}},
		"japanese":     {imap.SearchCriteria{Body: []string{"図書館事務室"}}, []string{"japanese"}},
		"windows-1251": {imap.SearchCriteria{Text: []string{"абонементу"}}, []string{"cyrillic-1251"}},
		"koi8 header":  {imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: "Subject", Value: "каталоге"}}}, []string{"cyrillic-koi8"}},
		"sender":       {imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: "From", Value: "builders@"}}}, []string{"reno-2", "reno-5"}},
		"flagged":      {imap.SearchCriteria{Flag: []imap.Flag{imap.FlagFlagged}}, []string{"cyrillic-koi8", "bounce", "pdf", "train-tickets"}},
		"answered":     {imap.SearchCriteria{Flag: []imap.Flag{imap.FlagAnswered}}, []string{"two-from", "text-attachment", "reno-3", "forwarded"}},
		"large":        {imap.SearchCriteria{Larger: 200_000}, []string{"big-log"}},
		"nothing":      {imap.SearchCriteria{Text: []string{"no such text"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.UIDSearch(&test.criteria, nil).Wait()
			must(t, err)
			var want []imap.UID
			for _, file := range test.want {
				want = append(want, uidOf(t, file))
			}
			slices.Sort(want)
			if got := found.AllUIDs(); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestSearchRefusesAnUnknownCharset(t *testing.T) {
	t.Parallel()
	s := start(t)
	conn, err := tls.Dial("tcp", s.IMAPAddr, s.clientTLS(t))
	must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "a LOGIN %s %s\r\nb EXAMINE INBOX\r\nc UID SEARCH CHARSET KOI8-R TEXT x\r\nd LOGOUT\r\n", s.Username, s.Password.Reveal())
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if !bytes.Contains(answer, []byte("\r\nc NO [BADCHARSET]")) {
		t.Errorf("got %q", answer)
	}
}

func TestAppendIsDatedByTheClock(t *testing.T) {
	t.Parallel()
	c := login(t, start(t))
	const raw = "From: demo@example.org\r\nSubject: draft\r\n\r\ntext\r\n"
	w := c.Append("Drafts", int64(len(raw)), &imap.AppendOptions{Flags: []imap.Flag{imap.FlagDraft}})
	if _, err := io.WriteString(w, raw); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	data, err := w.Wait()
	must(t, err)
	open(t, c, "Drafts", true)
	got, err := c.Fetch(imap.UIDSetNum(data.UID), &imap.FetchOptions{InternalDate: true, Flags: true}).Collect()
	if err != nil || len(got) != 1 || !got[0].InternalDate.Equal(testNow) || !slices.Contains(got[0].Flags, imap.FlagDraft) {
		t.Errorf("got %+v, %v", got, err)
	}
}
