package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/vault"
)

// journal is a vault's, for changes of one principal.
type journal struct {
	*vault.Vault
	t            testing.TB
	begin, amend error // what it fails with
	unasked      int   // of the last change
}

func newJournal(t testing.TB) *journal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postern.db")
	var k vault.Keys
	for _, s := range []*mail.Secret{&k.Admin, &k.Agent} {
		text, err := vault.NewKey()
		must(t, err)
		*s = mail.NewSecret([]byte(text))
	}
	must(t, second(vault.Init(t.Context(), path, k)))
	v, err := vault.Open(t.Context(), path, vault.Keys{Agent: k.Agent}, nil)
	must(t, err)
	return &journal{Vault: v, t: t}
}

func (j *journal) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	if c.Principal, j.unasked = "agent", unasked; j.begin != nil {
		return j.begin
	}
	return j.Vault.BeginChange(ctx, c, unasked)
}

func (j *journal) AmendChange(ctx context.Context, id string, amend func(*mail.Change) error) (mail.Change, error) {
	if j.amend != nil {
		return mail.Change{}, j.amend
	}
	return j.Vault.AmendChange(ctx, id, amend)
}

// last is the newest change, where there are n, and what it says in a line: what was asked, and
// of each message its Message-ID, its flags before, and what became of it.
func (j *journal) last(n int) (c mail.Change, line string) {
	j.t.Helper()
	all, err := j.ChangesMade(j.t.Context(), mail.ChangeQuery{})
	if err != nil || len(all) != n {
		j.t.Fatalf("%d changes, want %d: %v", len(all), n, err)
	}
	if n == 0 {
		return c, ""
	}
	c = all[0]
	words := []string{string(c.Kind), c.Account, c.Folder}
	if c.To != "" {
		words = append(words, "to "+c.To)
	}
	words = append(words, fmt.Sprintf("+%v -%v:", c.Add, c.Remove))
	for _, m := range c.Messages {
		id, _, _ := strings.Cut(m.MessageID, "@")
		slices.Sort(m.Flags)
		words = append(words, fmt.Sprint(id, m.Flags))
		if m.Done {
			words = append(words, "done")
		}
		if m.New != 0 {
			words = append(words, "new")
		}
	}
	if c.Ended.IsZero() {
		words = append(words, "not ended")
	}
	return c, strings.Join(words, " ")
}

// recorded is a mailbox whose changes are in a journal, with messages a and b in INBOX.
func recorded(t *testing.T, e mailtest.Endpoint, user string, change ...func(*mail.Account)) (*box, *journal) {
	t.Helper()
	b, j := open(t, e, user, append([]func(*mail.Account){writable}, change...)...), newJournal(t)
	b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, Journal: j})
	t.Cleanup(func() { _ = b.Close() })
	far := b.Dir.Known[account]
	far.Name = "far"
	b.Dir.Set(far)
	b.folders("Archive", "Drafts", "Sent", "Trash")
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	b.Add("INBOX", letter{Subject: "a", Extra: "Message-ID: <a@x>\r\n", Received: at}, letter{Subject: "b", Extra: "Message-ID: <b@x>\r\n", Received: at, Flags: []imap.Flag{imap.FlagFlagged}})
	return b, j
}

