package mailbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// POP3 knows messages by UIDL and has one folder without flags (RFC 1939). What a
// Client offers of it is what can be told truly: lists, messages, conversations,
// and what was acknowledged here. Nothing of it changes the mailbox: the wire has
// no DELE.

const popFolder = "INBOX"

// popGroup is how many headers are asked for at once.
const popGroup = 64

// popHeaders bounds the headers one command looks at, newest first.
const popHeaders = 5000

// popBox is box for POP3. Its session is the account's, for one command after the
// other.
type popBox struct {
	*access
	session *popSession
}

// lend runs fn on the account's session, perhaps twice; see popSession.lend.
func (x *popBox) lend(ctx context.Context, fresh bool, fn func(s *pop3.Session) error) error {
	return x.wrap(ctx, x.session.lend(ctx, fresh, fn))
}

// notPOP3 is what becomes of a command that needs what POP3 has not.
func (x *access) notPOP3(what string, advice mail.Advice) error {
	return x.Unsupported("The account is read with POP3, which has no "+what+".", advice)
}

// folderIs refuses every folder but the one there is.
func (x *popBox) folderIs(folder string) error {
	if folder != "" && !strings.EqualFold(folder, popFolder) {
		return &mail.Error{Op: x.Op, Account: x.Account, Kind: mail.KindNotFound, Stage: "examine",
			Message: "There is no such folder: an account read with POP3 has INBOX alone.", Advice: mail.AdviceNoFolder}
	}
	return nil
}

func (x *popBox) ref(uidl string) mail.Ref {
	return mail.Ref{Protocol: mail.POP3, Account: x.account.Name, UIDL: uidl}
}

// popThreadBytes bounds the headers of which a conversation is made.
const popThreadBytes = 16 << 20

// popHead is one message as a list needs it.
type popHead struct {
	pop3.Message
	fetched
	bytes int // of the header
}

// heads looks at messages in the order given until take says that is enough. Those
// that the policy hides are passed over; one that the server refuses is an Issue
// where nothing is hidden, and else passed over too: whether the policy would show
// it cannot be told. size says how many to ask for next; nil means popGroup.
func (x *popBox) heads(ctx context.Context, s *pop3.Session, all []pop3.Message, size func() int, issues *[]mail.Issue, take func(h *popHead) bool) error {
	for len(all) > 0 {
		n := min(popGroup, len(all))
		if size != nil {
			n = within(size(), n, 1, n)
		}
		group := all[:n]
		all = all[n:]
		numbers := make([]int, len(group))
		for i, m := range group {
			numbers[i] = m.Number
		}
		heads := make(map[int]*popHead, len(group))
		got := func(n int, raw []byte, err error) {
			i := slices.Index(numbers, n)
			if err != nil {
				if x.policy.ShowsAll() {
					*issues = append(*issues, mail.Issue{Kind: mail.KindRefused, Stage: "fetch", Retryable: true,
						Message: "The server did not give the message.", MessageID: x.ref(group[i].UIDL).String()})
				}
				return
			}
			heads[n] = &popHead{Message: group[i], fetched: popFetched(raw, group[i]), bytes: min(len(raw), headerBytes)}
		}
		var err error
		if s.Has("TOP") || len(s.Capabilities()) == 0 {
			err = s.Top(ctx, numbers, 0, headerBytes, got)
		} else {
			err = s.Retrieve(ctx, numbers, headerBytes, got)
		}
		if err != nil {
			return err
		}
		for _, n := range numbers {
			if h := heads[n]; h != nil && h.visible(x.policy) && take(h) {
				return nil
			}
		}
	}
	return nil
}

// popFetched reads the beginning of a message.
func popFetched(raw []byte, m pop3.Message) fetched {
	head := message.HeaderOf(raw)
	whole := len(head) < headerBytes
	if !whole {
		head = head[:headerBytes]
	}
	// What was read is let go of: a list looks at many.
	return fetched{header: rfc5322.ParseHeader(head), readable: true, whole: whole, size: max(m.Size, 0)}
}

