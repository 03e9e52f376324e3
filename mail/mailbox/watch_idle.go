package mailbox

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// The pace of a Watch.
const (
	// PollEvery is how often a server without IDLE is asked for new mail, with one NOOP or
	// EXAMINE: a round trip of about a hundred bytes.
	PollEvery = 15 * time.Second
	// idleTrust is how long a server's silence in IDLE is believed. Then the folder is
	// EXAMINEd again, in the same write as the DONE. This detects a server that is gone,
	// that reports no mail in IDLE, or that has replaced the folder, and keeps the
	// connection alive in the machines between.
	idleTrust = time.Minute
	// lookTime is how long a server has to answer a watch's commands.
	lookTime = 20 * time.Second
	// pause is how long a post waits before it idles again after another command used the
	// session.
	pause = 200 * time.Millisecond
	// attempts is how many times in a row a post may fail before its watchers get the
	// error.
	attempts = 3
)

// pace holds a post's times, which tests change.
type pace struct{ poll, trust, look, pause, retry time.Duration }

var usualPace = pace{poll: PollEvery, trust: idleTrust, look: lookTime, pause: pause, retry: time.Second}

const watchOp = "mail watch"

// errMoved tells a watcher that the account's connections were replaced.
var errMoved = errors.New("the account leads elsewhere now")

// A post watches one folder for all callers that wait for mail in it: it rests in IDLE, and
// lists new messages once, by the account's rules at that time. It ends with its last
// watcher.
type post struct {
	m       *Client
	account string
	folder  string
	pool    *accountPool
	pace    pace
	stop    context.CancelFunc
	wake    chan event // events meanwhile; at most one of each kind counts

	// Of the post's own goroutine:
	instant bool            // a session opened a moment ago need not be asked
	looked  bool            // the folder has been listed since the last wait
	held    context.Context // while this process leads, see lead
	release func()

	mu       sync.Mutex
	watchers map[*watcher]bool
	trouble  error // of the last attempt, nil when it worked
	over     bool
}

// A watcher waits for messages behind a UID.
type watcher struct {
	after    uint32 // what the caller has
	seen     uint32 // the UID up to which all was checked, at least after
	validity uint32
	limit    int
	full     bool
	match    func(*Summary) bool

	came chan arrival // gets one
}

// arrival is how a watcher's wait ends.
type arrival struct {
	page *Page
	err  error
}

type event uint8

const (
	broken event = iota // another command took the session
	joined              // a watcher that has seen less has joined
	news                // the server reported new mail
	due                 // it is time to look again
)

// post joins a watcher to the folder's post, which begins with the first.
func (m *Client) post(ctx context.Context, x *imapBox, folder string, w *watcher) (*post, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ended(x.account.Name)
	}
	if p := x.pool.posts[folder]; p != nil && p.join(w) {
		return p, nil
	}
	// It works for whoever watched first, and tells that one nothing of how far it is.
	ctx, stop := context.WithCancel(mail.WithProgress(context.WithoutCancel(ctx), func(float64, float64, string) {}))
	p := &post{instant: true, m: m, account: x.account.Name, folder: folder, pool: x.pool, pace: m.pace, stop: stop, wake: make(chan event, 8), watchers: map[*watcher]bool{w: true}}
	if x.pool.posts == nil {
		x.pool.posts = make(map[string]*post)
	}
	x.pool.posts[folder] = p
	m.ending.Go(func() { p.run(ctx) })
	return p, nil
}

func (p *post) join(w *watcher) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.watchers[w] = true
	p.tell(joined)
	return true
}

// leave removes a watcher. It returns the error that keeps the post from seeing new mail,
// or nil.
func (p *post) leave(w *watcher) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, w)
	if len(p.watchers) == 0 {
		p.over = true
		p.stop()
	}
	return p.trouble
}

// tell wakes the post. It never blocks: if the channel is full the post is awake anyway,
// and checks more than any event asks for.
func (p *post) tell(e event) {
	select {
	case p.wake <- e:
	default:
	}
}

// needed returns the lowest UID any watcher still needs to see beyond, its UIDVALIDITY, and
// whether a watcher wants full summaries.
func (p *post) needed() (from, validity uint32, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from = 1<<32 - 1
	for w := range p.watchers {
		from, validity, full = min(from, w.seen), w.validity, full || w.full
	}
	return from, validity, full
}

