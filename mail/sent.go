package mail

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// selfFiling are submission servers that put what is sent through them into the
// sender's own folder. A copy of ours would be a second one.
var selfFiling = append(selfFilingProviders(), "outlook.office365.com")

// selfFilingProviders leaves out servers on this machine: another one may listen
// there.
func selfFilingProviders() (hosts []string) {
	for i := range providers {
		if p := &providers[i]; p.FilesSent && !p.SMTP.Loopback() {
			hosts = append(hosts, p.SMTP.Host)
		}
	}
	return hosts
}

// gmailCapability is what Gmail's IMAP offers under any name of host.
const gmailCapability = "X-GM-EXT-1"

// wantsCopy is what is to become of the copy, as far as it is known before it is
// tried.
func (s *sender) wantsCopy(mailboxes bool) SentState {
	host := strings.ToLower(strings.TrimSuffix(s.account.SMTP.Host, "."))
	switch {
	case s.account.SentCopy == SentNever || s.account.Protocol != IMAP || !mailboxes:
		return SentNone
	case s.account.SentCopy != SentAlways && slices.Contains(selfFiling, host):
		return SentProvider
	}
	return SentPending
}

// outstanding reports whether the copy is still to be filed.
func (s SentState) outstanding() bool { return s == SentPending || s == SentFailed }

// file files the copy of a message that was accepted, under the lease named
// attempt, and records what became of it. It never changes that the message was
// sent; its failures are in the entry.
func (b *Outbox) file(ctx context.Context, op string, e Outgoing, attempt string) Outgoing {
	sent, reason := b.fileCopy(ctx, op, &e)
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	kept, err := b.o.Store.ChangeOutgoing(recording, e.ID, func(e *Outgoing) (bool, error) {
		if e.Attempt != attempt || e.State != OutboxAccepted {
			return false, errNotHeld
		}
		e.release(b.now())
		e.Sent, e.Reason = sent, reason
		return !sent.outstanding(), nil
	})
	if err != nil {
		e.Sent, e.Reason = sent, reason // the next to look finds the copy where it is
		kept = e
	}
	kept.Replayed = e.Replayed
	b.log(recording, "copy of an outgoing message tried", &kept)
	return kept
}

func (b *Outbox) fileCopy(ctx context.Context, op string, e *Outgoing) (SentState, string) {
	const failed = "The message was sent. Its copy could not be filed: "
	s, err := b.sender(ctx, op, e.Account)
	if err != nil {
		return SentFailed, failed + reasonOf(err)
	}
	if now := s.wantsCopy(b.o.Mailboxes != nil); now != SentPending {
		return now, "" // the account was changed meanwhile
	}
	message, err := b.bytes(ctx, op, e)
	if err != nil {
		return SentFailed, failed + reasonOf(err)
	}
	if message, err = withBCC(message, e.BCC); err != nil {
		return SentFailed, failed + "it could not be written."
	}
	_, err = b.o.Mailboxes.put(ctx, op, e.Account, &ownMessage{role: "sent", flags: []goimap.Flag{goimap.FlagSeen}, date: e.Created,
		raw: message, once: e.MessageID, unlessGmail: s.account.SentCopy != SentAlways})
	switch {
	case errors.Is(err, errNoRole):
		return SentNone, ""
	case errors.Is(err, errSelfFiling):
		return SentProvider, ""
	case err != nil:
		return SentFailed, shortLine(failed+reasonOf(err), 1000)
	}
	return SentFiled, ""
}

