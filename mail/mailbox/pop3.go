package mailbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
	"github.com/postern-mail/postern/mail/mailbox/internal/thread"
)

// POP3 knows messages by UIDL and has one folder without flags (RFC 1939). A Client offers
// lists, messages, conversations, and which messages were acknowledged here. No operation
// changes the mailbox: the wire has no DELE.

const popFolder = "INBOX"

// popGroup is how many headers are asked for at once.
const popGroup = 64

// popBox is box for POP3. Its session is the account's, for one command after the
// other.
type popBox struct {
	*access
	kept *pop3.Kept
}

// lend runs fn on the account's session, perhaps twice; see pop3.Kept.
func (x *popBox) lend(ctx context.Context, fresh bool, fn func(s *pop3.Mailbox) error) error {
	return x.wrap(ctx, x.kept.Lend(ctx, fresh, fn))
}

// folderIs refuses every folder but INBOX.
func (x *popBox) folderIs(folder string) error {
	if folder != "" && !strings.EqualFold(folder, popFolder) {
		return x.Failure(mail.KindNotFound, imap.StageExamine, "There is no such folder: an account read with POP3 has INBOX alone.", mail.AdviceNoFolder)
	}
	return nil
}

func (x *popBox) ref(uidl string) mail.Ref {
	return mail.Ref{Protocol: mail.POP3, Account: x.account.Name, UIDL: uidl}
}

// popThreadBytes bounds the headers from which a conversation is made.
const popThreadBytes = 16 << 20

// heads reads headers in the order given while take returns true. It skips messages that
// the policy hides. A message that the server refuses is not readable; heads skips it too
// if the policy hides any, since the policy cannot judge it. size says how many to ask for
// next; nil means popGroup.
func (x *popBox) heads(ctx context.Context, s *pop3.Mailbox, all []pop3.Message, size func() int, take func(g *fetch.Message) (more bool)) error {
	for len(all) > 0 {
		n := min(popGroup, len(all))
		if size != nil {
			n = Bound{1, n, n}.of(size())
		}
		group := all[:n]
		all = all[n:]
		heads := make([]fetch.Message, n)
		for i, m := range group {
			heads[i].Ref = x.ref(m.UIDL)
		}
		err := x.beginnings(ctx, s, group, 0, fetch.HeaderBytes, func(i int, raw []byte) { heads[i] = x.fetched(raw, group[i]) })
		if err != nil {
			return err
		}
		for i := range heads {
			if x.Policy.Sees(&heads[i]) && !take(&heads[i]) {
				return nil
			}
		}
	}
	return nil
}

// fetched reads the beginning of a message.
func (x *popBox) fetched(raw []byte, m pop3.Message) fetch.Message {
	head := message.HeaderOf(raw)
	head = head[:min(len(head), fetch.HeaderBytes)]
	// The bytes are not kept: a list looks at many messages.
	return fetch.Message{Ref: x.ref(m.UIDL), Header: rfc5322.ParseHeader(head), Headed: len(head), Readable: true, Whole: len(head) < fetch.HeaderBytes, Size: max(m.Size, 0)}
}