func (x *popBox) list(ctx context.Context, q ListQuery) (*Page, error) {
	if err := x.folderIs(q.Folder); err != nil {
		return nil, err
	}
	switch {
	case q.Unread:
		return nil, x.notPOP3("flags, so nobody can tell what is unread", mail.AdvicePOP3New)
	case q.BeforeUID != 0 || q.AfterUID != 0:
		return nil, x.notPOP3("UIDs", mail.AdvicePOP3Page)
	case q.New && x.m.o.Seen == nil:
		return nil, x.Unsupported("Nothing is kept here about which messages are new.", mail.AdviceBoundTime)
	}
	q.Limit = within(q.Limit, defaultLimit, 1, maxLimit)
	page := &Page{Folder: popFolder}
	var names popNames
	err := x.lend(ctx, true, func(s *pop3.Session) error {
		*page = Page{Folder: popFolder}
		if x.session.skipped > 0 && x.policy.ShowsAll() {
			page.Issues = append(page.Issues, mail.Issue{Kind: mail.KindConnection, Stage: "list",
				Message: fmt.Sprintf("The server gave %d messages no name, and they are left out.", x.session.skipped)})
		}
		var err error
		if names, err = x.seen(ctx, x.m.o.Seen, x.session.list); err != nil {
			return err
		}
		bounded, err := x.between(ctx, s, &q)
		if err != nil {
			return err
		}
		all := slices.Clone(bounded)
		if q.New {
			all = slices.DeleteFunc(all, func(m pop3.Message) bool { return !names.isNew(m.UIDL) })
		}
		if !q.OldestFirst {
			slices.Reverse(all)
		}
		if len(all) > popHeaders && x.policy.ShowsAll() {
			all, page.HasMore = all[:popHeaders], true
			page.Next = x.ref(all[popHeaders-1].UIDL)
		}
		needed := func() int { return popGroup }
		if x.policy.ShowsAll() && !dated(&q) {
			needed = func() int { return q.Limit + 1 - len(page.Messages) } // one more tells whether there is any
		}
		return x.heads(ctx, s, all, needed, &page.Issues, func(h *popHead) bool {
			if !h.dated(&q) {
				return false
			}
			if n := len(page.Messages); n == q.Limit {
				page.HasMore, page.Next = true, page.Messages[n-1].Ref
				if i := slices.Index(all, h.Message); i > 0 && x.policy.ShowsAll() {
					page.Next = x.ref(all[i-1].UIDL) // what could not be read in between is not told again
				}
				return true
			}
			sum := h.summary(q.Full)
			sum.Ref = x.ref(h.UIDL)
			page.Messages = append(page.Messages, sum)
			return false
		})
	})
	if err == nil {
		return page, names.keep(ctx, x.m.o.Seen, x)
	}
	if len(page.Messages) > 0 && partial(ctx, err) {
		page.HasMore, page.Next = true, page.Messages[len(page.Messages)-1].Ref
		page.Issues = append(page.Issues, x.AsError(err).Issue())
		return page, nil
	}
	return nil, err
}

// between is what lies between the messages that a query goes on from, oldest
// first.
func (x *popBox) between(ctx context.Context, s *pop3.Session, q *ListQuery) ([]pop3.Message, error) {
	low, high := 0, len(x.session.list)
	for _, bound := range []struct {
		anchor mail.Ref
		cut    func(place int)
	}{{q.Before, func(place int) { high = place }}, {q.After, func(place int) { low = place + 1 }}} {
		r := bound.anchor
		if r == (mail.Ref{}) {
			continue
		}
		place, there := x.session.places[r.UIDL]
		if r.Protocol != mail.POP3 || r.Account != x.account.Name || !there {
			return nil, x.noAnchor("")
		}
		if !x.policy.ShowsAll() {
			var e *mail.Error
			switch err := x.judge(ctx, s, x.session.list[place]); {
			case errors.As(err, &e) && e.Kind == mail.KindNotFound:
				return nil, x.noAnchor(e.Reason)
			case err != nil:
				return nil, err
			}
		}
		bound.cut(place)
	}
	return x.session.list[min(low, high):high], nil
}