// withBCC is the message as its sender keeps it.
func withBCC(wire []byte, bcc []string) ([]byte, error) {
	var list []compose.Address
	for _, text := range bcc {
		a, err := compose.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return compose.AddBCC(wire, list)
}

// fileAgain tries to file a copy that is missing, if nobody else is at it.
func (b *Outbox) fileAgain(ctx context.Context, op string, e Outgoing) *Outgoing {
	if b.o.Mailboxes == nil {
		return &e
	}
	attempt, now := newAttempt(), b.now()
	until := b.lease(ctx, now)
	kept, err := b.o.Store.ChangeOutgoing(ctx, e.ID, func(e *Outgoing) (bool, error) {
		if e.State != OutboxAccepted || !e.Sent.outstanding() {
			return false, errOver
		}
		if e.busy(now) {
			return false, errBusy
		}
		e.Attempt, e.Until = attempt, until
		return false, nil
	})
	if err != nil {
		return &e // it is as it was, and the message was sent
	}
	kept.Replayed = e.Replayed
	kept = b.file(ctx, op, kept, attempt)
	return &kept
}

// fileOlder makes up for one copy that an earlier send left behind, now that the
// account's mailbox has just taken one: a process that ended in between needs
// nobody to remember it.
func (b *Outbox) fileOlder(ctx context.Context, op string, filed *Outgoing) {
	if filed.Sent != SentFiled || ctx.Err() != nil {
		return
	}
	entries, _, err := b.o.Store.ListOutgoing(ctx, OutboxQuery{Account: filed.Account, States: []OutboxState{OutboxAccepted}, Limit: DefaultOutboxLimit})
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Sent.outstanding() && !e.busy(b.now()) && b.now().Sub(e.Changed) < KeepOutgoingMessage {
			b.fileAgain(ctx, op, e)
			return
		}
	}
}

// SaveDraft puts a draft into the account's folder for drafts, where a person
// finishes and sends it. It may have no recipients, and the outbound list does not
// matter, since nothing leaves; what it replies to has to be visible. Failures are
// as for Mailboxes.Copy.
func (b *Outbox) SaveDraft(ctx context.Context, account string, d Draft) (*SavedDraft, error) {
	const op = "mail draft"
	s, err := b.sender(ctx, op, account)
	if err != nil {
		return nil, err
	}
	x := &access{op: op, account: s.account}
	switch {
	case !s.policy.MayChange():
		return nil, x.readOnly()
	case b.o.Mailboxes == nil || s.account.Protocol != IMAP:
		return nil, x.unsupported("The account has no folder to put a draft into: it is not read with IMAP.", "Send the message with 'mail send'.")
	}
	l, err := s.read(&d)
	if err != nil {
		return nil, err
	}
	n, err := b.names(ctx, op, account, "", "", "")
	if err != nil {
		return nil, err
	}
	m, err := b.message(ctx, s, l, n)
	if err != nil {
		return nil, err
	}
	built, err := compose.Build(m)
	if err != nil {
		return nil, s.unbuildable(err)
	}
	put, err := b.o.Mailboxes.put(ctx, op, account, &ownMessage{role: "drafts", flags: []goimap.Flag{goimap.FlagDraft, goimap.FlagSeen},
		date: m.Date, raw: built.Copy})
	if errors.Is(err, errNoRole) {
		return nil, &Error{Op: op, Account: account, Kind: KindNotFound, Stage: string(imap.StageList), Message: "The account has no folder for drafts.",
			Hint: "Create a folder named Drafts in a mail program."}
	}
	if err != nil {
		return nil, err
	}
	return &SavedDraft{Account: account, Folder: put.folder, Ref: put.ref, MessageID: "<" + m.MessageID + ">", Subject: m.Subject, Size: int64(len(built.Copy))}, nil
}

// ownMessage is a message that we wrote and put into a folder of the account.
type ownMessage struct {
	role        string // of the folder: sent or drafts
	flags       []goimap.Flag
	date        time.Time
	raw         []byte
	once        string // Message-ID: not where the folder has it already; empty: always
	unlessGmail bool   // not where the server files it itself
}

// placed says where a message is now.
type placed struct {
	folder string
	ref    Ref // zero when the server did not tell, or had it already
}

var (
	errNoRole     = errors.New("no folder of this use")
	errSelfFiling = errors.New("the provider files it itself")
)

