package reading

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// maxGathered bounds the messages that one FETCH reads.
const maxGathered = 100

// Queue gathers the reads of each folder that wait for a session, so that fifty at once
// are a few FETCHes and not fifty turns (the first goes alone, the others together after
// it).
type Queue struct {
	Pool    *imap.Pool
	mu      sync.Mutex
	waiting map[string]*gathering // by folder
}

// gathering is reads that share a session: those of one folder, or one call's reads of
// several. Each call has its own context: the work goes on while any of them still waits
// for it.
type gathering struct {
	folder  string // empty for several
	ctx     context.Context
	cancel  context.CancelFunc
	members []*Reading
	calls   int // that still wait
}

// Read joins the reads that wait for a session and returns when all of these are done or
// ctx ends. Each then has its own result; where other calls still wait for the same, the end
// of ctx is the error of all.
func (q *Queue) Read(ctx context.Context, all []*Reading) error {
	if len(all) == 0 {
		return nil
	}
	done := make([]chan struct{}, len(all))
	for i, r := range all {
		done[i] = make(chan struct{})
		r.done = done[i] // from join on the gathering owns the reading
	}
	g := q.join(ctx, all)
	for i := range all {
		select {
		case <-done[i]:
			continue
		case <-ctx.Done():
		}
		if !q.giveUp(g) {
			return ctx.Err()
		}
		for _, ended := range done {
			<-ended // soon: nothing is waited for any more
		}
		for _, r := range all {
			if r.Err != nil && !errors.As(r.Err, new(*mail.Error)) {
				r.Err = ctx.Err()
			}
		}
		break
	}
	return nil
}

// giveUp takes a call from a gathering, and ends the gathering when it was the last.
func (q *Queue) giveUp(g *gathering) (ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if g.calls--; g.calls > 0 {
		return false
	}
	if q.waiting[g.folder] == g {
		delete(q.waiting, g.folder) // no read may join a gathering that is being given up
	}
	g.cancel()
	return true
}

func (q *Queue) join(ctx context.Context, all []*Reading) *gathering {
	q.mu.Lock()
	defer q.mu.Unlock()
	folder := all[0].Ref.Folder
	if slices.ContainsFunc(all, func(r *Reading) bool { return r.Ref.Folder != folder }) {
		folder = ""
	}
	g := q.waiting[folder]
	// Two reads that request different data of one message do not go together, since the
	// answers would mix.
	if g == nil || folder == "" || len(g.members)+len(all) > maxGathered || slices.ContainsFunc(g.members, func(o *Reading) bool {
		return slices.ContainsFunc(all, func(r *Reading) bool {
			return o.Ref.UID == r.Ref.UID && (o.Query != r.Query || o.Bare != r.Bare || o.Policy.ShowsAll() != r.Policy.ShowsAll() || o.Policy.Judges() != r.Policy.Judges())
		})
	}) {
		g = &gathering{folder: folder}
		g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if q.waiting == nil {
			q.waiting = make(map[string]*gathering)
		}
		if folder != "" {
			q.waiting[folder] = g
		}
		go q.gather(g)
	}
	g.members = append(g.members, all...)
	g.calls++
	return g
}

// leave takes the gathering out of the queue: no read joins it any more.
func (q *Queue) leave(g *gathering) []*Reading {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[g.folder] == g {
		delete(q.waiting, g.folder)
	}
	return g.members
}

// gather does the reads. If the answer for several cannot be parsed, it reads each by
// itself, so that a broken message costs no other; if the answer for one cannot be parsed,
// it reads that one without its structure, the part that broken and hostile messages make
// unreadable.
func (q *Queue) gather(g *gathering) {
	defer g.cancel()
	err := q.readTogether(g, nil, true)
	members := q.leave(g)
	for _, r := range members {
		alone := err
		if !r.finished && len(members) > 1 && (imap.Unreadable(alone) || imap.Refused(alone)) {
			alone = q.readTogether(g, r, true)
		}
		if !r.finished && imap.Unreadable(alone) {
			alone = q.readTogether(g, r, false)
		}
		if !r.finished && imap.Refused(alone) && !r.Policy.ShowsAll() {
			// The policy could not judge the message, and an error would reveal that it
			// exists.
			r.finish(nil, r.NoMessage("filtered"))
		}
		if !r.finished {
			r.finish(nil, alone)
		}
		close(r.done)
	}
}