// run watches until no watcher is left.
func (p *post) run(ctx context.Context) {
	defer func() {
		p.stop()
		p.fail(ended(p.account)) // the remaining watchers
		p.yield(ctx)
	}()
	failures := 0
	for {
		err := p.round(ctx)
		if ctx.Err() != nil {
			return
		}
		p.note(err)
		if err == nil {
			failures = 0
			continue
		}
		failures = min(failures+1, attempts)
		p.looked, p.instant = false, false
		var e *mail.Error
		if passing := errors.As(err, &e) && e.Retryable && failures < attempts; !passing && !mail.Away(err) {
			p.fail(err)
			return
		}
		sleep(ctx, p.pace.retry<<(failures-1))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (p *post) note(err error) {
	p.mu.Lock()
	p.trouble = err
	p.mu.Unlock()
}

// fail tells every watcher.
func (p *post) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for w := range p.watchers {
		w.came <- arrival{err: err}
	}
	clear(p.watchers)
}

// open looks the account up as it is now.
func (p *post) open(ctx context.Context) (*imapBox, error) {
	x, err := toWatch[*imapBox](ctx, p.m, p.account)
	if err == nil && x.pool != p.pool {
		err = errMoved
	}
	return x, err
}

// errUnseen says that messages that a watcher waits for may exist.
var errUnseen = errors.New("not everything has been seen")

// round waits for an event, and then lists new messages.
func (p *post) round(ctx context.Context) error {
	x, err := p.open(ctx)
	if err != nil {
		return err
	}
	from, validity, _ := p.needed()
	e, err := p.rest(ctx, x, func(s *imap.Session) error {
		box, err := s.Look(p.folder, p.pace.trust, p.instant && p.held != nil) // who follows is told by no IDLE
		switch {
		case err != nil:
			return err
		case box.UIDNext == 0 && p.looked:
			return imap.ErrNoIdle // if the server does not say, it counts as one without IDLE
		case box.UIDValidity != validity, box.UIDNext == 0, box.UIDNext-1 > from:
			return errUnseen
		}
		return nil
	})
	p.instant, p.looked = true, false
	switch {
	case errors.Is(err, errUnseen):
	case err != nil || ctx.Err() != nil:
		return err
	case e == broken:
		// Other commands need the session; mail that comes meanwhile is found afterwards.
		sleep(ctx, p.pace.pause)
		return nil
	case e == due:
		p.instant = false
		return nil
	case e == joined:
		return nil
	}
	p.looked = true
	err = p.look(ctx)
	if err == nil && p.held != nil { // what came before the look is told of, and what comes later is looked for again
		p.m.leases.Announce(ctx, p.account, p.folder)
	}
	return err
}

// lead lets this process watch the folder for those on other machines, too: it alone rests in
// IDLE, and tells them of what comes, who look for themselves then. Where another one does,
// hear is not nil, and returns nil when that tells something.
func (p *post) lead(ctx context.Context, x *imapBox) (hear func(context.Context) error, err error) {
	if p.held != nil && p.held.Err() == nil {
		return nil, nil
	}
	p.yield(ctx)
	// It listens before it asks: the other one may end meanwhile.
	hear, err = p.m.leases.Follow(ctx, p.account, p.folder)
	held, release, taken := p.m.leases.Idle(ctx, p.account, x.mailbox(), p.folder)
	if taken != nil {
		return hear, err
	}
	p.held, p.release = held, release
	return nil, nil
}

// yield ends the lead. Another process takes it when it is told.
func (p *post) yield(ctx context.Context) {
	if p.held != nil {
		p.release()
		p.held = nil
		p.m.leases.Announce(ctx, p.account, p.folder)
	}
}

// follow is Pool.Rest for a process that does not lead: the folder counts as one of a server
// without IDLE, and until ctx ends this process listens besides.
func (p *post) follow(ctx, asking context.Context, hear func(context.Context) error, ready func(s *imap.Session) error) error {
	if err := p.pool.Lend(asking, p.folder, func(_ context.Context, s *imap.Session) error { return ready(s) }); err != nil {
		return err
	}
	go func() {
		if hear(ctx) == nil {
			p.tell(news)
		}
	}()
	return imap.ErrNoIdle
}

// rest waits in IDLE, or where that is not possible for one poll interval. With an error of
// ready it does not wait.
func (p *post) rest(ctx context.Context, x *imapBox, ready func(s *imap.Session) error) (event, error) {
	hear, err := p.lead(ctx, x)
	if err != nil {
		return 0, err
	}
	// A command in progress is waited for even if the last watcher leaves meanwhile: giving
	// it up would cost the connection.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.pace.look)
	defer cancel()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var leave func(bye bool)
	if hear == nil {
		leave, err = p.pool.Rest(asking, p.folder, ready, func(came bool) {
			if came {
				p.tell(news)
			} else {
				p.tell(broken)
			}
		})
	} else {
		err = p.follow(waiting, asking, hear, ready)
	}
	every := p.pace.trust
	switch {
	case errors.Is(err, imap.ErrNoIdle):
		every, leave = p.pace.poll, func(bool) {}
		if p.held != nil { // another process may be able to rest
			p.release()
			p.held = nil
		}
	case errors.Is(err, errUnseen):
		return 0, err
	case err != nil:
		return 0, x.wrap(asking, err)
	}
	p.note(nil)
	t := time.NewTimer(every)
	defer t.Stop()
	select {
	case e := <-p.wake:
		leave(false)
		return p.drained(e), nil
	case <-t.C:
		leave(false)
		return due, nil
	case <-ctx.Done():
		leave(true)
		return 0, ctx.Err()
	}
}

// drained takes the other pending events, and returns the one that asks for most.
func (p *post) drained(e event) event {
	for {
		select {
		case other := <-p.wake:
			e = max(e, other)
		default:
			return e
		}
	}
}

// list lists the messages after a UID, by the current rules: they may have changed since
// the wait began.
func (p *post) list(ctx context.Context, from uint32, full bool) (*imapBox, *listing, error) {
	for {
		x, err := p.open(ctx)
		if err != nil {
			return nil, nil, err
		}
		looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(p.pace.look, x.account.Timeouts.Socket))
		l := x.listing(ListQuery{Folder: p.folder, After: mail.Ref{UID: from}, Limit: ListLimit.Max, OldestFirst: true, Full: full}, &seeing{})
		err = l.do(looking)
		cancel()
		if err != nil {
			return nil, nil, err
		}
		now, err := p.open(ctx)
		if err != nil {
			return nil, nil, err
		}
		if reflect.DeepEqual(now.account, x.account) {
			return x, l, nil
		}
	}
}