// put appends a message to the folder of a use, in one turn on a connection that
// may append and nothing else. errNoRole and errSelfFiling say that there was
// nothing to do.
func (m *Mailboxes) put(ctx context.Context, op, account string, own *ownMessage) (*placed, error) {
	x, err := m.open(ctx, op, account)
	if err != nil {
		return nil, err
	}
	if !x.policy.MayChange() {
		return nil, x.readOnly()
	}
	select {
	case x.pool.turn <- struct{}{}:
		defer func() { <-x.pool.turn }()
	case <-ctx.Done():
		return nil, x.wrap(ctx, ctx.Err())
	}
	var out placed
	var nothing error // why there is nothing to do
	sent := false
	err = x.pool.Change(ctx, "", imap.AppendMessages, func(_ context.Context, s *imap.Session) (err error) {
		out, nothing, sent = placed{}, nil, false
		if own.unlessGmail && s.Has(gmailCapability) {
			nothing = errSelfFiling
			return nil
		}
		if out.folder, err = x.folderFor(s, own.role); err != nil {
			return err
		}
		if out.folder == "" {
			nothing = errNoRole
			return nil
		}
		if own.once != "" {
			there, err := x.holds(s, out.folder, own.once)
			if err != nil || there {
				return err
			}
		}
		if err := stepAside(s, out.folder); err != nil {
			return err
		}
		s.Renew()
		sent = true
		validity, uid, err := s.Append(out.folder, own.flags, own.date, own.raw)
		if err == nil && validity != 0 && uid != 0 {
			out.ref = Ref{Protocol: IMAP, Account: account, Folder: out.folder, UIDValidity: validity, UID: uid}
		}
		return err
	})
	if err == nil {
		return &out, nothing
	}
	answered := refusedByServer(err)
	if err = x.wrap(ctx, err); sent && !answered {
		e := *asError(op, account, err)
		e.Message += " Whether the message arrived in the folder is not known."
		e.Hint, e.Retryable, e.Unknown = "Look into the folder before you try again.", false, true
		err = &e
	}
	return nil, err
}

const inbox = "INBOX"

// stepAside leaves a folder that something is to be added to: Courier takes nothing
// for one that the session has open to read, and not every server knows UNSELECT.
func stepAside(s *imap.Session, folder string) error {
	if box, ok := s.Selected(); ok && box.Name == folder && !box.Writable && folder != inbox {
		_, err := s.Examine(inbox).Wait()
		return err
	}
	return nil
}

// holds reports whether the folder has a message of this Message-ID.
func (x *access) holds(s *imap.Session, folder, messageID string) (bool, error) {
	if _, err := s.Examine(folder).Wait(); err != nil {
		return false, err
	}
	criteria := headerHolds("Message-ID", messageID)
	found, err := s.Search(&criteria).Wait()
	return len(found) > 0, err
}

// usualNames are what programs and servers call the folders for which a server
// without SPECIAL-USE (RFC 6154) tells no use, in lower case.
var usualNames = map[string][]string{
	"sent": {"sent", "sent messages", "sent items", "sent mail", "sent-mail", "outbox/sent", "gesendet", "gesendete elemente", "gesendete objekte",
		"envoyés", "éléments envoyés", "messages envoyés", "enviados", "elementos enviados", "itens enviados", "mensajes enviados",
		"inviati", "inviata", "posta inviata", "verzonden", "verzonden items", "verzonden berichten", "skickat", "skickade objekt",
		"sendt", "sendte elementer", "lähetetyt", "wysłane", "elementy wysłane", "odeslané", "отправленные", "надіслані", "送信済み", "送信済みアイテム", "已发送", "已發送", "보낸 편지함"},
	"drafts": {"drafts", "draft", "draft messages", "entwürfe", "brouillons", "borradores", "rascunhos", "bozze", "concepten", "utkast", "kladder",
		"luonnokset", "szkice", "kopie robocze", "koncepty", "черновики", "чернетки", "下書き", "草稿", "草稿箱", "임시 보관함"},
}

// folderFor finds the folder of a use: the first that the server says has it, else
// the first that is called so, at the top or directly below INBOX. It is empty when
// there is none.
func (x *access) folderFor(s *imap.Session, role string) (string, error) {
	list := &FolderList{}
	if _, err := x.list(s, FolderQuery{Pattern: "*", Limit: maxFoldersForRole}, list); err != nil {
		return "", err
	}
	for _, f := range list.Folders {
		if f.Role == role && !f.NoSelect() {
			return f.Name, nil
		}
	}
	for _, usual := range usualNames[role] {
		for _, f := range list.Folders {
			name := strings.ToLower(f.Name)
			if f.Delimiter != "" {
				name = strings.TrimPrefix(name, "inbox"+f.Delimiter)
			}
			if name == usual && (f.Role == "" || f.Role == role) && !f.NoSelect() {
				return f.Name, nil
			}
		}
	}
	return "", nil
}

// maxFoldersForRole bounds the folders that are looked at.
const maxFoldersForRole = 10_000
