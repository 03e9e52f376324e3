package mailbox_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// writable lets the account be changed.
func writable(a *mail.Account) { a.Mode = mail.ReadWrite }

// onWriters runs a test on servers that take changes in different ways, at the same time.
func onWriters(t *testing.T, test func(t *testing.T, e mailtest.Endpoint)) {
	t.Helper()
	t.Parallel()
	_, full := mailtest.Shared(t, servertest.Config{})
	_, noMove := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"MOVE"}})
	noMove.Name = "dovecot without MOVE"
	on(t, []mailtest.Endpoint{full, noMove, mailtest.SharedCourier(t), mailtest.InMemory(t)}, test)
}

func (b *box) refs(folder string, uids ...uint32) []mail.Ref {
	var refs []mail.Ref
	for _, u := range uids {
		refs = append(refs, b.Ref(folder, u))
	}
	return refs
}

// subjects lists a folder behind the program's back.
func (b *box) subjects(folder string) []string {
	b.T.Helper()
	data, err := b.Admin.Select(b.In(folder), &imap.SelectOptions{ReadOnly: true}).Wait()
	must(b.T, err)
	out := []string{}
	if data.NumMessages > 0 {
		var set imap.SeqSet
		set.AddRange(1, data.NumMessages)
		messages, err := b.Admin.Fetch(set, &imap.FetchOptions{Envelope: true, Flags: true}).Collect()
		must(b.T, err)
		for _, m := range messages {
			var flags []string
			for _, f := range m.Flags {
				if !strings.EqualFold(string(f), `\Recent`) {
					flags = append(flags, strings.ToLower(string(f)))
				}
			}
			slices.Sort(flags)
			out = append(out, strings.TrimSpace(m.Envelope.Subject+" "+strings.Join(flags, " ")))
		}
	}
	if b.Admin.Unselect().Wait() != nil { // not every server knows it
		if err := b.Admin.UnselectAndExpunge().Wait(); err != nil { // CLOSE, which expunges nothing after EXAMINE
			b.T.Fatal(err)
		}
	}
	return out
}

func (b *box) want(folder string, want ...string) {
	b.T.Helper()
	if got := b.subjects(folder); !slices.Equal(got, want) {
		b.T.Errorf("%s holds %q, want %q", folder, got, want)
	}
}

func (b *box) folder(name string) {
	b.T.Helper()
	must(b.T, b.Again(func() error { return b.Admin.Create(b.In(name), nil).Wait() }))
}

func Test001_7_FlagsAreAddedAndRemoved(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "flags", writable)
		u := b.Add("INBOX", letter{Subject: "a", Flags: []imap.Flag{imap.FlagAnswered}}, letter{Subject: "b"}, letter{Subject: "c"})
		c, err := b.SetFlags(t.Context(), account, b.refs("INBOX", u[0], u[1], u[0]), []string{`\flagged`, "project-x"}, []string{`\Answered`})
		if err != nil || len(c.Messages) != 2 || len(c.Issues) != 0 || c.Attempted != 4 || c.Succeeded != 4 {
			t.Fatalf("%+v %v", c, err)
		}
		for _, m := range c.Messages {
			if !m.Added || !m.Removed || len(m.Flags) != 2 || !slices.Contains(m.Flags, `\Flagged`) || m.Ref.UIDValidity == 0 {
				t.Errorf("%+v", m)
			}
		}
		b.want("INBOX", `a \flagged project-x`, `b \flagged project-x`, "c")
		c, err = b.SetFlags(t.Context(), account, b.refs("INBOX", u[1], 999), nil, []string{"project-x"})
		if err != nil || len(c.Messages) != 1 || len(c.Issues) != 1 || c.Issues[0].UID != 999 || c.Issues[0].Kind != mail.KindNotFound {
			t.Errorf("%+v %v", c, err)
		}
		b.want("INBOX", `a \flagged project-x`, `b \flagged`, "c")
		mailtest.WantKind(t, second(b.SetFlags(t.Context(), account, b.refs("INBOX", 999), []string{"x"}, nil)), mail.KindNotFound)
	})
}