// readTogether reads every member of the gathering, or only one, on a session.
func (q *Queue) readTogether(g *gathering, one *Reading, structure bool) error {
	return q.Pool.Lend(g.ctx, g.folder, func(_ context.Context, s *imap.Session) error {
		members := q.leave(g)
		if one != nil {
			members = []*Reading{one}
		}
		for _, r := range members {
			if err := r.Ready(s, g.folder); err != nil {
				return err
			}
			r.begin(structure)
		}
		return readAll(s, members)
	})
}

// readAll reads messages of one or more folders. The fetched data counts only if the
// UIDVALIDITY turns out to be right. The error is that of readings that are not finished.
func readAll(s *imap.Session, members []*Reading) error {
	var all fetch.Visits
	var broken error
	for _, r := range members {
		all.To(r.Ref.Folder, 0).Fetch(r.Ref.UID, r.items())
	}
	if len(all) == 1 {
		v := all[0]
		if v.Box, v.Data, v.Err, v.Refused = fetch.Now(s, v.Folder, func() *imap.Fetching { return s.FetchEach(v.Requests) }); v.Err != nil {
			return v.Err
		}
		if !imap.Refused(v.Refused) {
			broken = v.Refused
		}
	} else {
		broken = all.Start(s, nil)
	}
	var readable []*Reading
	var refused error
	for _, r := range members {
		v, ref := all.To(r.Ref.Folder, 0), r.Ref
		ref.UIDValidity = v.Box.UIDValidity
		switch d := fetch.DataOf(v.Data, ref.UID); {
		case v.Err != nil && broken == nil:
			r.finish(nil, v.Err)
		case r.Ref.UIDValidity != 0 && r.Ref != ref:
			r.finish(nil, r.MadeAnew(mail.AdviceListAgain))
		case broken != nil && (v.Err != nil || d == nil || len(d.Sections) == 0):
		case v.Refused != nil && broken == nil:
			refused = v.Refused
		case d == nil || len(d.Sections) == 0:
			r.finish(nil, r.NoMessage(""))
		default:
			r.Start(fetch.Read(ref, d))
			readable = append(readable, r)
		}
	}
	return cmp.Or(broken, Rest(s, readable), refused)
}

// Rest fetches the missing sections, for all the messages at once.
func Rest(s *imap.Session, members []*Reading) error {
	for range maxRounds {
		var all fetch.Visits
		for _, r := range members {
			if r.finished {
				continue
			}
			if sections := r.missing(); len(sections) > 0 {
				all.To(r.Ref.Folder, r.Got.Ref.UIDValidity).Fetch(r.Ref.UID, imap.Items{Sections: sections})
			} else {
				r.finish(r.compose(), nil)
			}
		}
		if len(all) == 0 {
			return nil
		}
		if err := all.Start(s, nil); err != nil {
			return err
		}
		for _, r := range members {
			if r.finished {
				continue
			}
			v := all.To(r.Ref.Folder, 0)
			switch d := fetch.DataOf(v.Data, r.Ref.UID); {
			case v.Err == fetch.ErrReplaced:
				r.finish(nil, r.MadeAnew(mail.AdviceListAgain))
			case v.Err != nil || v.Refused != nil:
				r.issues = append(r.issues, r.issue("The server refused a part of the message; what it gave before is shown."))
				r.finish(r.compose(), nil)
			case d != nil:
				r.accept(d)
			default:
				r.finish(nil, r.NoMessage("")) // it vanished in between
			}
		}
	}
	for _, r := range members {
		if !r.finished {
			r.finish(r.compose(), nil)
		}
	}
	return nil
}

// Excerpts reads the excerpt of each message that the policy shows, out of messages that
// were fetched with fetch.Wanted.Text; what is missing it fetches for all of them at once. A
// message that cannot be read has none.
func (x *Viewer) Excerpts(s *imap.Session, e Excerpt, got []*fetch.Message, structure bool) (map[mail.Ref]*Message, error) {
	var members []*Reading
	for _, g := range got {
		if g.Readable && x.Policy.Sees(g) {
			r := e.Begin(x, g, structure)
			r.Start(*g)
			members = append(members, r)
		}
	}
	err := Rest(s, members)
	out := make(map[mail.Ref]*Message, len(members))
	for _, r := range members {
		if r.Message != nil {
			out[r.Ref] = r.Message
		}
	}
	return out, err
}

// ReadTexts reads the texts of messages as a search needs them, together. One that cannot be
// read has none.
func (x *Viewer) ReadTexts(s *imap.Session, all []*fetch.Message, structure bool) ([]*Reading, error) {
	var members []*Reading
	for _, g := range all {
		r := Excerpt{Chars: MaxBodyChars, Lines: true, whole: true}.Begin(x, g, structure)
		r.Start(*g)
		members = append(members, r)
	}
	return members, Rest(s, members)
}