// look lists the messages that some watcher has not seen, and gives each watcher its part.
func (p *post) look(ctx context.Context) error {
	from, _, full := p.needed()
	x, l, err := p.list(ctx, from, full)
	if err != nil {
		return err
	}
	position := l.covered()
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watchers {
		if w.validity != l.page.UIDValidity && w.after == 0 {
			// No known UID could mean another message now. Some servers give an empty
			// folder a new UIDVALIDITY each time.
			w.validity, w.seen = l.page.UIDValidity, 0
		}
		switch page := w.part(l.page); {
		case w.validity != l.page.UIDValidity:
			w.came <- arrival{err: x.MadeAnew(mail.AdviceWatchAnew)}
		case w.seen < from: // a watcher that joined meanwhile has seen less
			continue
		case hasNews(page):
			w.came <- arrival{page: page}
		default:
			w.seen = max(w.seen, position)
			continue
		}
		delete(p.watchers, w)
	}
	if len(p.watchers) == 0 {
		p.over = true
		p.stop()
	}
	return nil
}

// part is a watcher's part of a page. If its limit cuts the page, issues after its last
// message come with the next part, as the other messages do.
func (w *watcher) part(from *Page) *Page {
	p := &Page{Folder: from.Folder, UIDValidity: from.UIDValidity, UIDNext: from.UIDNext, HasMore: from.HasMore}
	for _, i := range from.Issues {
		if i.UID == 0 || i.UID > w.after {
			p.Issues = append(p.Issues, i)
		}
	}
	for _, s := range from.Messages {
		switch {
		case s.Ref.UID <= w.after, w.match != nil && !w.match(&s):
			continue
		case len(p.Messages) == w.limit:
			p.HasMore = true
			last := p.Messages[len(p.Messages)-1].Ref.UID
			p.Issues = slices.DeleteFunc(p.Issues, func(i mail.Issue) bool { return i.UID > last })
			return p
		}
		if !w.full {
			reading.Compact(&s)
		}
		p.Messages = append(p.Messages, s)
	}
	return p
}