func (x *popBox) list(ctx context.Context, q ListQuery) (*Page, error) {
	if err := x.folderIs(q.Folder); err != nil {
		return nil, err
	}
	if q.Unread {
		advice := mail.AdvicePOP3New
		if x.m.o.Seen == nil {
			advice = mail.AdviceKeepIDs
		}
		return nil, x.lacks("no flags, so it is not known which messages are unread", advice)
	}
	q.Limit = ListLimit.of(q.Limit)
	page := &Page{Folder: popFolder}
	var names popNames
	err := x.lend(ctx, true, func(s *pop3.Mailbox) error {
		*page = Page{Folder: popFolder}
		if s.Skipped > 0 && x.Policy.ShowsAll() {
			page.Issues = append(page.Issues, mail.Issue{Kind: mail.KindConnection, Stage: "list",
				Message: fmt.Sprintf("%d messages are not listed: the server gave them no valid unique id (UIDL).", s.Skipped)})
		}
		var err error
		if names, err = x.seen(ctx, s.List); err != nil {
			return err
		}
		bounded, err := x.between(ctx, s, &q)
		if err != nil {
			return err
		}
		all := slices.DeleteFunc(slices.Clone(bounded), func(m pop3.Message) bool { return q.New && !names.state.IsNewName(m.UIDL) })
		if !q.OldestFirst {
			slices.Reverse(all)
		}
		if most := x.m.bounds.heads; len(all) > most && x.Policy.ShowsAll() {
			all, page.HasMore = all[:most], true
			page.Next = x.ref(all[most-1].UIDL)
		}
		needed := func() int { return popGroup }
		if x.Policy.ShowsAll() && !dated(&q) {
			needed = func() int { return q.Limit + 1 - len(page.Messages) } // one more, to know whether others follow
		}
		err = x.heads(ctx, s, all, needed, func(g *fetch.Message) bool {
			switch n := len(page.Messages); {
			case !g.Readable:
				page.Issues = append(page.Issues, g.Unreadable())
			case !g.InTime(q.Since, q.Until):
			case n == q.Limit:
				page.HasMore, page.Next = true, page.Messages[n-1].Ref
				if i := slices.IndexFunc(all, func(m pop3.Message) bool { return m.UIDL == g.Ref.UIDL }); i > 0 && x.Policy.ShowsAll() {
					page.Next = x.ref(all[i-1].UIDL) // messages that could not be read are not reported again
				}
				return false
			default:
				page.Messages = append(page.Messages, x.Summary(g, q.Full))
			}
			return true
		})
		if err == nil && q.Snippet != 0 {
			err = x.snippets(ctx, s, SnippetChars.of(q.Snippet), page.Messages)
		}
		return err
	})
	if err == nil {
		return page, names.keep(ctx, x)
	}
	if len(page.Messages) > 0 && partial(ctx, err) {
		page.HasMore, page.Next = true, page.Messages[len(page.Messages)-1].Ref
		page.Issues = append(page.Issues, x.AsError(err).Issue())
		return page, nil
	}
	return nil, err
}

// popOpening is how many lines of a message's text are read for a snippet.
const popOpening = 400

// snippets fills in the opening of each message.
func (x *popBox) snippets(ctx context.Context, s *pop3.Mailbox, chars int, list []Summary) error {
	messages := make([]pop3.Message, len(list))
	for i := range list {
		messages[i] = s.List[s.Places[list[i].Ref.UIDL]]
	}
	return x.beginnings(ctx, s, messages, popOpening, fetch.HeaderBytes, func(i int, raw []byte) {
		g := x.fetched(raw, messages[i])
		opening := x.ExcerptOf(reading.Excerpt{Chars: chars}, &g, raw).Message
		list[i].Snippet, list[i].Subject, list[i].HiddenChars = opening.Snippet, opening.Subject, opening.HiddenChars
	})
}

// allLines in place of a number of lines means the whole message.
const allLines = -1

// beginnings reads the header and so many lines of the text of messages, or the whole where
// the server cannot; of each at most keep bytes. got is not called for a message that the
// server refuses.
func (x *popBox) beginnings(ctx context.Context, s *pop3.Mailbox, messages []pop3.Message, lines, keep int, got func(i int, raw []byte)) error {
	numbers := make([]int, len(messages))
	for i, m := range messages {
		numbers[i] = m.Number
	}
	take := func(number int, raw []byte, err error) {
		if err == nil {
			got(slices.Index(numbers, number), raw)
		}
	}
	if lines != allLines && (s.Has("TOP") || len(s.Capabilities()) == 0) {
		return s.Top(ctx, numbers, lines, keep, take)
	}
	return s.Retrieve(ctx, numbers, keep, take)
}

// between returns the messages between the query's Before and After, oldest first.
func (x *popBox) between(ctx context.Context, s *pop3.Mailbox, q *ListQuery) ([]pop3.Message, error) {
	low, err := x.place(ctx, s, q.After, -1)
	if err != nil {
		return nil, err
	}
	high, err := x.place(ctx, s, q.Before, len(s.List))
	if err != nil {
		return nil, err
	}
	return s.List[min(low+1, high):high], nil
}

// place is the position in the list of a message that a query continues from.
func (x *popBox) place(ctx context.Context, s *pop3.Mailbox, anchor mail.Ref, none int) (int, error) {
	if anchor == (mail.Ref{}) {
		return none, nil
	}
	i, there := s.Places[anchor.UIDL]
	if anchor != x.ref(anchor.UIDL) || !there {
		return 0, x.noAnchor("")
	}
	err := x.judge(ctx, s, s.List[i])
	var e *mail.Error
	if errors.As(err, &e) && e.Kind == mail.KindNotFound {
		return 0, x.noAnchor(e.Reason)
	}
	return i, err
}