// What the journal says after each command that changes something: what there was before, and
// where a message is now.
func TestTheJournalHasEveryChange(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b, j := recorded(t, e, "journal")
		do := func(d mail.Doing, to string, uids ...uint32) func() (string, error) {
			return func() (string, error) {
				c, err := b.Do(t.Context(), mailbox.Batch{Op: "x", Account: account, Refs: b.refs("INBOX", uids...), Action: mail.Action{Do: d, To: to, Add: []string{"k"}, Remove: []string{`\flagged`}}, Of: "plan", Approved: true})
				if err != nil {
					return "", err
				}
				return c.Change, nil
			}
		}
		var draft *mailbox.Placed
		file := func(role, id string) func() (string, error) {
			return func() (string, error) {
				p, err := b.File(t.Context(), "x", account, &mailbox.OwnMessage{Role: role, Flags: []string{`\Draft`}, Date: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Once: "<" + id + "@x>", Source: []byte("Message-ID: <" + id + "@x>\r\n\r\nx\r\n")})
				if err != nil {
					return "", err
				}
				if draft == nil {
					draft = p
				}
				return p.Change, nil
			}
		}
		for i, row := range []struct {
			do   func() (string, error)
			want string
		}{
			{do(mail.DoMarkRead, "", 2, 1, 999), `flags ann INBOX +[\Seen] -[]: b[\Flagged] done a[] done`},
			{do(mail.DoFlags, "", 1, 2), `flags ann INBOX +[k] -[\Flagged]: a[\Seen] done b[\Flagged \Seen] done`},
			{do(mail.DoCopy, b.In("Archive"), 2), `copy ann INBOX to Archive +[] -[]: b[\Seen k] done new`},
			{func() (string, error) {
				c, err := b.Copy(t.Context(), account, b.refs("INBOX", 1, 999), "far", b.In("Archive"))
				if err != nil {
					return "", err
				}
				return c.Change, nil
			}, `copy far INBOX to Archive +[] -[]: a[\Seen k] done new`},
			{do(mail.DoTrash, "", 1, 999), `move ann INBOX to Trash +[] -[]: a[\Seen k] done new`},
			{do(mail.DoArchive, "", 2), `move ann INBOX to Archive +[] -[]: b[\Seen k] done new`},
			{file("drafts", "d"), `append ann Drafts +[] -[]: d[\Draft] done`},
			{func() (string, error) {
				if issue := b.ReplaceDraft(t.Context(), "x", draft.Ref, draft.Change); issue != nil {
					t.Errorf("%+v", issue)
				}
				return "", nil
			}, `move ann Drafts to Trash +[] -[]: d[\Draft] done new`},
			{file("sent", "s"), `append ann Sent +[] -[]: s[\Draft] done`},
		} {
			id, err := row.do()
			must(t, err)
			c, got := j.last(i + 1)
			if got = strings.ReplaceAll(got, b.Root, ""); got != row.want || id != c.ID && id != "" {
				t.Errorf("change %q says\n%s, want\n%s", id, got, row.want)
			}
			m := c.Messages[0]
			if c.Mailbox == "" || c.UIDValidity == 0 || m.UID == 0 || m.Size == 0 || !m.Arrived.Equal(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)) || c.Approved != (c.Of == "plan") || !c.Approved && c.Kind == mail.ChangeMove && c.Of != draft.Change ||
				c.Sent != (c.Folder == b.In("Sent")) || (c.FromAccount == account) != (c.Account == "far") {
				t.Errorf("%+v", c)
			}
			if m.New == 0 {
				continue
			}
			if got, err := b.Get(t.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: c.To, UIDValidity: c.ToValidity, UID: m.New}, mailbox.GetQuery{}); err != nil || got.InternetMessageID != m.MessageID || c.ToValidity == 0 {
				t.Errorf("at the new place of %+v: %+v, %v", c, got, err)
			}
		}
		// What changes nothing, and deletion for good, are not in it.
		must(t, second(file("sent", "s")()))
		must(t, second(b.Delete(t.Context(), account, b.refs("Archive", 1))))
		j.last(9)
	})
}

// What cannot be written down, and what a person has to decide about, is not done. Where only
// the outcome could not be written down it is done, and the journal knows that it may be.
func TestWhatIsNotInTheJournalIsNotDone(t *testing.T) {
	_, e := mailtest.Shared(t, servertest.Config{})
	b, j := recorded(t, e, "unkept", allowing("bob@example.org"))
	b.remembering()
	b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, Journal: j})
	defer b.Close()
	asks := 1
	for _, a := range b.Dir.Known {
		a.AskChanges = &asks
		b.Dir.Set(a)
	}
	for _, j.begin = range []error{errors.New("no room"), mail.ErrManyChanges} {
		for _, name := range append([]string{"copy away"}, changes...) {
			if name == "delete" {
				continue
			}
			err := b.through(name, b.refs("INBOX", 1, 2)...)
			if kind := map[bool]mail.Kind{true: mail.KindAsks, false: mail.KindStore}[j.begin == mail.ErrManyChanges]; !errors.Is(err, j.begin) || j.unasked != asks {
				t.Errorf("%s: %v, with the bound %d", name, err, j.unasked)
			} else {
				mailtest.WantKind(t, err, kind)
			}
		}
	}
	b.want("INBOX", "a", `b \flagged`)
	j.last(0)
	// Where the new place is not told, since it tells how much hidden mail has come, it is kept.
	j.begin, j.amend = nil, errors.New("no room")
	c, err := b.Trash(t.Context(), account, b.refs("INBOX", 1))
	if _, got := j.last(1); err != nil || c.Messages[0].New != (mail.Ref{}) || got != "move ann INBOX to Trash +[] -[]: a[] not ended" {
		t.Errorf("%+v %v: %s", c, err, got)
	}
	j.amend, asks = nil, 2
	c, err = b.Trash(t.Context(), account, b.refs("INBOX", 2))
	if _, got := j.last(2); err != nil || c.Messages[0].New != (mail.Ref{}) || got != `move ann INBOX to Trash +[] -[]: b[\Flagged] done new` {
		t.Errorf("%+v %v: %s", c, err, got)
	}
}

