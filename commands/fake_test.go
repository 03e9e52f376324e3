package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// shelf is Mailboxes that answers what a test put there, and remembers what it was
// asked.
type shelf struct {
	page    mail.Page
	watch   mail.WatchPage
	search  mail.SearchPage
	folders mail.FolderList
	message mail.Message
	raw     mail.RawMessage
	part    mail.AttachmentContent
	thread  mail.Thread
	changed mail.Changed

	account   string
	list      mail.ListQuery
	watched   mail.WatchQuery
	searched  mail.SearchQuery
	got       mail.GetQuery
	refs      []mail.Ref
	add       []string
	remove    []string
	toAccount string
	toFolder  string
	calls     []string
}

func (s *shelf) called(what, account string, refs ...mail.Ref) {
	s.calls, s.account, s.refs = append(s.calls, what), account, refs
}

func (s *shelf) Verify(_ context.Context, account string) (*mail.Verification, error) {
	s.called("verify", account)
	return &mail.Verification{Account: account}, nil
}

func (s *shelf) VerifySubmission(_ context.Context, account string) (*mail.Verification, error) {
	s.called("verify smtp", account)
	return &mail.Verification{Account: account}, nil
}

func (s *shelf) Folders(_ context.Context, account string, _ mail.FolderQuery) (*mail.FolderList, error) {
	s.called("folders", account)
	f := s.folders
	return &f, nil
}

func (s *shelf) List(_ context.Context, account string, q mail.ListQuery) (*mail.Page, error) {
	s.called("list", account)
	s.list = q
	p := s.page
	p.Folder = q.Folder
	return &p, nil
}

func (s *shelf) Watch(_ context.Context, account string, q mail.WatchQuery) (*mail.WatchPage, error) {
	s.called("watch", account)
	s.watched = q
	p := s.watch
	p.Folder = q.Folder
	return &p, nil
}

func (s *shelf) Search(_ context.Context, account string, q mail.SearchQuery) (*mail.SearchPage, error) {
	s.called("search", account)
	s.searched = q
	p := s.search
	return &p, nil
}

func (s *shelf) Get(_ context.Context, ref mail.Ref, q mail.GetQuery) (*mail.Message, error) {
	s.called("get", ref.Account, ref)
	s.got = q
	m := s.message
	return &m, nil
}

func (s *shelf) Raw(_ context.Context, ref mail.Ref, _ int64) (*mail.RawMessage, error) {
	s.called("raw", ref.Account, ref)
	m := s.raw
	return &m, nil
}

func (s *shelf) Attachment(_ context.Context, ref mail.Ref, _ string) (*mail.AttachmentContent, error) {
	s.called("attachment", ref.Account, ref)
	a := s.part
	return &a, nil
}

func (s *shelf) Thread(_ context.Context, ref mail.Ref, _ mail.ThreadQuery) (*mail.Thread, error) {
	s.called("thread", ref.Account, ref)
	t := s.thread
	return &t, nil
}

func (s *shelf) change(what, account string, refs []mail.Ref) (*mail.Changed, error) {
	s.called(what, account, refs...)
	c := s.changed
	c.Account, c.Folder = account, refs[0].Folder
	if c.Messages == nil && c.Issues == nil {
		for _, r := range refs {
			r.UIDValidity = 7
			c.Messages = append(c.Messages, mail.ChangedMessage{Ref: r})
		}
	}
	return &c, nil
}

func (s *shelf) Ack(_ context.Context, account string, refs []mail.Ref) (*mail.Changed, error) {
	return s.change("ack", account, refs)
}

func (s *shelf) MarkRead(_ context.Context, account string, refs []mail.Ref) (*mail.Changed, error) {
	return s.change("mark-read", account, refs)
}

func (s *shelf) SetFlags(_ context.Context, account string, refs []mail.Ref, add, remove []string) (*mail.Changed, error) {
	s.add, s.remove = add, remove
	return s.change("flags", account, refs)
}

func (s *shelf) Copy(_ context.Context, account string, refs []mail.Ref, toAccount, toFolder string) (*mail.Changed, error) {
	s.toAccount, s.toFolder = toAccount, toFolder
	return s.change("copy", account, refs)
}

func (s *shelf) Move(_ context.Context, account string, refs []mail.Ref, toFolder string) (*mail.Changed, error) {
	s.toFolder = toFolder
	return s.change("move", account, refs)
}

func (s *shelf) Delete(_ context.Context, account string, refs []mail.Ref) (*mail.Changed, error) {
	return s.change("delete", account, refs)
}

// box is an attachment directory in memory.
type box map[string][]byte

func (b box) Save(_ context.Context, name string, content []byte) (string, error) {
	if b[name] != nil {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	}
	b[name] = content
	return "/saved/" + name, nil
}

func (b box) Read(_ context.Context, name string, limit int64) ([]byte, error) {
	content, ok := b[name]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case int64(len(content)) > limit:
		return nil, commands.ErrTooLarge
	}
	return content, nil
}

// store is a vault as the commands see it.
type store struct{ *vault.Vault }

func (s store) AllSettings(ctx context.Context) ([]vault.Setting, error) { return s.Settings(ctx) }