// named refuses a reference that cannot name a message of a POP3 account.
func (x *popBox) named(ref mail.Ref) error {
	if ref.Protocol != mail.POP3 || ref.UIDL == "" {
		return x.lacks("no UIDs", mail.AdvicePOP3ID)
	}
	return nil
}

// whole fetches a message that the policy shows.
func (x *popBox) whole(ctx context.Context, ref mail.Ref) (raw []byte, g fetch.Message, err error) {
	if err := x.named(ref); err != nil {
		return nil, g, err
	}
	fetch := func(fresh bool) error {
		return x.lend(ctx, fresh, func(s *pop3.Mailbox) error {
			i, ok := s.Places[ref.UIDL]
			if !ok {
				return x.NoMessage("")
			}
			m := s.List[i]
			if m.Size > maxWholeBytes {
				if err := x.judge(ctx, s, m); err != nil {
					return err
				}
				return x.tooLarge()
			}
			var refused error
			err := s.Retrieve(ctx, []int{m.Number}, maxWholeBytes, func(_ int, b []byte, err error) { raw, refused = b, err })
			if err == nil && refused != nil && !x.Policy.ShowsAll() {
				return x.NoMessage("filtered")
			}
			if err = errors.Join(err, refused); err != nil {
				return err
			}
			if g = x.fetched(raw, m); !x.Policy.Sees(&g) {
				raw = nil
				return x.NoMessage("filtered")
			}
			g.Size = int64(len(raw))
			return nil
		})
	}
	err = fetch(false)
	var e *mail.Error
	if errors.As(err, &e) && e.Kind == mail.KindNotFound && e.Reason == "" {
		err = fetch(true) // it may have come since the session began
	}
	return raw, g, err
}

// judge refuses a message that the policy hides, by its header alone.
func (x *popBox) judge(ctx context.Context, s *pop3.Mailbox, m pop3.Message) error {
	shown := x.Policy.ShowsAll()
	if !shown {
		if err := x.heads(ctx, s, []pop3.Message{m}, nil, func(*fetch.Message) bool { shown = true; return false }); err != nil {
			return err
		}
	}
	if !shown {
		return x.NoMessage("filtered")
	}
	return nil
}

func (x *popBox) get(ctx context.Context, all []*reading.Reading) error {
	for _, r := range all {
		raw, g, err := x.whole(ctx, r.Ref)
		var e *mail.Error
		if err != nil && (ctx.Err() != nil || !errors.As(err, &e) || e.Kind != mail.KindNotFound && e.Kind != mail.KindLimit) {
			return err // the others fail too
		}
		if r.Err = err; err == nil {
			r.ReadWhole(g, raw)
		}
	}
	return nil
}

func (x *popBox) raw(ctx context.Context, ref mail.Ref, limit int64) (*RawMessage, error) {
	raw, g, err := x.whole(ctx, ref)
	if err != nil {
		return nil, err
	}
	shown := raw[:min(int64(len(raw)), limit)]
	return &RawMessage{Ref: x.ref(ref.UIDL), Size: int64(len(raw)), Source: shown, Truncated: len(shown) < len(raw), masked: x.MaskedIn(&g, raw)}, nil
}

func (x *popBox) attachment(ctx context.Context, ref mail.Ref, part string) (*AttachmentContent, error) {
	raw, g, err := x.whole(ctx, ref)
	if err != nil {
		return nil, err
	}
	if x.MaskedIn(&g, raw).Any() {
		return nil, x.Withheld("its attachments are not shown")
	}
	e := message.Parse(raw)
	p, err := x.Choose(e.Root, part)
	if err != nil {
		return nil, err
	}
	g.Ref = x.ref(ref.UIDL)
	return x.AttachmentOf(&g, e.Root, p, e.Raw(p), part)
}

// thread groups by the headers of the newest messages (004 section 5).
func (x *popBox) thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	if err := x.named(ref); err != nil {
		return nil, err
	}
	var t *thread.Threading
	err := x.lend(ctx, true, func(s *pop3.Mailbox) error {
		t = thread.New(&x.Viewer, q, func(string) int { return 0 })
		i, ok := s.Places[ref.UIDL]
		if !ok {
			return x.NoMessage("")
		}
		all := s.List
		if older := len(all) - x.m.bounds.heads; older > 0 && x.Policy.ShowsAll() {
			t.Cut = true
			if all = all[older:]; i < older {
				all = append([]pop3.Message{s.List[i]}, all...)
			}
		}
		kept := 0
		err := x.heads(ctx, s, all, nil, func(g *fetch.Message) bool {
			kept += g.Headed
			switch {
			case !g.Readable:
				t.Issues = append(t.Issues, g.Unreadable())
				return true
			case g.Ref.UIDL == ref.UIDL:
				t.First = g
			case kept > popThreadBytes:
				t.Cut = true
				return true
			}
			t.Known = append(t.Known, g)
			return true
		})
		if err == nil && t.First == nil {
			err = x.NoMessage("filtered")
		}
		if err != nil {
			return err
		}
		t.Link()
		return x.texts(ctx, s, t)
	})
	if err != nil {
		return nil, err
	}
	out := t.Thread()
	out.Folder = popFolder
	return out, nil
}

