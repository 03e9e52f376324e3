package gateway

import (
	"sync"
	"time"
)

// The pace of progress reports.
const (
	// progressAfter is how long a command runs before anything of its progress is
	// told: most are over by then.
	progressAfter = 500 * time.Millisecond
	// progressGap is the least time between two reports.
	progressGap = 250 * time.Millisecond
	// progressBeat is how long a command is silent before its last report is repeated,
	// so that the caller knows that it still runs.
	progressBeat = 5 * time.Second
	// progressEnd is how long the end of a command waits for a report that is being
	// told. One that takes longer is being written: the answer comes behind it.
	progressEnd = time.Second
	// maxUrgent is how much that is told at once may wait to be told.
	maxUrgent = 16
)

// startProgress returns the progress that a command reports to; nil, which does nothing,
// where nobody listens.
func startProgress(to func(done, total float64, message string)) *progress {
	if to == nil {
		return nil
	}
	p := &progress{to: to, news: make(chan struct{}, 1), urgent: make(chan string, maxUrgent), stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.run()
	return p
}

// progress is the latest that a command has reported.
type progress struct {
	to            func(done, total float64, message string)
	news          chan struct{}
	urgent        chan string
	stop, stopped chan struct{}

	mu     sync.Mutex
	latest state
}

type state struct {
	done, total float64
	message     string
}

func (p *progress) now() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest
}

func (p *progress) report(done, total float64, message string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.latest = state{done, total, message}
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default: // there is news already
	}
}

func (p *progress) announce(message string) {
	if p == nil {
		return
	}
	select {
	case p.urgent <- message:
	default: // more than anybody reads
	}
}

// run tells what is urgent at once, and the rest at its pace.
func (p *progress) run() {
	defer close(p.stopped)
	next := time.NewTimer(progressAfter)
	defer next.Stop()
	var told state
	var news chan struct{} // nil while nothing may be told yet
	for {
		beat := false // the same again says that it still runs
		select {
		case m := <-p.urgent:
			p.to(0, 0, m)
			continue
		case <-p.stop:
			for len(p.urgent) > 0 {
				p.to(0, 0, <-p.urgent)
			}
			return
		case <-news:
		case <-next.C:
			beat, news = news != nil, p.news
			next.Reset(progressBeat)
		}
		if now := p.now(); beat || now != told {
			told, news = now, nil
			p.to(now.done, now.total, now.message)
			next.Reset(progressGap)
		}
	}
}

// end returns when nothing more will be told, or what is being told cannot be
// waited for.
func (p *progress) end() {
	if p == nil {
		return
	}
	close(p.stop)
	select {
	case <-p.stopped:
	case <-time.After(progressEnd):
	}
}