func TestFlagsThatCannotBeSet(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "noflags", writable)
	u := b.Add("INBOX", letter{Subject: "a"})
	for _, add := range []string{`\Recent`, `\recent`, `\Deleted`, `\DELETED`, "two words", "", `\`, "a(b", "x\r\ny", strings.Repeat("x", 65), "ü", "%", `a\b`} {
		mailtest.WantKind(t, second(b.SetFlags(t.Context(), account, b.refs("INBOX", u...), []string{add}, nil)), mail.KindInvalid)
	}
	if _, err := b.SetFlags(t.Context(), account, b.refs("INBOX", u...), nil, nil); err == nil {
		t.Error("no flag at all is accepted")
	}
	b.want("INBOX", "a")
}

func Test004_3_MarkReadSetsSeenAndNothingElse(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "read", writable)
		u := b.Add("INBOX", letter{Subject: "a", Flags: []imap.Flag{imap.FlagFlagged, "keep"}}, letter{Subject: "b"}, letter{Subject: "c"})
		if _, err := b.MarkRead(t.Context(), account, b.refs("INBOX", u[0], u[1], 999)); err == nil {
			t.Error("a message that is not there is marked")
		} else if e := mailtest.WantKind(t, err, mail.KindNotFound); !strings.Contains(e.Message, "999") {
			t.Errorf("it does not say which: %s", e.Message)
		}
		b.want("INBOX", `a \flagged keep`, "b", "c")
		c, err := b.MarkRead(t.Context(), account, b.refs("INBOX", u[0], u[1]))
		if err != nil || len(c.Messages) != 2 || !slices.Contains(c.Messages[1].Flags, `\Seen`) {
			t.Fatalf("%+v %v", c, err)
		}
		b.want("INBOX", `a \flagged \seen keep`, `b \seen`, "c")
		// Again, alone, in the folder that is open now, and one that has come since.
		v := b.Add("INBOX", letter{Subject: "d"})
		for _, uid := range []uint32{u[2], u[2], v[0]} {
			r := c.Messages[0].Ref
			r.UID = uid
			if c, err := b.MarkRead(t.Context(), account, []mail.Ref{r}); err != nil || len(c.Messages) != 1 || c.Messages[0].Ref != r {
				t.Errorf("UID %d: %+v %v", uid, c, err)
			}
		}
		b.want("INBOX", `a \flagged \seen keep`, `b \seen`, `c \seen`, `d \seen`)
	})
}

func Test001_8_CopyWithinAnAccount(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "copy", writable)
		b.folder("Archiv/Bücher & mehr")
		u := b.Add("INBOX", letter{Subject: "a", Flags: []imap.Flag{imap.FlagSeen}}, letter{Subject: "b"})
		c, err := b.Copy(t.Context(), account, b.refs("INBOX", u[1], u[0]), "", b.In("Archiv/Bücher & mehr"))
		if err != nil || len(c.Messages) != 2 || c.Attempted != 2 || c.Succeeded != 2 || c.Messages[0].Ref.UID != u[1] {
			t.Fatalf("%+v %v", c, err)
		}
		for _, m := range c.Messages {
			if got, err := b.Get(t.Context(), m.New, mailbox.GetQuery{}); err != nil || got.Subject != b.Read("INBOX", m.Ref.UID, mailbox.GetQuery{}).Subject {
				t.Errorf("the new id %s: %+v %v", m.New, got, err)
			}
		}
		b.want("INBOX", `a \seen`, "b")
		if got := b.subjects("Archiv/Bücher & mehr"); len(got) != 2 {
			t.Errorf("%q", got)
		}
		mailtest.WantKind(t, second(b.Copy(t.Context(), account, b.refs("INBOX", u[0]), "", b.In("Nowhere"))), mail.KindNotFound)
		mailtest.WantKind(t, second(b.Copy(t.Context(), account, b.refs("INBOX", 999), "", b.In("Archiv/Bücher & mehr"))), mail.KindNotFound)
	})
}

func Test001_8_CopyToAnotherAccountKeepsTheBytes(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	b := open(t, e, "from") // read-only: nothing of it changes
	far := open(t, mailtest.InMemory(t), "to", writable)
	to := far.Dir.Known[account]
	to.Name, to.AllowOut = "far", mail.AllowList{Enabled: true}
	b.Dir.Set(to)
	raw := []byte("From: a@example.org\r\nSubject: bytes\r\n\r\n" + strings.Repeat("\xff\xfe 8-bit\r\n.\r\n", 8_000))
	s.Deliver(t, e.User("from"), "INBOX", raw, []byte("Subject: two\r\n\r\nx\r\n"))
	c, err := b.Copy(t.Context(), account, b.refs("INBOX", 1, 2, 77), "far", "INBOX")
	if err != nil || len(c.Messages) != 2 || len(c.Issues) != 1 || c.Attempted != 4 || c.Succeeded != 4 {
		t.Fatalf("%+v %v", c, err)
	}
	got, err := b.Raw(t.Context(), c.Messages[0].New, 1_000_000)
	if err != nil || !bytes.Equal(got.Source, raw) || got.Truncated {
		t.Errorf("%+v of %d bytes: %v", got, len(raw), err)
	}
	mailtest.WantKind(t, second(b.Copy(t.Context(), account, b.refs("INBOX", 1), "far", "Nowhere")), mail.KindNotFound)
	to.Mode = mail.ReadOnly
	b.Dir.Set(to)
	mailtest.WantKind(t, second(b.Copy(t.Context(), account, b.refs("INBOX", 1), "far", "INBOX")), mail.KindReadOnly)
	if _, err = b.Copy(t.Context(), account, b.refs("INBOX", 1), "nobody", "INBOX"); err == nil {
		t.Error("copied to an account that does not exist")
	}
}

// Some servers add nothing to a folder that the session has open to read.
func Test001_8_CopyIntoAFolderThatWasJustListed(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "listed", writable)
		far := b.Dir.Known[account]
		far.Name = "far"
		b.Dir.Set(far)
		b.folder("Done")
		u := b.Add("INBOX", letter{Subject: "a"})
		must(t, second(b.List(t.Context(), "far", mailbox.ListQuery{Folder: b.In("Done")})))
		c, err := b.Copy(t.Context(), account, b.refs("INBOX", u[0]), "far", b.In("Done"))
		if err != nil || len(c.Messages) != 1 || len(c.Issues) != 0 {
			t.Errorf("%+v %v", c, err)
		}
	})
}

func Test001_9_MoveAndItsFallback(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "move", writable)
		b.folder("Done")
		u := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"}, letter{Subject: "c", Flags: []imap.Flag{imap.FlagDeleted}}, letter{Subject: "d"})
		c, err := b.Move(t.Context(), account, b.refs("INBOX", u[0], u[3], 999), b.In("Done"))
		if err != nil || len(c.Messages) != 2 || len(c.Issues) != 1 {
			t.Fatalf("%+v %v", c, err)
		}
		// What somebody else marked \Deleted stays: only the named ones are expunged.
		b.want("INBOX", "b", `c \deleted`)
		if got := b.subjects("Done"); len(got) != 2 || !strings.HasPrefix(got[0], "a") || !strings.HasPrefix(got[1], "d") {
			t.Errorf("Done holds %q", got)
		}
		if got, err := b.Get(t.Context(), c.Messages[1].New, mailbox.GetQuery{}); err != nil || got.Subject != "d" {
			t.Errorf("the new id %s: %+v %v", c.Messages[1].New, got, err)
		}
		mailtest.WantKind(t, second(b.Move(t.Context(), account, b.refs("INBOX", u[1]), b.In("Nowhere"))), mail.KindNotFound)
		mailtest.WantKind(t, second(b.Move(t.Context(), account, b.refs("INBOX", u[1]), "inbox")), mail.KindInvalid)
		b.want("INBOX", "b", `c \deleted`)
	})
}

func Test001_10_DeleteTakesOnlyWhatIsNamed(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "delete", writable)
		u := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b", Flags: []imap.Flag{imap.FlagDeleted}}, letter{Subject: "c"})
		c, err := b.Delete(t.Context(), account, b.refs("INBOX", u[0], 999))
		if err != nil || len(c.Messages) != 1 || len(c.Issues) != 1 || c.Messages[0].Ref.UID != u[0] {
			t.Fatalf("%+v %v", c, err)
		}
		b.want("INBOX", `b \deleted`, "c")
		mailtest.WantKind(t, second(b.Delete(t.Context(), account, b.refs("INBOX", u[0]))), mail.KindNotFound)
	})
}

// Without UIDPLUS there is no way to remove one message and no other, so nothing
// is removed, moved or marked.
func TestNothingIsExpungedWithoutUIDPlus(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"MOVE", "UIDPLUS"}})
	b := open(t, e, "noplus", writable)
	b.folder("Done")
	b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b", Flags: []imap.Flag{imap.FlagDeleted}})
	mailtest.WantKind(t, second(b.Move(t.Context(), account, b.refs("INBOX", 1), b.In("Done"))), mail.KindUnsupported)
	mailtest.WantKind(t, second(b.Trash(t.Context(), account, b.refs("INBOX", 1))), mail.KindUnsupported)
	mailtest.WantKind(t, second(b.Delete(t.Context(), account, b.refs("INBOX", 1))), mail.KindUnsupported)
	b.want("INBOX", "a", `b \deleted`)
	b.want("Done")
}

// Every change is refused where the account only reads, and for what cannot be
// meant.
func TestChangesThatAreRefused(t *testing.T) {
	e := dovecot(t)
	ro := open(t, e, "refused")
	u := ro.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"})
	rw := open(t, e, "refused", writable)
	for _, name := range changes {
		t.Run(name, func(t *testing.T) {
			mailtest.WantKind(t, ro.through(name, ro.Ref("INBOX", u[0])), mail.KindReadOnly)
			stale := ro.refs("INBOX", u[0], u[0])
			stale[1].UIDValidity = 1 // also where another names the same UID
			mailtest.WantKind(t, rw.through(name, stale...), mail.KindConflict)
			mailtest.WantKind(t, rw.through(name), mail.KindInvalid)
			mailtest.WantKind(t, rw.through(name, rw.Ref("INBOX", u[0]), rw.Ref("Sent", 1)), mail.KindInvalid)
			mailtest.WantKind(t, rw.through(name, rw.Ref("No such folder", 1)), mail.KindNotFound)
			many := make([]mail.Ref, mailbox.MaxBatch+1)
			for i := range many {
				many[i] = rw.Ref("INBOX", uint32(i+1))
			}
			mailtest.WantKind(t, rw.through(name, many...), mail.KindInvalid)
		})
	}
	rw.want("INBOX", "a", "b")
}

// A folder that was made anew while it was open holds other messages under the
// same UIDs: nothing that is done or read reaches them.
func TestNothingReachesAnotherMessage(t *testing.T) {
	e := dovecot(t)
	for _, name := range append(readers, changes...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, e, "anew-"+name, writable)
			b.folder("Box")
			u := b.Add("Box", letter{Subject: "old"})
			c, err := b.MarkRead(t.Context(), account, b.refs("Box", u[0]))
			must(t, err)
			old := c.Messages[0].Ref
			b.Admin = e.Admin(t, "anew-"+name) // somebody who has not seen the folder before
			must(t, b.Again(func() error { return b.Admin.Delete("Box").Wait() }))
			mailtest.WantKind(t, second(b.Get(t.Context(), old, mailbox.GetQuery{})), mail.KindNotFound)
			b.folder("Box")
			b.Add("Box", letter{Subject: "new"})
			for range 2 {
				if err := b.through(name, old); err == nil {
					t.Error("it reached a message that is gone")
				}
			}
			mailtest.WantKind(t, second(b.Get(t.Context(), old, mailbox.GetQuery{})), mail.KindConflict)
			if p := b.list(mailbox.ListQuery{Folder: "Box"}); !slices.Equal(subjects(p), []string{"new"}) || p.UIDValidity == old.UIDValidity {
				t.Errorf("%+v", p)
			}
			// The connection that saw the folder go is in no state to tell.
			open(t, e, "anew-"+name).want("Box", "new")
		})
	}
}

// Changes of one account share its connections and lose nothing, whatever else is
// going on.
func TestAHundredInFlight(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	proxy := servertest.NewProxy(t, s.IMAPAddr(), servertest.ProxyOptions{})
	b := open(t, e, "hundred", writable, func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
	u := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if m, err := b.Get(t.Context(), b.Ref("INBOX", u[1]), mailbox.GetQuery{}); err != nil || m.Subject != "b" {
				t.Errorf("get: %v", err)
			}
		})
		if i%2 == 0 {
			wg.Go(func() {
				if p, err := b.List(t.Context(), account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 2 {
					t.Errorf("list: %v", err)
				}
			})
		}
		flag := fmt.Sprintf("n%d", i)
		wg.Go(func() {
			if c, err := b.SetFlags(t.Context(), account, b.refs("INBOX", u[0]), []string{flag}, nil); err != nil || !slices.Contains(c.Messages[0].Flags, flag) {
				t.Errorf("%s: %+v %v", flag, c, err)
			}
		})
	}
	wg.Wait()
	if n := proxy.Stats().Connections; n > 4 {
		t.Errorf("%d connections", n)
	}
	if got := strings.Fields(b.subjects("INBOX")[0]); len(got) != 41 {
		t.Errorf("%d flags: %q", len(got)-1, got)
	}
}

// What the server did not say of flags is not made up.
func TestFlagsAreThoseTheServerTold(t *testing.T) {
	k := serveFake(t, "UIDPLUS", map[string][][2]string{"UID FETCH": {{"* 1 FETCH (UID 5 FLAGS (\\Flagged))\r\n", ""}, {"", "NO not now"}}})
	c, err := k.SetFlags(t.Context(), account, kept(5), []string{"x"}, nil) // a plain OK to the STORE
	if err != nil || !c.Messages[0].Added || c.Messages[0].Flags != nil {
		t.Errorf("%+v %v", c, err)
	}
}

// Courier can be set to send what is put into a folder, and names it. Nothing is put
// there: what leaves goes through the outbox.
func TestNothingIsPutIntoAFolderThatIsSent(t *testing.T) {
	k := serveFake(t, "UIDPLUS MOVE XCOURIEROUTBOX=INBOX.Outbox", map[string][][2]string{"UID FETCH": {{"* 1 FETCH (UID 5 FLAGS ())\r\n", ""}}})
	for _, folder := range []string{"INBOX.Outbox", "inbox.outbox"} {
		mailtest.WantKind(t, second(k.Copy(t.Context(), account, kept(5), account, folder)), mail.KindReadOnly)
		mailtest.WantKind(t, second(k.Move(t.Context(), account, kept(5), folder)), mail.KindReadOnly)
	}
	if k.sent("APPEND")+k.sent("UID")-k.sent("UID FETCH") > 0 {
		t.Errorf("sent %q", k.commands)
	}
	if _, err := k.Copy(t.Context(), account, kept(5), account, "INBOX.Kept"); err != nil || k.sent("UID COPY") != 1 {
		t.Errorf("another folder: %v, %q", err, k.commands)
	}
}

// A message that is read with POP3 is in no folder that could be copied from.
func TestNothingIsCopiedFromPOP3(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "from", writable)
	b.Dir.Set(mail.Account{Name: "pop", Protocol: mail.POP3, Username: "x", Auth: mail.AuthPassword, Mode: mail.ReadOnly,
		POP3: mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.Plaintext}})
	mailtest.WantKind(t, second(b.Copy(t.Context(), "pop", []mail.Ref{{Protocol: mail.POP3, Account: "pop", UIDL: "a"}}, account, "INBOX")), mail.KindUnsupported)
}

// fakeServer is a scripted server with the messages 5 and 6, which obeys as far as a
// test wants: answers has what it says to a command by its first words, each once,
// the last one for good.
type fakeServer struct {
	*mailbox.Client
	mu       sync.Mutex
	commands []string
}

func serveFake(t *testing.T, caps string, answers map[string][][2]string, change ...func(*mailbox.Options)) *fakeServer {
	t.Helper()
	k := &fakeServer{}
	k.Client = scriptedWith(t, caps, func(command string) (string, string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.commands = append(k.commands, command)
		for first, all := range answers {
			if strings.HasPrefix(command, first) {
				if len(all) > 1 {
					answers[first] = all[1:]
				}
				return all[0][0], all[0][1]
			}
		}
		if strings.HasPrefix(command, "SELECT") || strings.HasPrefix(command, "EXAMINE") {
			return "* 2 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 7] n\r\n", ""
		}
		return "", ""
	}, change...)
	return k
}

// exchanges reads what a fakeServer says, as testdata/cases/removals.txt has it.
func exchanges(list []string) map[string][][2]string {
	answers := map[string][][2]string{}
	for _, line := range list {
		command, answer, _ := strings.Cut(line, " >")
		untagged, tagged, _ := strings.Cut(strings.TrimPrefix(answer, " "), "|")
		untagged = strings.NewReplacer("THERE", flagged("", ""), "MARKED", flagged(`\DELETED`, `\Deleted`)).Replace(untagged)
		answers[command] = append(answers[command], [2]string{untagged, tagged})
	}
	return answers
}

func (k *fakeServer) sent(verb string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, c := range k.commands {
		if strings.HasPrefix(c, verb) {
			n++
		}
	}
	return n
}

// kept are the messages of a fakeServer.
func kept(uids ...uint32) []mail.Ref {
	var refs []mail.Ref
	for _, u := range uids {
		refs = append(refs, mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: u})
	}
	return refs
}

// flagged is what a FETCH or STORE tells of the messages of a fakeServer.
func flagged(five, six string) string {
	return fmt.Sprintf("* 1 FETCH (UID 5 FLAGS (%s))\r\n* 2 FETCH (UID 6 FLAGS (%s))\r\n", five, six)
}

func changedUIDs(c *mailbox.Changed) []uint32 {
	var uids []uint32
	for _, m := range c.Messages {
		uids = append(uids, m.Ref.UID)
	}
	return uids
}

// wantIssue looks for the issue of a message with these words in it, and none of
// those that begin with !.
func wantIssue(t *testing.T, c *mailbox.Changed, uid uint32, stage string, words ...string) {
	t.Helper()
	i := slices.IndexFunc(c.Issues, func(i mail.Issue) bool { return i.UID == uid })
	if i < 0 {
		t.Errorf("no issue of UID %d: %+v", uid, c)
		return
	}
	got := c.Issues[i]
	if got.Stage != stage || got.MessageID == "" {
		t.Errorf("%+v", got)
	}
	for _, w := range words {
		if no, ok := strings.CutPrefix(w, "!"); strings.Contains(got.Message, strings.TrimPrefix(w, "!")) == ok {
			t.Errorf("%q: want %q in it is %v", got.Message, no, !ok)
		}
	}
}

// A server that refuses or lies in the middle of a change: what has happened is told,
// and nothing is removed that was not confirmed to be elsewhere.
func TestChangesOnAHostileServer(t *testing.T) {
	move := func(k *fakeServer) (*mailbox.Changed, error) { return k.Move(t.Context(), account, kept(5), "Done") }
	del := func(k *fakeServer) (*mailbox.Changed, error) { return k.Delete(t.Context(), account, kept(5)) }
	trash := func(k *fakeServer) (*mailbox.Changed, error) { return k.Trash(t.Context(), account, kept(5)) }
	both := func(k *fakeServer) (*mailbox.Changed, error) {
		_, err := move(k)
		_, other := del(k)
		if told(nil, err)[len("mail move"):] != told(nil, other)[len("mail delete"):] {
			t.Errorf("move: %v, delete: %v", err, other)
		}
		return nil, err
	}
	answer := func(untagged, tagged string) [][2]string { return [][2]string{{untagged, tagged}} }
	for name, tc := range map[string]struct {
		caps    string
		answers map[string][][2]string // by the command's first words
		do      func(k *fakeServer) (*mailbox.Changed, error)
		kind    mail.Kind // empty: no error
		done    []uint32
		issues  int
		unsent  []string
	}{
		"COPY refused":                  {"UIDPLUS", map[string][][2]string{"UID COPY": answer("", "NO [OVERQUOTA] full")}, move, mail.KindRefused, nil, 0, []string{"UID STORE", "UID EXPUNGE"}},
		"COPY without COPYUID":          {"UIDPLUS", nil, move, "", nil, 1, []string{"UID STORE", "UID EXPUNGE"}},
		"trash without COPYUID":         {"UIDPLUS", map[string][][2]string{"LIST": answer("* LIST () \".\" Trash\r\n", "")}, trash, "", nil, 1, []string{"UID STORE", "UID EXPUNGE"}},
		"COPYUID of another message":    {"UIDPLUS", map[string][][2]string{"UID COPY": answer("", "OK [COPYUID 9 77 1] done")}, move, "", nil, 1, []string{"UID STORE"}},
		"STORE refused":                 {"UIDPLUS", map[string][][2]string{"UID COPY": answer("", "OK [COPYUID 9 5 1] done"), "UID STORE": answer("", "NO no")}, move, "", []uint32{5}, 1, []string{"UID EXPUNGE"}},
		"wrong tag":                     {"MOVE", map[string][][2]string{"UID MOVE": answer("Z9 OK done\r\n", "OK done")}, move, mail.KindConnection, nil, 0, nil},
		"a message that vanishes":       {"MOVE UIDPLUS", map[string][][2]string{"UID FETCH": answer("", "OK")}, both, mail.KindNotFound, nil, 0, []string{"UID MOVE", "UID STORE"}},
		"another UIDVALIDITY at SELECT": {"MOVE UIDPLUS", map[string][][2]string{"SELECT": answer(strings.Replace(oneMessage, "VALIDITY 7", "VALIDITY 8", 1), "OK")}, both, mail.KindConflict, nil, 0, []string{"UID MOVE", "UID STORE"}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string][][2]string{"UID FETCH": answer("* 1 FETCH (UID 5 FLAGS ())\r\n", "")}
			maps.Copy(answers, tc.answers)
			k := serveFake(t, tc.caps, answers)
			c, err := tc.do(k)
			if tc.kind != "" {
				mailtest.WantKind(t, err, tc.kind)
			} else if err != nil || !slices.Equal(changedUIDs(c), tc.done) || len(c.Issues) != tc.issues {
				t.Errorf("%+v %v", c, err)
			}
			for _, verb := range append(tc.unsent, "EXPUNGE", "CLOSE") {
				if k.sent(verb) > 0 {
					t.Errorf("it sent %s: %q", verb, k.commands)
				}
			}
		})
	}
}

// A server says OK to a STORE and leaves flags as they were where a right is
// missing. What it tells of them counts.
func TestFlagsThatTheServerDoesNotSet(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Add, Remove, Done, Issue string
		Stored                   []string
	}](t, "testdata/cases/flags_not_set.txt") {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			var stored [][2]string
			for _, s := range tc.Stored {
				stored = append(stored, [2]string{s, ""})
			}
			k := serveFake(t, "UIDPLUS", map[string][][2]string{"UID FETCH": {{flagged("", ""), ""}, {flagged("", "x"), ""}}, "UID STORE": stored})
			do := func() (*mailbox.Changed, error) {
				return k.SetFlags(t.Context(), account, kept(5, 6), strings.Fields(tc.Add), strings.Fields(tc.Remove))
			}
			if tc.Add == `\Seen` {
				do = func() (*mailbox.Changed, error) { return k.MarkRead(t.Context(), account, kept(5, 6)) }
			}
			c, err := do()
			if err != nil || strings.Trim(fmt.Sprint(changedUIDs(c)), "[]") != tc.Done {
				t.Fatalf("%+v %v", c, err)
			}
			if m := c.Messages[0]; tc.Add != "" && tc.Remove != "" && (m.Added || !m.Removed || c.Attempted != 4 || c.Succeeded != 3) {
				t.Errorf("%+v", c)
			}
			wantIssue(t, c, 5, "store", tc.Issue, "may not allow it")
		})
	}
}

// A server that says OK and removes nothing has deleted and moved nothing.
func TestWhatIsNotRemovedIsNotReportedAsGone(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, Done        string
		Steps             int
		Stage, Words      string
		Fetches, Expunges int
		Exchanges         []string
	}](t, "testdata/cases/removals.txt") {
		for _, move := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, move %v", tc.Name, move), func(t *testing.T) {
				answers := exchanges(tc.Exchanges)
				answers["UID COPY"] = [][2]string{{"", "OK [COPYUID 9 5:6 1:2] done"}}
				k := serveFake(t, "UIDPLUS", answers)
				var c *mailbox.Changed
				var err error
				done, words, steps := tc.Done, strings.Split(tc.Words, "|"), tc.Steps
				if move {
					// The copies are told of in any case.
					c, err = k.Move(t.Context(), account, kept(5, 6), "Done")
					done, words, steps = "5 6", append(words, "was copied", "still where it was"), steps+2
				} else {
					c, err = k.Delete(t.Context(), account, kept(5, 6))
					words = append(words, "still there")
				}
				if err != nil || strings.Trim(fmt.Sprint(changedUIDs(c)), "[]") != done || c.Succeeded != steps {
					t.Fatalf("%+v %v", c, err)
				}
				if tc.Stage != "" {
					wantIssue(t, c, 5, tc.Stage, words...)
				} else if len(c.Issues) != 0 {
					t.Errorf("%+v", c)
				}
				if k.sent("UID FETCH") != tc.Fetches || k.sent("UID EXPUNGE") != tc.Expunges {
					t.Errorf("%q", k.commands)
				}
			})
		}
	}
}

// Where the answer does not come, nobody knows what was removed.
func TestARemovalThatIsNotAnsweredIsNotKnown(t *testing.T) {
	for _, at := range []string{"UID STORE", "UID EXPUNGE"} {
		for _, how := range []string{"late", "cut"} {
			for _, move := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, move %v", at, how, move), func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					m := scriptedWith(t, "UIDPLUS", func(command string) (string, string) {
						switch {
						case strings.HasPrefix(command, "SELECT"):
							return oneMessage, ""
						case strings.HasPrefix(command, "UID FETCH"):
							return "* 1 FETCH (UID 5 FLAGS ())\r\n", ""
						case strings.HasPrefix(command, "UID COPY"):
							return "", "OK [COPYUID 9 5 1] done"
						case strings.HasPrefix(command, at) && how == "cut":
							return "* BYE\r\n", "gone"
						case strings.HasPrefix(command, at): // obeyed, and answered late
							cancel()
							time.Sleep(50 * time.Millisecond)
						}
						return "", ""
					})
					var c *mailbox.Changed
					var err error
					words := []string{"not known", `may be marked \Deleted`}
					if move {
						c, err = m.Move(ctx, account, kept(5), "Done")
						words = append(words, "was copied", "!and is also still")
					} else {
						c, err = m.Delete(ctx, account, kept(5))
						words = append(words, "!was not deleted", "!still there")
					}
					if err != nil || len(c.Messages) != 0 != move || len(c.Issues) != 1 || c.Issues[0].Retryable || c.Issues[0].Kind == mail.KindNotFound {
						t.Fatalf("%+v %v", c, err)
					}
					wantIssue(t, c, 5, strings.ToLower(strings.TrimPrefix(at, "UID ")), words...)
				})
			}
		}
	}
}

// A MOVE that was refused when a part of it was done is told message by message.
func TestAMoveThatWasDoneInPart(t *testing.T) {
	part := [2]string{"* OK [COPYUID 9 5 1] moved\r\n* 1 EXPUNGE\r\n", "NO [OVERQUOTA] full"}
	there := [2]string{flagged("", ""), ""}
	k := serveFake(t, "MOVE UIDPLUS", map[string][][2]string{"UID FETCH": {there, {"* 1 FETCH (UID 6 FLAGS ())\r\n", ""}}, "UID MOVE": {part}})
	c, err := k.Move(t.Context(), account, kept(5, 6), "Done")
	if err != nil || len(c.Messages) != 0 || len(c.Issues) != 2 || c.Issues[0].Retryable {
		t.Fatalf("%+v %v", c, err)
	}
	wantIssue(t, c, 5, "move", "gone from its folder", "may be at the new place", "full", "!still")
	wantIssue(t, c, 6, "move", "still where it was", "full", "!gone")

	k = serveFake(t, "MOVE UIDPLUS", map[string][][2]string{"UID FETCH": {there}, "UID MOVE": {{"", "NO [OVERQUOTA] full"}}})
	_, err = k.Move(t.Context(), account, kept(5, 6), "Done")
	if e := mailtest.WantKind(t, err, mail.KindRefused); strings.Contains(e.Message, "not known") || k.sent("UID FETCH") != 2 {
		t.Errorf("nothing was moved: %+v %q", e, k.commands)
	}

	k = serveFake(t, "MOVE UIDPLUS", map[string][][2]string{"UID FETCH": {there, {"", "NO no"}}, "UID MOVE": {part}})
	_, err = k.Move(t.Context(), account, kept(5, 6), "Done")
	if e := mailtest.WantKind(t, err, mail.KindRefused); e.Retryable || !strings.Contains(e.Message, "full") || !strings.Contains(e.Message, "not known") {
		t.Errorf("nobody can tell: %+v", e)
	}
}

// A real server minds the rights of a folder, and says OK.
func TestRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{ACL: true, HideCapabilities: []string{"MOVE"}})
	for _, missing := range []string{"t", "e"} { // to mark \Deleted, to expunge; and w, to flag
		t.Run(missing, func(t *testing.T) {
			user := "acl" + missing
			b := open(t, e, user, writable)
			b.folder("Box")
			u := b.Add("Box", letter{Subject: "a"}, letter{Subject: "b"})
			s.Rights(t, e.User(user), "Box", strings.ReplaceAll("lrstipkxea", missing, ""))
			c, err := b.Delete(t.Context(), account, b.refs("Box", u[0]))
			if err != nil || len(c.Messages) != 0 {
				t.Fatalf("%+v %v", c, err)
			}
			wantIssue(t, c, u[0], "expunge", "still there", "may not allow it")
			c, err = b.Move(t.Context(), account, b.refs("Box", u[1]), "Archive")
			must(t, err)
			wantIssue(t, c, u[1], "expunge", "was copied", "still where it was", "may not allow it")
			c, err = b.SetFlags(t.Context(), account, b.refs("Box", u...), []string{"x"}, nil)
			if err != nil || len(c.Messages) != 0 || len(c.Issues) != 2 {
				t.Fatalf("%+v %v", c, err)
			}
			wantIssue(t, c, u[0], "store", "did not set x", "may not allow it")
			if got := b.subjects("Box"); len(got) != 2 {
				t.Errorf("Box holds %q", got)
			}
			if got := b.subjects("Archive"); len(got) != 1 {
				t.Errorf("Archive holds %q", got)
			}
		})
	}
}

// A copy or move whose answer is lost may have happened: nobody is told that it is
// safe to try again.
func TestALostAnswerIsNotSafeToRepeat(t *testing.T) {
	for verb, do := range map[string]func(k *fakeServer) error{
		"UID COPY": func(k *fakeServer) error { return second(k.Copy(t.Context(), account, kept(5), "", "Done")) },
		"UID MOVE": func(k *fakeServer) error { return second(k.Move(t.Context(), account, kept(5), "Done")) },
	} {
		t.Run(verb, func(t *testing.T) {
			opened := [][2]string{{oneMessage, ""}}
			k := serveFake(t, "MOVE UIDPLUS", map[string][][2]string{"EXAMINE": opened, "UID FETCH": {{"* 1 FETCH (UID 5 FLAGS ())\r\n", ""}},
				verb: {{"* BYE\r\n", "gone"}}}) // no answer to the command itself
			if e := mailtest.WantKind(t, do(k), mail.KindConnection); e.Retryable || !strings.Contains(e.Message, "not known") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A message that a COPYUID leaves out is not reported as moved.
func TestWhatACopyUIDLeavesOutIsAnIssue(t *testing.T) {
	k := serveFake(t, "MOVE UIDPLUS", map[string][][2]string{"UID FETCH": {{flagged("", ""), ""}}, "UID MOVE": {{"* OK [COPYUID 9 5 1] moved\r\n", ""}}})
	c, err := k.Move(t.Context(), account, kept(5, 6), "Done")
	if err != nil || len(c.Messages) != 1 || c.Messages[0].New.UID != 1 || c.Succeeded != 1 || len(c.Issues) != 1 || c.Issues[0].UID != 6 {
		t.Errorf("%+v %v", c, err)
	}
}
