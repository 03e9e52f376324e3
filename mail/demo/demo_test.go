package demo

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/postern-mail/postern/mail"
)

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func start(t testing.TB) *Servers {
	t.Helper()
	s, err := Start(Options{Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *Servers) clientTLS(t testing.TB) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CAPEM) {
		t.Fatal("CAPEM holds no certificate")
	}
	host, _, err := net.SplitHostPort(s.IMAPAddr)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: pool, ServerName: host}
}

func login(t testing.TB, s *Servers) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialTLS(s.IMAPAddr, &imapclient.Options{TLSConfig: s.clientTLS(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Login(s.Username, s.Password.Reveal()).Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t testing.TB, c *imapclient.Client, folder string, readOnly bool) *imap.SelectData {
	t.Helper()
	data, err := c.Select(folder, &imap.SelectOptions{ReadOnly: readOnly}).Wait()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// everyFlag maps UIDs to flags of the selected folder.
func everyFlag(t testing.TB, c *imapclient.Client) map[imap.UID][]string {
	t.Helper()
	all := imap.UIDSet{}
	all.AddRange(1, 0)
	messages, err := c.Fetch(all, &imap.FetchOptions{UID: true, Flags: true}).Collect()
	if err != nil {
		t.Fatal(err)
	}
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

func TestAccountIsValidAndHarmless(t *testing.T) {
	s := start(t)
	a := s.Account()
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	if a.Name != "demo" || a.Mode != mail.ReadOnly || !a.AllowOut.Enabled || len(a.AllowOut.Entries) != 0 {
		t.Errorf("got %+v", a)
	}
	if a.IMAP.Address() != s.IMAPAddr || a.SMTP.Address() != s.SMTPAddr || a.IMAP.Security != mail.TLS || a.SMTP.Security != mail.TLS {
		t.Errorf("endpoints: %+v, %+v", a.IMAP, a.SMTP)
	}
	if other := start(t); other.Password.Reveal() == s.Password.Reveal() {
		t.Error("two servers have the same password")
	}
}

func TestWrongLoginIsRefused(t *testing.T) {
	s := start(t)
	for name, credentials := range map[string][2]string{
		"wrong password": {s.Username, "wrong"},
		"no password":    {s.Username, ""},
		"another user":   {"root@example.org", s.Password.Reveal()},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := imapclient.DialTLS(s.IMAPAddr, &imapclient.Options{TLSConfig: s.clientTLS(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			wantNO(t, "IMAP", c.Login(credentials[0], credentials[1]).Wait())
			if _, err := c.Select("INBOX", nil).Wait(); err == nil {
				t.Error("IMAP: a folder opens all the same")
			}
			m := dialSMTP(t, s)
			var refused *smtp.SMTPError
			if err := m.Auth(sasl.NewPlainClient("", credentials[0], credentials[1])); !errors.As(err, &refused) || refused.Code != 535 {
				t.Errorf("SMTP: got %v, want 535", err)
			}
			if err := m.Mail(Username, nil); !errors.As(err, &refused) || refused.Code != 530 {
				t.Errorf("SMTP: MAIL without login: got %v, want 530", err)
			}
		})
	}
}

func TestNoLoginWithoutTLSOrTrust(t *testing.T) {
	s := start(t)
	if _, err := imapclient.DialTLS(s.IMAPAddr, &imapclient.Options{TLSConfig: &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}}); err == nil {
		t.Error("a client that trusts nobody connected")
	}
	conn, err := net.Dial("tcp", s.IMAPAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "a LOGIN %s x\r\n", Username)
	answer, err := io.ReadAll(conn)
	if err != nil || bytes.Contains(answer, []byte("OK")) {
		t.Errorf("plaintext got %q, %v", answer, err)
	}
}

func TestFoldersAndCounts(t *testing.T) {
	c := login(t, start(t))
	got, err := c.List("", "*", &imap.ListOptions{
		ReturnStatus: &imap.StatusOptions{NumMessages: true, NumUnseen: true, UIDNext: true, UIDValidity: true},
	}).Collect()
	if err != nil {
		t.Fatal(err)
	}
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

func TestListPatternsAndSelections(t *testing.T) {
	c := login(t, start(t))
	for _, test := range []struct {
		pattern string
		options *imap.ListOptions
		want    string
	}{
		{"%", nil, "INBOX Archive Drafts Junk Projects Sent Trash"},
		{"inbox", nil, "INBOX"},
		{"Projects/*", nil, "Projects/Été"},
		{"*", &imap.ListOptions{SelectSpecialUse: true}, "Archive Drafts Junk Sent Trash"},
		{"*", &imap.ListOptions{SelectSubscribed: true}, "INBOX Archive Drafts Junk Sent Trash"},
		{"nothing", nil, ""},
	} {
		got, err := c.List("", test.pattern, test.options).Collect()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range got {
			names = append(names, f.Mailbox)
		}
		if strings.Join(names, " ") != test.want {
			t.Errorf("%q %+v: got %q, want %q", test.pattern, test.options, names, test.want)
		}
	}
}

func TestExamineChangesNothing(t *testing.T) {
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
	// Somebody else marks it; CLOSE of the read-only session must not expunge.
	writer := login(t, s)
	open(t, writer, "INBOX", false)
	if err := writer.Store(first, deleted, nil).Close(); err != nil {
		t.Fatal(err)
	}
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
	c := login(t, start(t))
	open(t, c, "INBOX", false)
	uid := uidOf(t, "welcome")
	for _, peek := range []bool{true, false} {
		section := &imap.FetchItemBodySection{Peek: peek}
		if err := c.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Close(); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(everyFlag(t, c)[uid], string(imap.FlagSeen)); got == peek {
			t.Errorf("after peek %v the message is seen: %v", peek, got)
		}
	}
}

func TestMoveAndCopy(t *testing.T) {
	c := login(t, start(t))
	count := open(t, c, "INBOX", false).NumMessages
	uid := uidOf(t, "welcome")
	moved, err := c.Move(imap.UIDSetNum(uid), "Archive").Wait()
	if err != nil {
		t.Fatal(err)
	}
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
	c := login(t, start(t))
	if err := c.Create("Projects/Été/Lac", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	if err := c.Rename("Projects/Été", "Projects/Hiver", nil).Wait(); err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
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
	s := start(t)
	conn, err := tls.Dial("tcp", s.IMAPAddr, s.clientTLS(t))
	if err != nil {
		t.Fatal(err)
	}
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

func dialSMTP(t testing.TB, s *Servers) *smtp.Client {
	t.Helper()
	c, err := smtp.DialTLS(s.SMTPAddr, s.clientTLS(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func loginSMTP(t testing.TB, s *Servers) *smtp.Client {
	t.Helper()
	c := dialSMTP(t, s)
	if err := c.Auth(sasl.NewPlainClient("", s.Username, s.Password.Reveal())); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSubmissionArrives(t *testing.T) {
	s := start(t)
	reader := login(t, s)
	next := open(t, reader, "INBOX", true).UIDNext
	raw := "From: demo@example.org\r\nTo: demo@example.org, x@example.com\r\nSubject: hello\r\n\r\n.a dot and a last line\r\n"
	c := loginSMTP(t, s)
	if err := c.SendMail(Username, []string{"DEMO@example.org", "x@example.com", "hidden@example.net"}, strings.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	// The session has not been told of the message yet: it must not be shown
	// under the number 0, which ends the connection.
	section := &imap.FetchItemBodySection{Peek: true}
	fetch := func() []*imapclient.FetchMessageBuffer {
		got, err := reader.Fetch(imap.UIDSetNum(next), &imap.FetchOptions{InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	fetch()
	got := fetch() // the end of the first command told it
	if len(got) != 1 {
		t.Fatalf("%d messages arrived", len(got))
	}
	body := string(got[0].FindBodySection(section))
	if !strings.HasPrefix(body, "Return-Path: <demo@example.org>\r\nReceived: ") || !strings.HasSuffix(body, "\r\n"+raw) {
		t.Errorf("got %q", body)
	}
	if !got[0].InternalDate.Equal(testNow) {
		t.Errorf("dated %v, want the demo's clock", got[0].InternalDate)
	}
	out := s.Outgoing()
	if len(out) != 1 || out[0].From != Username || strings.Join(out[0].To, " ") != "x@example.com hidden@example.net" || string(out[0].Raw) != raw {
		t.Errorf("outgoing: %+v", out)
	}
	out[0].Raw[0] = 'X'
	if s.Outgoing()[0].Raw[0] == 'X' {
		t.Error("Outgoing lends its own memory")
	}
}

func TestSubmissionRefuses(t *testing.T) {
	s := start(t)
	code := func(err error) int {
		var refused *smtp.SMTPError
		if errors.As(err, &refused) {
			return refused.Code
		}
		return 0
	}
	c := loginSMTP(t, s)
	if size, ok := c.MaxMessageSize(); !ok || size != MaxMessageBytes {
		t.Errorf("SIZE %d, %v", size, ok)
	}
	if got := code(c.Mail("other@example.org", nil)); got != 553 {
		t.Errorf("foreign sender: %d", got)
	}
	if got := code(c.Mail(Username, &smtp.MailOptions{Size: MaxMessageBytes + 1})); got != 552 {
		t.Errorf("declared size: %d", got)
	}
	if err := c.Mail(Username, nil); err != nil {
		t.Fatal(err)
	}
	if got := code(c.Rcpt("nobody", nil)); got != 501 {
		t.Errorf("recipient without a domain: %d", got)
	}
	if err := c.Rcpt("x@example.com", nil); err != nil {
		t.Fatal(err)
	}
	w, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 998) + "\r\n")
	for n := 0; n <= MaxMessageBytes; n += len(line) {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := code(w.Close()); got != 552 {
		t.Errorf("real size: %d", got)
	}
	if out := s.Outgoing(); len(out) != 0 {
		t.Errorf("%d messages accepted", len(out))
	}
}

// The library cannot describe such a message and would break the connection.
func TestAMultipartWithoutAPartIsRefused(t *testing.T) {
	s := start(t)
	const inner = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b--\r\n"
	for _, raw := range []string{
		inner,
		"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n" + inner + "--a--\r\n",
		"Content-Type: message/rfc822\r\n\r\n" + inner,
	} {
		if err := loginSMTP(t, s).SendMail(Username, []string{Username}, strings.NewReader(raw)); err == nil {
			t.Errorf("SMTP accepted %q", raw)
		}
		c := login(t, s)
		w := c.Append("INBOX", int64(len(raw)), nil)
		if _, err := io.WriteString(w, raw); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := w.Wait()
		wantNO(t, "APPEND", err)
	}
}

func TestAppendIsDatedByTheClock(t *testing.T) {
	c := login(t, start(t))
	const raw = "From: demo@example.org\r\nSubject: draft\r\n\r\ntext\r\n"
	w := c.Append("Drafts", int64(len(raw)), &imap.AppendOptions{Flags: []imap.Flag{imap.FlagDraft}})
	if _, err := io.WriteString(w, raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := w.Wait()
	if err != nil {
		t.Fatal(err)
	}
	open(t, c, "Drafts", true)
	got, err := c.Fetch(imap.UIDSetNum(data.UID), &imap.FetchOptions{InternalDate: true, Flags: true}).Collect()
	if err != nil || len(got) != 1 || !got[0].InternalDate.Equal(testNow) || !slices.Contains(got[0].Flags, imap.FlagDraft) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		s, err := Start(Options{})
		if err != nil {
			t.Fatal(err)
		}
		// One connection in each state: just accepted, logged in, idle,
		// submitting.
		raw, err := net.Dial("tcp", s.IMAPAddr)
		if err != nil {
			t.Fatal(err)
		}
		reader, idler := login(t, s), login(t, s)
		open(t, reader, "INBOX", true)
		open(t, idler, "INBOX", true)
		idle, err := idler.Idle()
		if err != nil {
			t.Fatal(err)
		}
		sender := loginSMTP(t, s)
		if err := sender.Mail(Username, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal("second call:", err)
		}
		if err := reader.Noop().Wait(); err == nil {
			t.Error("a connection outlived the server")
		}
		if _, err := net.Dial("tcp", s.SMTPAddr); err == nil {
			t.Error("the port still answers")
		}
		_ = idle.Close()
		raw.Close()
		reader.Close()
		idler.Close()
		sender.Close()
	}
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := Start(Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
