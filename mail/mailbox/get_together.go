package mailbox

import (
	"context"
	"slices"
	"sync"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
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

// gathering is the reads of one folder that share a session. Each read has its own context:
// the work goes on while any of them still waits for it.
type gathering struct {
	folder  string
	ctx     context.Context
	cancel  context.CancelFunc
	members []*reading
	live    int
}

// read joins the reads that wait for a session and returns when this one is done
// or ctx ends.
func (p *accountPool) read(ctx context.Context, r *reading) error {
	done := make(chan struct{})
	r.done = done // from here on the gathering owns the reading
	g := p.join(r)
	select {
	case <-done:
		return r.err
	case <-ctx.Done():
	}
	p.reads.mu.Lock()
	if g.live--; g.live == 0 {
		if p.reads.waiting[g.folder] == g {
			delete(p.reads.waiting, g.folder) // no read may join a gathering that is being given up
		}
		g.cancel()
	}
	p.reads.mu.Unlock()
	return ctx.Err()
}

func (p *accountPool) join(r *reading) *gathering {
	p.reads.mu.Lock()
	defer p.reads.mu.Unlock()
	g := p.reads.waiting[r.ref.Folder]
	// Two reads that request different data of one message do not go together, since the
	// answers would mix.
	if g == nil || len(g.members) == maxGathered || slices.ContainsFunc(g.members, func(o *reading) bool {
		return o.ref.UID == r.ref.UID && (o.q != r.q || o.policy.ShowsAll() != r.policy.ShowsAll())
	}) {
		g = &gathering{folder: r.ref.Folder}
		g.ctx, g.cancel = context.WithCancel(context.Background())
		if p.reads.waiting == nil {
			p.reads.waiting = make(map[string]*gathering)
		}
		p.reads.waiting[r.ref.Folder] = g
		go p.gather(g)
	}
	g.members = append(g.members, r)
	g.live++
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
		if !r.finished && len(members) > 1 && (unreadable(alone) || refusedByServer(alone)) {
			alone = p.readTogether(g, r, true)
		}
		if !r.finished && unreadable(alone) {
			alone = p.readTogether(g, r, false)
		}
		if !r.finished && refusedByServer(alone) && !r.policy.ShowsAll() {
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
		return readAll(s, g.folder, members)
	})
}

// visit opens a folder and fetches from it, in one round trip. The folder is current, and a
// UID names the message it named when box was told: if the folder is already open, visit
// asks the server in the same write whether that still holds, and opens the folder again
// only if not. Opening it each time would work too, but costs servers more the larger the
// folder is; sending a NOOP first would not, since Dovecot answers the commands sent with
// it from the session's earlier state.
func visit(s *imap.Session, folder string, start func() *imap.Fetching) (box imap.Folder, data []*imapclient.FetchMessageBuffer, openErr, fetchErr error) {
	if box, ok := s.Unchanged(folder, false); ok {
		data, current, err := s.Still(start)
		if current || err != nil && !refusedByServer(err) {
			return box, data, nil, err
		}
		s.Renew()
	}
	var opening *imap.Examining
	var fetch *imap.Fetching
	s.Together(func() {
		opening = s.Examine(folder)
		fetch = start()
	})
	box, openErr = opening.Wait()
	data, fetchErr = fetch.Wait()
	return box, data, openErr, fetchErr
}

// readAll reads messages of one folder. The fetched data counts only if the UIDVALIDITY
// turns out to be right.
func readAll(s *imap.Session, folder string, members []*reading) error {
	var requests requestSet
	for _, r := range members {
		requests.add(r.ref.UID, r.options())
	}
	box, data, err, fetchErr := visit(s, folder, func() *imap.Fetching { return requests.start(s) })
	if err != nil {
		return err
	}
	for _, r := range members {
		if r.ref.UIDValidity != 0 && r.ref.UIDValidity != box.UIDValidity {
			r.finish(nil, r.madeAnew(mail.AdviceListAgain))
		}
	}
	if fetchErr != nil {
		return fetchErr
	}
	for _, r := range members {
		if r.finished {
			continue
		}
		if d := dataOf(data, r.ref.UID); d != nil && len(d.BodySection) > 0 {
			ref := r.ref
			ref.UIDValidity = box.UIDValidity
			r.start(readFetched(ref, d))
		} else {
			r.finish(nil, r.noMessage(""))
		}
	}
	return readRest(s, members)
}

// readRest fetches the missing sections, for all the messages at once.
func readRest(s *imap.Session, members []*reading) error {
	for range maxRounds {
		var requests requestSet
		for _, r := range members {
			if r.finished {
				continue
			}
			if sections := r.missing(); len(sections) > 0 {
				requests.add(r.ref.UID, goimap.FetchOptions{BodySection: sections})
			} else {
				r.finish(r.compose(), nil)
			}
		}
		if len(requests.list) == 0 {
			return nil
		}
		s.Renew()
		data, err := requests.start(s).Wait()
		if refusedByServer(err) {
			for _, r := range members {
				if !r.finished {
					r.issues = append(r.issues, r.issue("The server refused a part of the message; what it gave before is shown."))
					r.finish(r.compose(), nil)
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
		for _, r := range members {
			if r.finished {
				continue
			}
			if d := dataOf(data, r.ref.UID); d != nil {
				r.accept(d)
			} else {
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

func dataOf(data []*imapclient.FetchMessageBuffer, uid uint32) *imapclient.FetchMessageBuffer {
	for _, d := range data {
		if uint32(d.UID) == uid {
			return d
		}
	}
	return nil
}

// requestSet collects the requests of several readings. Messages with the same request
// share a FETCH, and two readings of one message share a request.
type requestSet struct{ list []imap.FetchRequest }

func (q *requestSet) add(uid uint32, opts goimap.FetchOptions) {
	if slices.ContainsFunc(q.list, func(r imap.FetchRequest) bool { return r.UIDs.Contains(goimap.UID(uid)) }) {
		return
	}
	for i, r := range q.list {
		if sameOptions(r.Options, opts) {
			q.list[i].UIDs.AddNum(goimap.UID(uid))
			return
		}
	}
	q.list = append(q.list, imap.FetchRequest{UIDs: imap.UIDs(uid), Options: opts})
}

func (q *requestSet) start(s *imap.Session) *imap.Fetching { return s.FetchEach(q.list) }

func sameOptions(a, b goimap.FetchOptions) bool {
	return a.Flags == b.Flags && a.InternalDate == b.InternalDate && a.RFC822Size == b.RFC822Size &&
		(a.BodyStructure == nil) == (b.BodyStructure == nil) && slices.EqualFunc(a.BodySection, b.BodySection, sameSection)
}

func sameSection(a, b *goimap.FetchItemBodySection) bool {
	return a.Specifier == b.Specifier && slices.Equal(a.Part, b.Part) && slices.Equal(a.HeaderFields, b.HeaderFields) &&
		(a.Partial == nil) == (b.Partial == nil) && (a.Partial == nil || *a.Partial == *b.Partial)
}
