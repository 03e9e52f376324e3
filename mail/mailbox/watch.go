package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// WatchQuery says what Watch waits for. The zero query waits for any message of
// INBOX until its context ends.
type WatchQuery struct {
	Folder  string    // empty means INBOX
	After   mail.Ref  // only messages behind this one of the folder; zero means any, and so does a UID of 0
	FromNow bool      // only messages from now on, in place of After
	Limit   int       // 1..500; 0 means 50
	Full    bool      // as for ListQuery
	Until   time.Time // when to answer that nothing has come; zero means never

	Stop  <-chan struct{}       // closed when the answer is wanted at once; nil means never
	Match func(s *Summary) bool // whether a message ends the wait; nil means that any does. It is called on other goroutines

	// Aside runs the wait; nil means a plain call. The function it is given returns when
	// mail came or ctx ends.
	Aside func(ctx context.Context, wait func(context.Context) error) error
}

// WatchPage holds the messages that arrived, oldest first; it may be empty.
type WatchPage struct {
	Page
	// After is that of a Watch that misses no later message, and From that of one that gives
	// these messages again. They reveal no message that the policy hides.
	From, After mail.Ref
}

// Watch returns when a message that the inbound policy shows is in a folder behind a UID:
// at once if one is there, else when it arrives. Flags, expunges and hidden messages do not
// end it. When q.Until passes first, the answer has no messages.
//
// All watches of a folder share one connection, which rests in IDLE and is lent to any
// command that needs it. A server without IDLE is asked every PollEvery, which costs one
// round trip. A broken connection is replaced; when that fails three times, or until
// q.Until, Watch returns the error, since mail may have arrived. Of the processes of several
// machines one rests in IDLE, see Options.Others.
//
// A folder that was replaced is KindConflict, unless the Watch knew no UID of it. POP3 is
// KindUnsupported.
func (m *Client) Watch(ctx context.Context, account string, q WatchQuery) (*WatchPage, error) {
	q.Limit = ListLimit.of(q.Limit)
	x, err := toWatch[notifier](ctx, m, account)
	if err != nil {
		return nil, err
	}
	if q.Folder, err = x.base().folderName(cmp.Or(q.Folder, inbox)); err != nil {
		return nil, err
	}
	return x.watch(ctx, &q)
}

