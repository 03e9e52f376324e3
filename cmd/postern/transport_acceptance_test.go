//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
)

// fetchedPage is a page as spec 004 asks for it.
type fetchedPage struct {
	listData
	UIDValidity uint32 `json:"uidvalidity"`
	UIDNext     uint32 `json:"uid_next"`
}

// Test004_7_1 fetches by dates, count and UID, the days at the ends included, and
// marks nothing as read. The ids that it showed are known to a process that begins later.
func Test004_7_1_FetchMatchesFiltersAndMarksNothing(t *testing.T) {
	t.Parallel()
	c, s, user := on(t, nil) // letters of 1, 2 and 3 February 2026
	shown := c.Gateway.Do(t.Context(), gateway.Request{Principal: c.Principal, Line: "mail list"}).JSON
	ids := regexp.MustCompile(`"(imap:default:INBOX:\d+:)3"`).FindSubmatch(shown)
	if ids == nil {
		t.Fatalf("the ids of a list do not last: %s", shown)
	}
	c = carry(t, c.wire, c.wire.options(t, s, "imap", user), nil)
	for _, tc := range testmain.Table[struct{ Line, Want string }](t, "testdata/cases/fetch.txt") {
		var page fetchedPage
		c.do(t, strings.Replace(tc.Line, "--after ", "--after "+string(ids[1]), 1), &page)
		var got []string
		for _, m := range page.Messages {
			got = append(got, m.Subject)
		}
		if strings.Join(got, ",") != tc.Want || page.UIDValidity == 0 || page.UIDNext != 4 || page.HasMore != strings.Contains(tc.Line, "--limit 1") && page.HasMore != strings.Contains(tc.Line, "--limit 2") {
			t.Errorf("%s: %q, UIDVALIDITY %d, next UID %d, more %t", tc.Line, got, page.UIDValidity, page.UIDNext, page.HasMore)
		}
	}
	if got := flags(t, s, user); !slices.Equal(got, []string{"", "", ""}) {
		t.Errorf("the flags are %q", got)
	}
}

