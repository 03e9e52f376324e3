package mailbox

import (
	"cmp"
	"context"
	"slices"
	"sync"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// maxGathered bounds the messages that one FETCH reads.
const maxGathered = 100

// readQueue gathers the reads of each folder that wait for a session, so that fifty at once
// are a few FETCHes and not fifty turns (the first goes alone, the others together after
// it). Its zero value is ready.
type readQueue struct {
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
	members []*reading
	calls   int // that still wait
}

// read joins the reads that wait for a session and returns when all of these are done or
// ctx ends. Each then has its own result.
func (p *accountPool) read(ctx context.Context, all []*reading) error {
	if len(all) == 0 {
		return nil
	}
	done := make([]chan struct{}, len(all))
	for i, r := range all {
		done[i] = make(chan struct{})
		r.done = done[i] // from join on the gathering owns the reading
	}
	g := p.join(all)
	for i := range all {
		select {
		case <-done[i]:
			continue
		case <-ctx.Done():
		}
		p.reads.mu.Lock()
		defer p.reads.mu.Unlock()
		if g.calls--; g.calls == 0 {
			if p.reads.waiting[g.folder] == g {
				delete(p.reads.waiting, g.folder) // no read may join a gathering that is being given up
			}
			g.cancel()
		}
		return ctx.Err()
	}
	return nil
}

func (p *accountPool) join(all []*reading) *gathering {
	p.reads.mu.Lock()
	defer p.reads.mu.Unlock()
	folder := all[0].ref.Folder
	if slices.ContainsFunc(all, func(r *reading) bool { return r.ref.Folder != folder }) {
		folder = ""
	}
	g := p.reads.waiting[folder]
	// Two reads that request different data of one message do not go together, since the
	// answers would mix.
	if g == nil || folder == "" || len(g.members)+len(all) > maxGathered || slices.ContainsFunc(g.members, func(o *reading) bool {
		return slices.ContainsFunc(all, func(r *reading) bool {
			return o.ref.UID == r.ref.UID && (o.q != r.q || o.policy.ShowsAll() != r.policy.ShowsAll() || o.policy.Judges() != r.policy.Judges())
		})
	}) {
		g = &gathering{folder: folder}
		g.ctx, g.cancel = context.WithCancel(context.Background())
		if p.reads.waiting == nil {
			p.reads.waiting = make(map[string]*gathering)
		}
		if folder != "" {
			p.reads.waiting[folder] = g
		}
		go p.gather(g)
	}
	g.members = append(g.members, all...)
	g.calls++
	return g
}

// leave takes the gathering out of the queue: no read joins it any more.
func (p *accountPool) leave(g *gathering) []*reading {
	p.reads.mu.Lock()
	defer p.reads.mu.Unlock()
	if p.reads.waiting[g.folder] == g {
		delete(p.reads.waiting, g.folder)
	}
	return g.members
}

// gather does the reads. If the answer for several cannot be parsed, it reads each by
// itself, so that a broken message costs no other; if the answer for one cannot be parsed,
// it reads that one without its structure, the part that broken and hostile messages make
// unreadable.
func (p *accountPool) gather(g *gathering) {
	defer g.cancel()
	err := p.readTogether(g, nil, true)
	members := p.leave(g)
	for _, r := range members {
		alone := err
		if !r.finished && len(members) > 1 && (unreadable(alone) || imap.Refused(alone)) {
			alone = p.readTogether(g, r, true)
		}
		if !r.finished && unreadable(alone) {
			alone = p.readTogether(g, r, false)
		}
		if !r.finished && imap.Refused(alone) && !r.policy.ShowsAll() {
			// The policy could not judge the message, and an error would reveal that it
			// exists.
			r.finish(nil, r.noMessage("filtered"))
		}
		if !r.finished {
			r.finish(nil, alone)
		}
		close(r.done)
	}
}

// readTogether reads every member of the gathering, or only one, on a session.
func (p *accountPool) readTogether(g *gathering, one *reading, structure bool) error {
	return p.Lend(g.ctx, g.folder, func(_ context.Context, s *imap.Session) error {
		members := p.leave(g)
		if one != nil {
			members = []*reading{one}
		}
		for _, r := range members {
			if err := (&imapBox{r.access, p}).findOwn(s, g.folder); err != nil {
				return err
			}
			r.begin(structure)
		}
		return readAll(s, members)
	})
}

// readAll reads messages of one or more folders. The fetched data counts only if the
// UIDVALIDITY turns out to be right. The error is that of readings that are not finished.
func readAll(s *imap.Session, members []*reading) error {
	var all fetch.Visits
	for _, r := range members {
		all.To(r.ref.Folder, 0).Fetch(r.ref.UID, r.options())
	}
	if len(all) == 1 {
		v := all[0]
		if v.Box, v.Data, v.Err, v.Refused = fetch.Now(s, v.Folder, func() *imap.Fetching { return s.FetchEach(v.Requests) }); v.Err != nil {
			return v.Err
		}
	} else if err := all.Start(s, nil); err != nil {
		return err
	}
	var readable []*reading
	var refused error
	for _, r := range members {
		v, ref := all.To(r.ref.Folder, 0), r.ref
		ref.UIDValidity = v.Box.UIDValidity
		switch d := fetch.DataOf(v.Data, ref.UID); {
		case v.Err != nil:
			r.finish(nil, v.Err)
		case r.ref.UIDValidity != 0 && r.ref != ref:
			r.finish(nil, r.madeAnew(mail.AdviceListAgain))
		case v.Refused != nil:
			refused = v.Refused
		case d == nil || len(d.BodySection) == 0:
			r.finish(nil, r.noMessage(""))
		default:
			r.start(fetch.Read(ref, d))
			readable = append(readable, r)
		}
	}
	return cmp.Or(readRest(s, readable), refused)
}

// readRest fetches the missing sections, for all the messages at once.
func readRest(s *imap.Session, members []*reading) error {
	for range maxRounds {
		var all fetch.Visits
		for _, r := range members {
			if r.finished {
				continue
			}
			if sections := r.missing(); len(sections) > 0 {
				all.To(r.ref.Folder, r.g.Ref.UIDValidity).Fetch(r.ref.UID, goimap.FetchOptions{BodySection: sections})
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
			v := all.To(r.ref.Folder, 0)
			switch d := fetch.DataOf(v.Data, r.ref.UID); {
			case v.Err == fetch.ErrReplaced:
				r.finish(nil, r.madeAnew(mail.AdviceListAgain))
			case v.Err != nil || v.Refused != nil:
				r.issues = append(r.issues, r.issue("The server refused a part of the message; what it gave before is shown."))
				r.finish(r.compose(), nil)
			case d != nil:
				r.accept(d)
			default:
				r.finish(nil, r.noMessage("")) // it vanished in between
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