// dated reports whether a message lies within the dates asked for; one that does not
// say when it was sent lies in none.
func (h *popHead) dated(q *ListQuery) bool {
	if !dated(q) {
		return true
	}
	d, ok := h.date()
	return ok && !d.Before(q.Since) && (q.Until.IsZero() || d.Before(q.Until))
}

// named refuses what cannot name a message of a POP3 account.
func (x *popBox) named(ref mail.Ref) error {
	if ref.Protocol != mail.POP3 || ref.UIDL == "" {
		return x.notPOP3("UIDs", mail.AdvicePOP3ID)
	}
	return nil
}

// whole fetches a message that the policy shows.
func (x *popBox) whole(ctx context.Context, ref mail.Ref) (raw []byte, g fetched, err error) {
	if err := x.named(ref); err != nil {
		return nil, g, err
	}
	fetch := func(fresh bool) error {
		return x.lend(ctx, fresh, func(s *pop3.Session) error {
			i, ok := x.session.places[ref.UIDL]
			if !ok {
				return x.noMessage("")
			}
			m := x.session.list[i]
			if m.Size > maxWholeBytes {
				if err := x.judge(ctx, s, m); err != nil {
					return err
				}
				return x.tooLarge()
			}
			var refused error
			err := s.Retrieve(ctx, []int{m.Number}, maxWholeBytes, func(_ int, b []byte, err error) { raw, refused = b, err })
			if err == nil && refused != nil && !x.policy.ShowsAll() {
				return x.noMessage("filtered")
			}
			if err = errors.Join(err, refused); err != nil {
				return err
			}
			if g = popFetched(raw, m); !g.visible(x.policy) {
				raw = nil
				return x.noMessage("filtered")
			}
			g.size = int64(len(raw))
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
func (x *popBox) judge(ctx context.Context, s *pop3.Session, m pop3.Message) error {
	shown := false
	var issues []mail.Issue
	if err := x.heads(ctx, s, []pop3.Message{m}, nil, &issues, func(*popHead) bool { shown = true; return true }); err != nil {
		return err
	}
	if !shown {
		return x.noMessage("filtered")
	}
	return nil
}

func (x *popBox) get(ctx context.Context, ref mail.Ref, q GetQuery) (*Message, error) {
	raw, g, err := x.whole(ctx, ref)
	if err != nil {
		return nil, err
	}
	r := &reading{access: x.access, ref: ref, q: q}
	r.begin(false)
	r.g = g
	r.take(message.Parse(raw), true)
	out := r.compose()
	out.Ref = x.ref(ref.UIDL)
	r.message = out
	r.readPDFs(ctx, x.m.o.PDFText)
	return out, nil
}

func (x *popBox) raw(ctx context.Context, ref mail.Ref, limit int64) (*RawMessage, error) {
	raw, _, err := x.whole(ctx, ref)
	if err != nil {
		return nil, err
	}
	shown := raw[:min(int64(len(raw)), limit)]
	return &RawMessage{Ref: x.ref(ref.UIDL), Size: int64(len(raw)), Source: shown, Truncated: len(shown) < len(raw)}, nil
}

func (x *popBox) attachment(ctx context.Context, ref mail.Ref, part string) (*AttachmentContent, error) {
	raw, _, err := x.whole(ctx, ref)
	if err != nil {
		return nil, err
	}
	e := message.Parse(raw)
	p, err := x.choose(e.Root, part)
	if err != nil {
		return nil, err
	}
	content := message.DecodeBody(e.Raw(p), p.Encoding)
	return &AttachmentContent{Ref: x.ref(ref.UIDL), Attachment: Attachment{PartID: p.ID, Filename: p.Filename,
		ContentType: plain.Line(p.MediaType()), Size: int64(len(content)), Content: content}}, nil
}

// thread groups by the headers of the newest messages (004 section 5).
func (x *popBox) thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	if err := x.named(ref); err != nil {
		return nil, err
	}
	t := &threading{access: x.access, q: q, out: &Thread{Folder: popFolder}}
	var heads []*popHead
	at, kept := -1, 0
	err := x.lend(ctx, true, func(s *pop3.Session) error {
		heads, at, kept, t.out.Issues = nil, -1, 0, nil
		i, ok := x.session.places[ref.UIDL]
		if !ok {
			return x.noMessage("")
		}
		all := x.session.list
		if len(all) > popHeaders && x.policy.ShowsAll() {
			t.cut = true
			newest := all[len(all)-popHeaders:]
			if i < len(all)-popHeaders {
				newest = append([]pop3.Message{all[i]}, newest...)
			}
			all = newest
		}
		err := x.heads(ctx, s, all, nil, &t.out.Issues, func(h *popHead) bool {
			if kept += h.bytes; h.UIDL == ref.UIDL {
				at = len(heads)
			} else if kept > popThreadBytes {
				t.cut = true
				return false
			}
			// What tells conversations apart is told by places instead of UIDs.
			h.uid = uint32(len(heads) + 1)
			heads = append(heads, h)
			return false
		})
		if err == nil && at < 0 {
			err = x.noMessage("filtered")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.ref.UID, t.known = heads[at].uid, map[uint32]*fetched{}
	for _, h := range heads {
		t.known[h.uid] = &h.fetched
	}
	group, parents := t.conversation()
	issues := t.out.Issues
	t.finish(&located{}, &heads[at].fetched, group, parents)
	t.out.Folder, t.out.Issues = popFolder, issues
	for i := range t.out.Messages {
		m := &t.out.Messages[i]
		m.Ref = x.ref(heads[m.Ref.UID-1].UIDL)
		if m.Parent.UID != 0 {
			m.Parent = x.ref(heads[m.Parent.UID-1].UIDL)
		}
	}
	return t.out, nil
}

// folders is the one folder there is. Without UIDs and flags there is nothing to
// count but messages; with a policy that hides some, each is looked at.
func (x *popBox) folders(ctx context.Context, q FolderQuery) (*FolderList, error) {
	list := &FolderList{}
	if !matchesPattern(q.Pattern, popFolder) {
		return list, nil
	}
	folder := Folder{Name: popFolder, Role: "inbox"}
	err := x.lend(ctx, true, func(s *pop3.Session) error {
		if !q.Counts {
			return nil
		}
		n := uint32(len(x.session.list))
		if !x.policy.ShowsAll() {
			n = 0
			var issues []mail.Issue
			if err := x.heads(ctx, s, x.session.list, nil, &issues, func(*popHead) bool { n++; return false }); err != nil {
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

func (x *popBox) header(ctx context.Context, ref mail.Ref) (rfc5322.Header, error) {
	_, g, err := x.whole(ctx, ref)
	return g.header, err
}

// warm makes the one connection there may be; else a session, which locks the
// mailbox, is begun when it is needed.
func (x *popBox) warm(ctx context.Context) error {
	if !x.m.o.OneConnection {
		return nil
	}
	return x.lend(ctx, false, func(*pop3.Session) error { return nil })
}

func (x *popBox) dial(ctx context.Context, done func(capabilities []string)) error {
	// The mailbox is locked while the kept session is open.
	return x.wrap(ctx, x.session.alone(ctx, func(ctx context.Context) error {
		s, err := pop3.Dial(ctx, x.session.cfg)
		if err != nil {
			return err
		}
		done(s.Capabilities())
		_ = s.Close()
		return nil
	}))
}

func (x *popBox) ask(ctx context.Context, done func(capabilities []string)) error {
	return x.lend(ctx, false, func(s *pop3.Session) error {
		err := s.Check(ctx)
		if err == nil {
			done(s.Capabilities())
		}
		return err
	})
}