func (x *imapBox) watch(ctx context.Context, q *WatchQuery) (*WatchPage, error) {
	w, page, err := x.firstLook(ctx, q)
	if err != nil || page != nil {
		return page, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if !q.Until.IsZero() {
		waiting, cancel = context.WithDeadline(ctx, q.Until)
		defer cancel()
	}
	go func() {
		select {
		case <-q.Stop:
			cancel()
		case <-waiting.Done():
		}
	}()
	x.Tell(0, 0, "waiting for mail in "+q.Folder)
	wait := func(context.Context) error {
		var err error
		page, err = x.m.await(waiting, x, q, w)
		return err
	}
	if q.Aside != nil {
		err = q.Aside(ctx, wait)
	} else {
		err = wait(ctx)
	}
	if ctx.Err() != nil {
		return nil, x.wrap(ctx, ctx.Err())
	}
	return page, err
}

// toWatch opens an account in which mail can be waited for.
func toWatch[B box](ctx context.Context, m *Client, account string) (B, error) {
	return with[B](ctx, m, watchOp, account, "no way to wait for mail", mail.AdvicePOP3Poll)
}

// firstLook lists the messages already in the folder. If they answer the query it returns
// that page; else the point to wait from.
func (x *imapBox) firstLook(ctx context.Context, q *WatchQuery) (*watcher, *WatchPage, error) {
	lq := ListQuery{Folder: q.Folder, After: mail.Ref{UID: q.After.UID}, Limit: q.Limit, OldestFirst: true, Full: q.Full}
	if q.FromNow {
		lq.After, lq.OldestFirst, lq.Full, lq.Limit = mail.Ref{}, false, false, 1
	}
	l := x.listing(lq, &seeing{})
	err := l.do(ctx)
	if err == nil && q.Match != nil {
		l.page.Messages = slices.DeleteFunc(l.page.Messages, func(s Summary) bool { return !q.FromNow && !q.Match(&s) })
	}
	switch {
	case err != nil:
		return nil, nil, err
	case q.After.UIDValidity != 0 && q.After.UID != 0 && q.After.UIDValidity != l.page.UIDValidity:
		return nil, nil, x.MadeAnew(mail.AdviceWatchAnew)
	case !q.FromNow && hasNews(l.page):
		return nil, x.watched(l.page, q.After.UID), nil
	case l.broken:
		// Messages may follow those that could be read.
		e := x.Failure(mail.KindConnection, imap.StageFetch, "The folder could not be read to its end.", mail.AdviceVerify)
		e.Retryable = true
		return nil, nil, e
	}
	after := q.After.UID
	if q.FromNow {
		after = lastUID(l.page)
	}
	return &watcher{after: after, seen: max(after, l.covered()), validity: l.page.UIDValidity, limit: q.Limit, full: q.Full, match: q.Match, came: make(chan arrival, 1)}, nil, nil
}

// covered is the UID up to which every message has been checked.
func (l *listing) covered() uint32 {
	if l.page.HasMore && l.q.OldestFirst || l.broken {
		return l.reached
	}
	return max(l.reached, max(l.next, 1)-1)
}

// hasNews reports whether a page ends a watch. An unreadable message has arrived as well.
func hasNews(p *Page) bool {
	return len(p.Messages) > 0 || slices.ContainsFunc(p.Issues, func(i mail.Issue) bool { return i.UID != 0 })
}

func (x *imapBox) watched(p *Page, after uint32) *WatchPage {
	out := &WatchPage{Page: *p, After: x.RefTo(p.Folder, p.UIDValidity, max(after, lastUID(p)))}
	if len(p.Messages) > 0 {
		out.From = x.RefTo(p.Folder, p.UIDValidity, p.Messages[0].Ref.UID-1)
	}
	return out
}

// lastUID is the greatest UID on a page; 0 where it has none.
func lastUID(p *Page) uint32 { return slices.Max(append(uidsOf(p), 0)) }

// uidsOf are the UIDs on a page, also of what could not be read.
func uidsOf(p *Page) (uids []uint32) {
	for i := range p.Messages {
		uids = append(uids, p.Messages[i].Ref.UID)
	}
	for _, i := range p.Issues {
		if i.UID != 0 {
			uids = append(uids, i.UID)
		}
	}
	return uids
}

// await waits until ctx ends or mail came.
func (m *Client) await(ctx context.Context, x *imapBox, q *WatchQuery, w *watcher) (*WatchPage, error) {
	for {
		p, err := m.post(ctx, x, q.Folder, w)
		if err != nil {
			return nil, err
		}
		var came arrival
		select {
		case came = <-w.came:
		case <-ctx.Done():
			err = p.leave(w)
			select {
			case came = <-w.came: // at the last moment
			default:
				if err != nil && !errors.Is(err, errMoved) {
					return nil, err
				}
				return x.watched(&Page{Folder: q.Folder, UIDValidity: w.validity}, w.after), nil
			}
		}
		if came.err == nil {
			return x.watched(came.page, w.after), nil
		}
		if !errors.Is(came.err, errMoved) || ctx.Err() != nil {
			return nil, came.err
		}
		// The account has other connections now. If they lead to another server, the known
		// state is of another folder.
		where := x.mailbox()
		if x, err = toWatch[*imapBox](ctx, m, x.Account); err != nil {
			return nil, err
		}
		if x.mailbox() != where {
			return nil, x.MadeAnew(mail.AdviceWatchAnew)
		}
	}
}
