//go:build unix

package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
)

// fetchedPage is a page as spec 004 asks for it.
type fetchedPage struct {
	listData
	UIDValidity uint32 `json:"uidvalidity"`
	UIDNext     uint32 `json:"uid_next"`
}

// Test004_7_1 fetches by dates, count and UID, the days at the ends included, and
// marks nothing as read.
func Test004_7_1_FetchMatchesFiltersAndMarksNothing(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		c, s := on(t, alter) // letters of 1, 2 and 3 February 2026
		c.run("mail list")   // shows their ids
		for line, want := range map[string]string{
			"mail list": "letter 3,letter 2,letter 1", "mail list --oldest-first": "letter 1,letter 2,letter 3",
			"mail list --limit 1": "letter 3", "mail list --limit 2 --oldest-first": "letter 1,letter 2",
			"mail list --after 1 --oldest-first": "letter 2,letter 3", "mail list --after 3": "", "mail list --after 1 --limit 1 --oldest-first": "letter 2",
			"mail list --since 2026-02-02":                                "letter 3,letter 2",
			"mail list --until 2026-02-02":                                "letter 2,letter 1",
			"mail list --since 2026-02-02 --until 2026-02-02":             "letter 2",
			"mail list --since 2026-02-01 --until 2026-02-03 --limit 500": "letter 3,letter 2,letter 1",
			"mail list --since 2026-02-04":                                "", "mail list --until 2026-01-31": "",
			"mail list --since 2026-02-02T10:00:00Z --until 2026-02-03T10:00:00Z": "letter 2",
			"mail list --unread": "letter 3,letter 2,letter 1",
		} {
			var page fetchedPage
			c.do(t, line, &page)
			var got []string
			for _, m := range page.Messages {
				got = append(got, m.Subject)
			}
			if strings.Join(got, ",") != want || page.UIDValidity == 0 || page.UIDNext != 4 || page.HasMore != strings.Contains(line, "--limit 1") && page.HasMore != strings.Contains(line, "--limit 2") {
				found = wrong(found, "%s: %q, UIDVALIDITY %d, next UID %d, more %t", line, got, page.UIDValidity, page.UIDNext, page.HasMore)
			}
		}
		if got := flags(t, s, "ann"); !slices.Equal(got, []string{"", "", ""}) {
			found = wrong(found, "the flags are %q", got)
		}
		return found
	}, reading(func(m commands.Mailboxes) commands.Mailboxes { return marking{Mailboxes: m} }))
}

// Test004_7_2 marks some of the messages, in each way to name them, and one that is
// not there with others, which marks none.
func Test004_7_2_MarkReadSetsSeenOnTheNamedUIDsOnly(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		c, s := on(t, alter)
		if a := c.run("mail mark-read --folder INBOX --uid 1,99"); a.Error.Code != "NOT_FOUND" {
			found = wrong(found, "with a UID that does not exist: %s", a.raw)
		}
		if got := flags(t, s, "ann"); !slices.Equal(got, []string{"", "", ""}) {
			found = wrong(found, "after a refusal the flags are %q", got)
		}
		for _, line := range []string{"mail mark-read --folder INBOX --uid 1", "mail mark-read --folder INBOX --uid 1"} {
			if a := c.run(line); !a.Success || !strings.Contains(string(a.raw), `\\Seen`) {
				found = wrong(found, "%s: %s", line, a.raw)
			}
		}
		if got := flags(t, s, "ann"); !slices.Equal(got, []string{"S", "", ""}) {
			found = wrong(found, "the flags are %q", got)
		}
		return found
	}, reading(func(m commands.Mailboxes) commands.Mailboxes { return marking{m, 3} }))
}

// miscounting are mailboxes whose folders have one message more.
type miscounting struct{ commands.Mailboxes }

func (m miscounting) Folders(ctx context.Context, account string, q mailbox.FolderQuery) (*mailbox.FolderList, error) {
	l, err := m.Mailboxes.Folders(ctx, account, q)
	if err == nil {
		i := slices.IndexFunc(l.Folders, func(f mailbox.Folder) bool { return f.Counts != nil })
		l.Folders[i].Counts.Messages++
	}
	return l, err
}

// Test004_7_3 compares every folder with what lies on the server's disk.
func Test004_7_3_FoldersAreAllAndCountedRightly(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		c, s := on(t, alter)
		s.Deliver(t, "ann", "Été/sous", []byte("Subject: x\r\n\r\nx\r\n"), []byte("Subject: y\r\n\r\ny\r\n"))
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
		for _, f := range s.Files(t, "ann") {
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
				found = wrong(found, "%+v, and on the disk %v", f, n)
			}
		}
		if len(want) > 0 {
			found = wrong(found, "not listed: %v", want)
		}
		return found
	}, reading(func(m commands.Mailboxes) commands.Mailboxes { return miscounting{m} }))
}

// remembering are mailboxes that tell how it was the first time.
type remembering struct {
	commands.Mailboxes
	first *mail.Verification
}

func (m *remembering) Verify(ctx context.Context, account string) (*mail.Verification, error) {
	var err error
	if m.first == nil {
		m.first, err = m.Mailboxes.Verify(ctx, account)
	}
	return m.first, err
}