// Test004_7_2 marks some of the messages, in each way to name them, and one that is
// not there with others, which marks none.
func Test004_7_2_MarkReadSetsSeenOnTheNamedUIDsOnly(t *testing.T) {
	t.Parallel()
	c, s, user := on(t, nil)
	if a := c.run("mail mark-read --folder INBOX --uid 1,99"); a.Error.Code != "NOT_FOUND" {
		t.Errorf("with a UID that does not exist: %s", a.raw)
	}
	if got := flags(t, s, user); !slices.Equal(got, []string{"", "", ""}) {
		t.Errorf("after a refusal the flags are %q", got)
	}
	for _, line := range []string{"mail mark-read --folder INBOX --uid 1", "mail mark-read --folder INBOX --uid 1"} {
		if a := c.run(line); !a.Success || !strings.Contains(string(a.raw), `\\Seen`) {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	if got := flags(t, s, user); !slices.Equal(got, []string{"S", "", ""}) {
		t.Errorf("the flags are %q", got)
	}
}

// Test004_7_3 compares every folder with what lies on the server's disk.
func Test004_7_3_FoldersAreAllAndCountedRightly(t *testing.T) {
	t.Parallel()
	c, s, user := on(t, nil)
	s.Deliver(t, user, "Été/sous", []byte("Subject: x\r\n\r\nx\r\n"), []byte("Subject: y\r\n\r\ny\r\n"))
	c.run("mail mark-read --folder INBOX --uid 1")
	var data struct {
		Folders []struct {
			Name             string
			Messages, Unread int
			NoSelect         bool `json:"no_select"`
		}
	}
	c.do(t, "mail folders --counts", &data)
	want := map[string][2]int{"INBOX": {}, "Archive": {}, "Drafts": {}, "Junk": {}, "Sent": {}, "Trash": {}, "Été/sous": {}}
	for _, f := range s.Files(t, user) {
		n := want[f.Folder]
		n[0]++
		if !strings.Contains(f.Flags, "S") {
			n[1]++
		}
		want[f.Folder] = n
	}
	for _, f := range data.Folders {
		n, there := want[strings.ReplaceAll(f.Name, ".", "/")]
		if delete(want, f.Name); !there && !f.NoSelect || n != [2]int{f.Messages, f.Unread} {
			t.Errorf("%+v, and on the disk %v", f, n)
		}
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// Test004_7_4 asks while the server is there, after it has gone, and after it has
// come back, without and with a connection that was used in between.
func Test004_7_4_StatusIsThatOfNow(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"imap", "pop3"} {
		t.Run(protocol, func(t *testing.T) {
			s := servertest.SharedDovecot(t)
			p := newRecorder(t, s, protocol)
			c := carry(t, p, p.options(t, s, protocol, servertest.User("ann")), nil)
			status := func() (now struct {
				OK     bool
				Status string
				Issues []struct{ Code string }
			}) {
				c.do(t, "mail verify", &now)
				return now
			}
			for round := range 2 {
				if v := status(); !v.OK || v.Status != "ok" {
					t.Errorf("round %d: it is there, and status says %+v", round, v)
				}
				said := len(strings.Join(p.reset(), ""))
				if v := status(); !v.OK || len(strings.Join(p.reset(), "")) == 0 {
					t.Errorf("round %d: nobody asked the server (%d bytes before)", round, said)
				}
				p.dead(true)
				if v := status(); v.OK || v.Status != "failed" || len(v.Issues) == 0 || v.Issues[0].Code != "CONNECTION_FAILED" {
					t.Errorf("round %d: it is gone, and status says %+v", round, v)
				}
				p.dead(false)
			}
			if v := status(); !v.OK {
				t.Errorf("it is back, and status says %+v", v)
			}
		})
	}
}

// Test004_7_5 has the helper count its runs: one, before anybody asks for anything,
// and no other whatever happens to the connection.
func Test004_7_5_TheHelperRunsOnceAtTheStart(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	count := filepath.Join(t.TempDir(), "count")
	p := newRecorder(t, s, "imap")
	o := p.options(t, s, "imap", servertest.User("ann"))
	o.Helper = script(t, fmt.Sprintf("echo x >>%s; echo %s", count, servertest.Password))
	c := carry(t, p, o, nil)
	if e := c.made.Helper.Failed(t.Context()); e != nil {
		t.Fatal(e)
	}
	runs := func() int {
		b, _ := os.ReadFile(count)
		return strings.Count(string(b), "x")
	}
	if n := runs(); n != 1 || p.connections() != 0 {
		t.Errorf("before the first command the helper ran %d times, and there were %d connections", n, p.connections())
	}
	for range 3 {
		if a := c.run("mail list"); !a.Success {
			t.Errorf("%s", a.raw)
		}
		p.sever()
		c.run("mail verify")
	}
	if n := runs(); n != 1 {
		t.Errorf("the helper ran %d times", n)
	}
}

// Test004_7_7 runs the program as a process, has it succeed and fail, and looks at
// everything it wrote anywhere but in its answers.
func Test004_7_7_NoCredentialOrBodyInAnyLog(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	s.Deliver(t, user, "INBOX", []byte("From: bob@example.org\r\nSubject: one\r\n\r\n"+bodyCanary+"\r\n"))
	const canary = "c4n4ry-p4ssw0rd"
	proxy := servertest.NewProxy(t, s.IMAPSAddr(), servertest.ProxyOptions{})
	p := &recorder{port: proxy.Port}
	home := newHomeless(t)
	for _, helper := range []string{"echo " + servertest.Password, "printf %s%s " + canary[:6] + " " + canary[6:], script(t, "echo "+canary+"; echo "+canary+" >&2; exit 1")} {
		o := p.options(t, s, "imap", user)
		o.Helper = helper
		session, log := carrying(t, o, home.environment()...)
		envelope(t, session, "help")
		for _, line := range []string{"mail get --folder INBOX --uid 1", "mail list", "mail nope", "mail send --body " + bodyCanary, "mail get '" + bodyCanary + "'"} {
			a := envelope(t, session, line)
			for _, v := range finds("the answer to "+line, a.raw, canary) {
				t.Error(v)
			}
		}
		proxy.Cut()
		envelope(t, session, "mail verify")
		ended(t, session)
		for _, text := range []string{canary, bodyCanary} {
			for _, v := range finds("the log", []byte(log.String()), text) {
				t.Error(v)
			}
			for _, v := range findsOnDisk(t, text, home.config, home.temporary) {
				t.Error(v)
			}
		}
		if files := append(left(t, home.config), left(t, home.temporary)...); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
	}
	for _, text := range disguises(bodyCanary) {
		if len(finds("a log", []byte("level=INFO msg=x text=\""+text+"\""), bodyCanary)) == 0 {
			t.Errorf("%q would not be noticed", text)
		}
	}
}

// Every test of the profile names its clauses, and every invariant and every measurable clause
// of the acceptance has one. That each fails where the clause is broken was seen with the
// faults planted by hand.
func Test004_7_6_And8_EveryClauseHasATestAndEveryTestAClause(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("transport*_test.go")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	all := ""
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t`).FindAllStringSubmatch(read(t, file), -1) {
			if all += m[1] + " "; !regexp.MustCompile(`^Test004_([2-7]|INV_GLOBAL_0[1-8])_`).MatchString(m[1]) {
				t.Errorf("%s names no clause of 004", m[1])
			}
		}
	}
	for n := 1; n <= 8; n++ {
		if !regexp.MustCompile(fmt.Sprintf(`INV_GLOBAL_(0\d_)*0%d_`, n)).MatchString(all) || n != 8 && !strings.Contains(all, fmt.Sprintf("004_7_%d_", n)) { // 8 is with 6
			t.Errorf("no test of an invariant or clause %d", n)
		}
	}
}

// patience bounds what a test waits for that should come at once.
const patience = time.Minute