func (s store) Check(ctx context.Context) error { return s.Vault.Check(ctx) }

// bench is a gateway on a vault of its own and a shelf.
type bench struct {
	*shelf
	saved     box
	vault     *vault.Vault
	gateway   *gateway.Gateway
	registry  *discovery.Registry
	principal gateway.Principal
	deps      *commands.Deps
}

// at is the time on a bench: in Berlin it is the next day already.
var at = time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)

func newBench(t testing.TB, mailboxes commands.Mailboxes, accounts ...mail.Account) *bench {
	t.Helper()
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	for _, a := range accounts {
		if err := v.AddAccount(t.Context(), a, mail.NewSecret([]byte("secret"))); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{saved: box{}, vault: v, principal: gateway.Principal{Name: "admin", Admin: true}}
	if b.shelf, _ = mailboxes.(*shelf); mailboxes == nil {
		b.shelf = &shelf{}
		mailboxes = b.shelf
	}
	b.deps = &commands.Deps{Store: store{v}, Mailboxes: mailboxes, Attachments: b.saved, Now: func() time.Time { return at },
		Exists: func(path string) bool { return b.registry.Exists(path) },
		Explain: func(ctx context.Context, call *discovery.Call, line string) (commands.Explanation, error) {
			e, err := b.gateway.Explain(ctx, gateway.Principal{Name: call.Principal, Admin: call.Admin}, line)
			return commands.Explanation(e), err
		}}
	if b.registry, err = discovery.NewRegistry(discovery.Info{Name: "postern", Version: "test", Description: "Postern: a person's mail, behind their rules",
		Groups: commands.Groups(), Recipes: commands.Recipes()}, commands.All(b.deps)...); err != nil {
		t.Fatal(err)
	}
	b.gateway, err = gateway.New(gateway.Options{Registry: b.registry, Profile: gateway.FullProfile(), Faults: commands.Faults,
		Settings: vaultSettings{v}, Auditor: v})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type vaultSettings struct{ v *vault.Vault }

func (s vaultSettings) Settings(ctx context.Context, _ bool) (gateway.Settings, error) {
	c, err := s.v.Config(ctx)
	return gateway.Settings{Deny: c.Deny, CommandsPerMinute: c.CommandsPerMinute, Location: c.Timezone}, err
}

func work(name string, mode mail.Mode) mail.Account {
	return mail.Account{Name: name, Email: "desk@example.org", Protocol: mail.IMAP, Username: "desk", Auth: mail.AuthPassword, Mode: mode,
		IMAP:     mail.Endpoint{Host: "imap.example.org", Port: 993, Security: mail.TLS},
		SMTP:     mail.Endpoint{Host: "smtp.example.org", Port: 465, Security: mail.TLS},
		AllowOut: mail.AllowList{Enabled: true}}
}

// envelope is an answer taken apart.
type envelope struct {
	Success bool           `json:"success"`
	Data    map[string]any `json:"data"`
	Message string         `json:"message"`
	Error   struct {
		Code     string   `json:"code"`
		Message  string   `json:"message"`
		Hint     string   `json:"hint"`
		Examples []string `json:"examples"`
	} `json:"error"`
	Meta struct {
		Untrusted []string `json:"untrusted"`
	} `json:"_meta"`
	size int
}

func (b *bench) do(t testing.TB, line string) envelope {
	t.Helper()
	a := b.gateway.Do(t.Context(), b.principal, line)
	e := envelope{size: len(a.JSON)}
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return e
}

// ok is do for a command that must work.
func (b *bench) ok(t testing.TB, line string) envelope {
	t.Helper()
	e := b.do(t, line)
	if !e.Success {
		t.Fatalf("%s: %s %s", line, e.Error.Code, e.Error.Message)
	}
	return e
}

// fails is do for a command that must fail this way.
func (b *bench) fails(t testing.TB, line string, code discovery.Code, says string) envelope {
	t.Helper()
	e := b.do(t, line)
	if e.Success || e.Error.Code != string(code) || !strings.Contains(e.Error.Message+" "+e.Error.Hint, says) {
		t.Errorf("%s: success %v, %s %q %q; want %s with %q", line, e.Success, e.Error.Code, e.Error.Message, e.Error.Hint, code, says)
	}
	return e
}

func (e envelope) next() string {
	n, _ := e.Data["next_action"].(map[string]any)
	arguments, _ := n["arguments"].(map[string]any)
	command, _ := arguments["command"].(string)
	return command
}

func ref(uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "INBOX", UIDValidity: 7, UID: uid}
}

// summaries are n messages, the newest first, whose texts are as long as told.
func summaries(n, subject, sender int) []mail.Summary {
	var list []mail.Summary
	for i := range n {
		list = append(list, mail.Summary{Ref: ref(uint32(n - i)), Date: at.In(time.FixedZone("", 3600)), Flags: []string{`\Seen`},
			From:    []string{fmt.Sprintf("Ann %s Lee <ann@example.org>", strings.Repeat("N", sender))},
			Subject: fmt.Sprintf("%d %s", i, strings.Repeat("long ", subject/5)), To: []string{"desk@example.org"},
			InternetMessageID: "x@example.org", Size: 10})
	}
	return list
}