// popLines is how much is read of a message over maxPartBytes, whose text comes first.
const popLines = 400

// texts reads the messages of a conversation that are shown. Of a long one it reads the
// beginning, where the server has TOP, and does not know the attachments.
func (x *popBox) texts(ctx context.Context, s *pop3.Mailbox, t *thread.Threading) error {
	if t.Query.Chars == 0 {
		return nil
	}
	read := func(lines int, fits func(pop3.Message) bool) error {
		var messages []pop3.Message
		shown := slices.DeleteFunc(t.Shown(), func(g *fetch.Message) bool {
			m := s.List[s.Places[g.Ref.UIDL]]
			if fits(m) {
				messages = append(messages, m)
			}
			return !fits(m)
		})
		return x.beginnings(ctx, s, messages, lines, reading.MaxPartBytes, func(i int, raw []byte) {
			r := x.ExcerptOf(reading.Excerpt{Chars: t.Query.Chars, Lines: true}, shown[i], raw)
			if lines != allLines {
				r.Root, r.Message.BodyTruncated = nil, true
			}
			t.Texts[shown[i].Ref] = r
		})
	}
	if err := read(allLines, func(m pop3.Message) bool { return m.Size <= reading.MaxPartBytes }); err != nil {
		return err
	}
	return read(popLines, func(m pop3.Message) bool { return m.Size > reading.MaxPartBytes && s.Has("TOP") })
}

// folders lists INBOX, the only folder. Without UIDs and flags the only count is that of
// messages; with a policy that hides some, each is checked.
func (x *popBox) folders(ctx context.Context, q FolderQuery) (*FolderList, error) {
	list := &FolderList{}
	if !matchesPattern(q.Pattern, popFolder) {
		return list, nil
	}
	folder := Folder{Name: popFolder, Role: "inbox"}
	if q.After != "" {
		list.Folders, q.Limit = []Folder{folder}, 1
		return list, x.cutFolders(q, list)
	}
	err := x.lend(ctx, true, func(s *pop3.Mailbox) error {
		if !q.Counts {
			return nil
		}
		n := uint32(len(s.List))
		if !x.Policy.ShowsAll() {
			n = 0
			if err := x.heads(ctx, s, s.List, nil, func(*fetch.Message) bool { n++; return true }); err != nil {
				return err
			}
		}
		folder.Counts = &Counts{Messages: n, Flagless: true}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list.Folders = []Folder{folder}
	return list, nil
}

// matchesPattern reports whether a LIST pattern matches the name of a folder that
// has no hierarchy, which INBOX is without regard to case.
func matchesPattern(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	quoted := strings.NewReplacer(`\*`, ".*", "%", ".*").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?is)\A` + quoted + `\z`).MatchString(name)
}

func (x *popBox) header(ctx context.Context, ref mail.Ref) (*fetch.Message, error) {
	_, g, err := x.whole(ctx, ref)
	return &g, err
}

// warm opens the connection if OneConnection is set; otherwise a session, which locks the
// mailbox, begins when it is needed.
func (x *popBox) warm(ctx context.Context) error {
	if !x.m.o.OneConnection {
		return nil
	}
	return x.lend(ctx, false, func(*pop3.Mailbox) error { return nil })
}

func (x *popBox) dial(ctx context.Context, done func(capabilities []string)) error {
	// The mailbox is locked while the kept session is open.
	return x.wrap(ctx, x.kept.Try(ctx, func(s *pop3.Session) { done(s.Capabilities()) }))
}

func (x *popBox) ask(ctx context.Context, done func(capabilities []string)) error {
	return x.lend(ctx, false, func(s *pop3.Mailbox) error {
		err := s.Check(ctx)
		if err == nil {
			done(s.Capabilities())
		}
		return err
	})
}
