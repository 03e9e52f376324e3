package commands_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
)

// fakeMailboxes is Mailboxes that answers what a test put there, and remembers what it was
// asked.
type fakeMailboxes struct {
	commands.Mailboxes // says what may be changed, without a server

	page        mailbox.Page
	watch       mailbox.WatchPage
	search      mailbox.SearchPage
	given       *mailbox.GivenCode
	codeFrom    string
	waited      time.Time // until when
	folders     mailbox.FolderList
	verified    mail.Verification
	message     mailbox.Message
	messages    map[uint32]mailbox.Message
	raw         mailbox.RawMessage
	part        mailbox.AttachmentContent
	thread      mailbox.Thread
	threadQuery mailbox.ThreadQuery
	changed     mailbox.Changed

	listing  func(account string, q mailbox.ListQuery) (*mailbox.Page, error) // in place of page, for several accounts at once
	watching func(ctx context.Context, account string, q mailbox.WatchQuery) (*mailbox.WatchPage, error)

	mu        sync.Mutex // doctor asks several accounts at once
	account   string
	list      mailbox.ListQuery
	listed    mailbox.FolderQuery
	watched   mailbox.WatchQuery
	searched  mailbox.SearchQuery
	got       mailbox.GetQuery
	says      mailbox.AttachmentQuery
	refs      []mail.Ref
	add       []string
	remove    []string
	toAccount string
	toFolder  string
	calls     []string
}

func (s *fakeMailboxes) called(what, account string, refs ...mail.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.account, s.refs = append(s.calls, what), account, refs
}

func (s *fakeMailboxes) Verify(_ context.Context, account string) (*mail.Verification, error) {
	s.called("verify", account)
	v := s.verified
	v.Account = account
	return &v, nil
}

func (s *fakeMailboxes) Folders(_ context.Context, account string, q mailbox.FolderQuery) (*mailbox.FolderList, error) {
	s.called("folders", account)
	s.listed = q
	f := s.folders
	return &f, nil
}

func (s *fakeMailboxes) List(_ context.Context, account string, q mailbox.ListQuery) (*mailbox.Page, error) {
	if s.listing != nil {
		return s.listing(account, q)
	}
	s.called("list", account)
	s.list = q
	p := s.page
	p.Folder, p.UIDValidity = q.Folder, 7
	return &p, nil
}

func (s *fakeMailboxes) Watch(ctx context.Context, account string, q mailbox.WatchQuery) (*mailbox.WatchPage, error) {
	if s.watching != nil {
		return s.watching(ctx, account, q)
	}
	s.called("watch", account)
	s.watched = q
	p := s.watch
	p.Folder, p.After = q.Folder, mail.Ref{Protocol: mail.IMAP, Account: account, Folder: q.Folder, UIDValidity: p.UIDValidity, UID: p.After.UID}
	return &p, nil
}

func (s *fakeMailboxes) Code(_ context.Context, account string, q mailbox.CodeQuery) (*mailbox.GivenCode, error) {
	s.called("code", account)
	s.codeFrom = q.From
	s.waited = q.Until
	if s.given == nil {
		return nil, (&mail.Operation{Op: "mail code", Account: account}).Failure(mail.KindNotFound, "", "No code.", mail.AdviceWaitForCode)
	}
	return s.given, nil
}

func (s *fakeMailboxes) Search(_ context.Context, accounts []string, q mailbox.SearchQuery) (*mailbox.SearchPage, error) {
	s.called("search", strings.Join(accounts, ","))
	s.searched = q
	p := s.search
	p.Unread, p.Attachments, p.Invitations = q.Unread, q.Attachments, q.Invitations
	return &p, nil
}