// Of a change that ends otherwise than it should the journal says what is certain: what is Done is,
// and without an end anything may be of the others.
func TestTheJournalSaysNoMoreThanIsCertain(t *testing.T) {
	move := func(k *fakeServer) error { return second(k.Move(t.Context(), account, kept(5, 6), "Done")) }
	copied := func(k *fakeServer) error { return second(k.Copy(t.Context(), account, kept(5, 6), "", "Done")) }
	flags := func(k *fakeServer) error {
		return second(k.SetFlags(t.Context(), account, kept(5, 6), []string{"x"}, []string{"y"}))
	}
	file := func(k *fakeServer) error {
		return second(k.File(t.Context(), "x", account, &mailbox.OwnMessage{Role: "drafts", Source: []byte("Subject: x\r\n\r\nx\r\n")}))
	}
	const cut, no, both = "* BYE\r\n|gone", "|NO [OVERQUOTA] full", "|OK [COPYUID 9 5:6 1:2] done"
	set := flagged("x y", "x y")
	for _, row := range []struct {
		name, caps string
		do         func(k *fakeServer) error
		exchanges  []string // see exchanges; of each verb the last counts for good
		want       string   // after the flags
	}{
		{"MOVE without COPYUID", "MOVE", move, nil, "5 done 6 done"},
		{"MOVE cut", "MOVE", move, []string{"UID MOVE >" + cut}, "5 6 not ended"},
		{"MOVE refused", "MOVE", move, []string{"UID MOVE >" + no, "UID FETCH >THERE"}, "5 6"},
		{"MOVE refused and done in part", "MOVE", move, []string{"UID MOVE >" + no, "UID FETCH >THERE", "UID FETCH >* 1 FETCH (UID 6 FLAGS ())\r\n"}, "5 6 not ended"},
		{"MOVE that leaves one out", "MOVE UIDPLUS", move, []string{"UID MOVE >* OK [COPYUID 9 5 1] moved\r\n"}, "5 done new 6 not ended"},
		{"COPY that tells nothing", "UIDPLUS", move, nil, "5 6 not ended"},
		{"copied and not marked", "UIDPLUS", move, []string{"UID COPY >" + both, "UID STORE >" + no}, "5 new 6 new"},
		{"copied and not removed", "UIDPLUS", move, []string{"UID COPY >" + both, "UID EXPUNGE >" + no}, "5 new 6 new"},
		{"copied and the rest cut", "UIDPLUS", move, []string{"UID COPY >" + both, "UID EXPUNGE >" + cut}, "5 new 6 new not ended"},
		{"copy cut", "", copied, []string{"UID COPY >" + cut}, "5 6 not ended"},
		{"copy refused", "", copied, []string{"UID COPY >" + no}, "5 6"},
		{"STORE refused", "", flags, []string{"UID STORE >" + no}, "5 6"},
		{"STORE cut after the first", "", flags, []string{"UID STORE >" + set, "UID STORE >" + cut}, "5 done 6 done not ended"},
		{"STORE without effect on one", "", flags, []string{"UID STORE >* 1 FETCH (UID 5 FLAGS (y))\r\n* 2 FETCH (UID 6 FLAGS (x))\r\n"}, "5 6 done"},
		{"APPEND cut", "", file, []string{"LIST >* LIST () \".\" Drafts\r\n", "APPEND >" + cut}, "0 not ended"},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := newJournal(t)
			answers := exchanges(row.exchanges)
			if answers["UID FETCH"] == nil {
				answers["UID FETCH"] = exchanges([]string{"UID FETCH >THERE"})["UID FETCH"]
			}
			err := row.do(serveFake(t, row.caps, answers, func(o *mailbox.Options) { o.Journal = j }))
			c, got := j.last(1)
			_, got, _ = strings.Cut(got, "]: ")
			for _, m := range c.Messages {
				got = strings.Replace(got, "[]", fmt.Sprint(m.UID), 1)
			}
			if got != row.want {
				t.Errorf("%v; the journal says %s, want %s", err, got, row.want)
			}
		})
	}
}