// Test004_7_4 asks while the server is there, after it has gone, and after it has
// come back, without and with a connection that was used in between.
func Test004_7_4_StatusIsThatOfNow(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"imap", "pop3"} {
		t.Run(protocol, func(t *testing.T) {
			s := servertest.Dovecot(t, servertest.Config{})
			holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
				target := s.IMAPSAddr()
				if protocol == "pop3" {
					target = s.POP3SAddr()
				}
				p := newTap(t, s, target)
				c := carry(t, p, p.options(t, s, protocol, "ann"), alter)
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
						found = wrong(found, "round %d: it is there, and status says %+v", round, v)
					}
					said := len(strings.Join(p.reset(), ""))
					if v := status(); !v.OK || len(strings.Join(p.reset(), "")) == 0 {
						found = wrong(found, "round %d: nobody asked the server (%d bytes before)", round, said)
					}
					p.dead(true)
					if v := status(); v.OK || v.Status != "failed" || len(v.Issues) == 0 || v.Issues[0].Code != "CONNECTION_FAILED" {
						found = wrong(found, "round %d: it is gone, and status says %+v", round, v)
					}
					p.dead(false)
				}
				if v := status(); !v.OK {
					found = wrong(found, "it is back, and status says %+v", v)
				}
				return found
			}, reading(func(m commands.Mailboxes) commands.Mailboxes { return &remembering{Mailboxes: m} }))
		})
	}
}

// Test004_7_5 has the helper count its runs: one, before anybody asks for anything,
// and no other whatever happens to the connection.
func Test004_7_5_TheHelperRunsOnceAtTheStart(t *testing.T) {
	t.Parallel()
	s := servertest.Dovecot(t, servertest.Config{})
	count := filepath.Join(t.TempDir(), "count")
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		_ = os.Remove(count)
		p := newTap(t, s, s.IMAPSAddr())
		o := p.options(t, s, "imap", "ann")
		o.Helper = script(t, fmt.Sprintf("echo x >>%s; echo %s", count, servertest.Password))
		c := carry(t, p, o, alter)
		if e := c.made.Helper.Failed(t.Context()); e != nil {
			t.Fatal(e)
		}
		runs := func() int {
			b, _ := os.ReadFile(count)
			return strings.Count(string(b), "x")
		}
		if n := runs(); n != 1 || p.connections() != 0 {
			found = wrong(found, "before the first command the helper ran %d times, and there were %d connections", n, p.connections())
		}
		for range 3 {
			if a := c.run("mail list"); !a.Success {
				found = wrong(found, "%s", a.raw)
			}
			p.sever()
			c.run("mail verify")
		}
		if n := runs(); n != 1 {
			found = wrong(found, "the helper ran %d times", n)
		}
		return found
	}, func(tr *house.Transport) {
		// One that asks again when the first login is needed.
		tr.Credentials = login.New(login.Options{Directory: tr.Store, Environ: os.Environ()})
	})
}

// ownTests are the test functions of the files that test the profile.
func ownTests(t testing.TB) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob("transport*_test.go")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	all := map[string]*ast.FuncDecl{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				all[fn.Name.Name] = fn
			}
		}
	}
	return all
}

// unproved names the clauses without a test that is shown to fail: one that runs its
// check on a broken build.
func unproved(tests map[string]*ast.FuncDecl) (missing []string) {
	var clauses []string
	for i := range 8 {
		clauses = append(clauses, fmt.Sprintf("Test004_INV_GLOBAL_%02d_", i+1))
	}
	for i := range 5 { // 6 to 8 are about the tests themselves, and break those
		clauses = append(clauses, fmt.Sprintf("Test004_7_%d_", i+1))
	}
	for _, clause := range clauses {
		shown := false
		for name, fn := range tests {
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok {
					id, named := call.Fun.(*ast.Ident)
					shown = shown || strings.HasPrefix(name, clause) && named && id.Name == "holds" && len(call.Args) == 3
				}
				return true
			})
		}
		if !shown {
			missing = append(missing, clause)
		}
	}
	return missing
}

func Test004_7_6_EveryInvariantHasATestThatFailsWhenItIsBroken(t *testing.T) {
	t.Parallel()
	tests := ownTests(t)
	for _, clause := range unproved(tests) {
		t.Errorf("no test of %s is shown to fail", clause)
	}
	for name := range tests {
		if strings.HasPrefix(name, "Test004_INV_GLOBAL_03") {
			delete(tests, name)
		}
	}
	if got := unproved(tests); len(got) != 1 {
		t.Errorf("a missing test is not noticed: %v", got)
	}
}

// Test004_7_7 runs the program as a process, has it succeed and fail, and looks at
// everything it wrote anywhere but in its answers.
func Test004_7_7_NoCredentialOrBodyInAnyLog(t *testing.T) {
	t.Parallel()
	s := servertest.Dovecot(t, servertest.Config{})
	s.Deliver(t, "ann", "INBOX", []byte("From: bob@example.org\r\nSubject: one\r\n\r\n"+bodyCanary+"\r\n"))
	const canary = "c4n4ry-p4ssw0rd"
	proxy := servertest.NewProxy(t, s.IMAPSAddr(), servertest.ProxyOptions{})
	p := &tap{port: proxy.Port}
	home := newHomeless(t)
	for _, helper := range []string{"echo " + servertest.Password, "printf %s%s " + canary[:6] + " " + canary[6:], script(t, "echo "+canary+"; echo "+canary+" >&2; exit 1")} {
		o := p.options(t, s, "imap", "ann")
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

var traced = regexp.MustCompile(`\ATest004_([2-7]|INV_GLOBAL_0[1-8])_[A-Za-z0-9_]+\z`)

func Test004_7_8_EveryTestNamesItsClause(t *testing.T) {
	t.Parallel()
	for name := range ownTests(t) {
		if !traced.MatchString(name) {
			t.Errorf("%s names no clause of 004", name)
		}
	}
	for _, name := range []string{"TestSomething", "Test004_INV_GLOBAL_09_X", "Test004", "Test001_4_X"} {
		if traced.MatchString(name) {
			t.Errorf("%s would pass", name)
		}
	}
}

// patience bounds what a test waits for that should come at once.
const patience = time.Minute
