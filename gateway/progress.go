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
	// progressBeat is how long a command says nothing before it is reported once more,
	// so that who waits knows that it still runs.
	progressBeat = 5 * time.Second
	// progressEnd is how long the end of a command waits for a report that is being
	// told. One that takes longer is being written: the answer comes behind it.
	progressEnd = time.Second
	// maxUrgent is how much that is told at once may wait to be told.
	maxUrgent = 16
)

// startProgress returns what a command reports to; nil, which does nothing, where nobody
// listens.
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

// until tells what is urgent until it is time, or there is news where that is wanted.
// It reports false at the end, when everything urgent has been told.
func (p *progress) until(time <-chan time.Time, news <-chan struct{}) bool {
	for {
		select {
		case m := <-p.urgent:
			p.to(0, 0, m)
		case <-news:
			return true
		case <-time:
			return true
		case <-p.stop:
			for {
				select {
				case m := <-p.urgent:
					p.to(0, 0, m)
				default:
					return false
				}
			}
		}
	}
}

func (p *progress) run() {
	defer close(p.stopped)
	wait := time.NewTimer(progressAfter)
	defer wait.Stop()
	if !p.until(wait.C, nil) {
		return
	}
	var told state
	for {
		beat := time.Now().Add(progressBeat)
		wait.Reset(progressBeat)
		// The same again says nothing, before it is time for it.
		for now := told; now == told && time.Now().Before(beat); now = p.now() {
			if !p.until(wait.C, p.news) {
				return
			}
		}
		told = p.now()
		p.to(told.done, told.total, told.message)
		wait.Reset(progressGap)
		if !p.until(wait.C, nil) {
			return
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