// GetEach answers message, or for several ids those of messages, by UID.
func (s *fakeMailboxes) GetEach(_ context.Context, account string, refs []mail.Ref, q mailbox.GetQuery) (*mailbox.Messages, error) {
	s.called("get", account, refs...)
	s.got = q
	if len(refs) == 1 {
		m := s.message
		if q.FromChar > 0 {
			m.BodyTruncated, m.NextChar = false, 0
		}
		return &mailbox.Messages{Messages: []*mailbox.Message{&m}}, nil
	}
	all := &mailbox.Messages{}
	for _, r := range refs {
		if m, ok := s.messages[r.UID]; ok {
			all.Messages = append(all.Messages, &m)
		} else {
			all.Issues = append(all.Issues, mail.Issue{Kind: mail.KindNotFound, Stage: "fetch", Message: "There is no such message.", UID: r.UID, MessageID: r.String(), Reason: "filtered"})
		}
	}
	return all, nil
}

func (s *fakeMailboxes) Raw(_ context.Context, ref mail.Ref, _ int64) (*mailbox.RawMessage, error) {
	s.called("raw", ref.Account, ref)
	m := s.raw
	return &m, nil
}

func (s *fakeMailboxes) Attachment(_ context.Context, ref mail.Ref, _ string) (*mailbox.AttachmentContent, error) {
	s.called("attachment", ref.Account, ref)
	a := s.part
	return &a, nil
}

func (s *fakeMailboxes) AttachmentText(_ context.Context, ref mail.Ref, q mailbox.AttachmentQuery) (*mailbox.AttachmentContent, error) {
	s.called("attachment text", ref.Account, ref)
	s.says = q
	a := s.part
	if q.FromChar > 0 {
		a.NextChar = 0
	}
	return &a, nil
}

func (s *fakeMailboxes) Thread(_ context.Context, ref mail.Ref, q mailbox.ThreadQuery) (*mailbox.Thread, error) {
	s.called("thread", ref.Account, ref)
	s.threadQuery = q
	t := s.thread
	return &t, nil
}

func (s *fakeMailboxes) change(what, account string, refs []mail.Ref) (*mailbox.Changed, error) {
	s.called(what, account, refs...)
	c := s.changed
	c.Account, c.Folder = account, refs[0].Folder
	if c.Messages == nil && c.Issues == nil {
		for _, r := range refs {
			r.UIDValidity = 7
			c.Messages = append(c.Messages, mailbox.ChangedMessage{Ref: r})
		}
	}
	return &c, nil
}

func (s *fakeMailboxes) Ack(_ context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error) {
	return s.change("ack", account, refs)
}

func (s *fakeMailboxes) Do(_ context.Context, of mailbox.Batch) (*mailbox.Changed, error) {
	s.add, s.remove, s.toFolder = of.Add, of.Remove, of.To
	c, err := s.change(string(of.Do), of.Account, of.Refs)
	if of.Do == mail.DoTrash {
		c.To = "Trash"
	}
	return c, err
}

func (s *fakeMailboxes) Copy(_ context.Context, account string, refs []mail.Ref, toAccount, toFolder string) (*mailbox.Changed, error) {
	s.toAccount, s.toFolder = toAccount, toFolder
	return s.change("copy", account, refs)
}

func (s *fakeMailboxes) Delete(_ context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error) {
	return s.change("delete", account, refs)
}

// fakeFiles is an attachment directory in memory.
type fakeFiles map[string][]byte

func (b fakeFiles) Save(_ context.Context, _, name string, content []byte) (string, error) {
	if b[name] != nil {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	}
	if name == "beyond-the-share" {
		return "", &vault.ShareFull{Of: vault.ShareFiles, Principal: "agent", Count: 2000, Bytes: 1 << 30}
	}
	b[name] = content
	return "/saved/" + name, nil
}

func (b fakeFiles) SavedFrom(_ context.Context, name string, _ []byte) ([]string, error) {
	if of, ok := strings.CutPrefix(name, "of-"); ok {
		account, _, _ := strings.Cut(of, "/")
		return []string{account}, nil
	}
	return nil, nil
}

func (b fakeFiles) Read(_ context.Context, name string, limit int64) ([]byte, error) {
	content, ok := b[name]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case int64(len(content)) > limit:
		return nil, commands.ErrTooLarge
	}
	return content, nil
}
