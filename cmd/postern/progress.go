package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
)

// The pace of the progress line.
const (
	lineAfter = time.Second            // nothing is shown of what takes less
	lineEvery = 250 * time.Millisecond // how often it moves
)

// progressLine is the one line on a terminal's standard error that says how far a
// command is. It is erased whenever something else is written, and at the end.
type progressLine struct {
	process *process
	start   time.Time
	cancel  context.CancelFunc
	stopped chan struct{}

	mu          sync.Mutex
	done, total float64
	what        string
	drawn       bool
	quiet       int // somebody else has the terminal
}

// progress shows on standard error, where that is a terminal, how far the command is
// whose Request has the line's listener.
func (p *process) progress(ctx context.Context) *progressLine {
	l := &progressLine{process: p, start: time.Now()}
	if name := p.getenv("TERM"); !terminal.Is(p.stderr) || name == "dumb" || name == "" {
		return l
	}
	var drawing context.Context
	drawing, l.cancel = context.WithCancel(ctx)
	l.stopped = make(chan struct{})
	p.line.Store(l)
	go l.run(drawing)
	return l
}

// listener is what the command reports to; nil where nothing is shown.
func (l *progressLine) listener() func(done, total float64, what string) {
	if l.cancel == nil {
		return nil
	}
	return l.report
}

// end erases the line for good.
func (l *progressLine) end() {
	if l.cancel == nil {
		return
	}
	l.cancel()
	<-l.stopped
	l.process.line.CompareAndSwap(l, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *progressLine) report(done, total float64, what string) {
	l.mu.Lock()
	l.done, l.total, l.what = done, total, what
	l.mu.Unlock()
}

func (l *progressLine) run(ctx context.Context) {
	defer close(l.stopped)
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	for frame := 0; ; frame++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if time.Since(l.start) >= lineAfter {
			l.draw(frame)
		}
	}
}

func (l *progressLine) draw(frame int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quiet > 0 {
		return
	}
	width, _ := terminal.Size(l.process.stderr)
	fmt.Fprint(l.process.stderr, "\r"+screen.Cut(l.text(frame), width-1)+"\x1b[K")
	l.drawn = true
}

// text is what the line says.
func (l *progressLine) text(frame int) string {
	s := fmt.Sprintf("%c %d s", `|/-\`[frame%4], int(time.Since(l.start).Seconds()))
	if l.what != "" {
		s += "  " + screen.Line(l.what)
	}
	switch {
	case l.total > 0:
		s += fmt.Sprintf("  %d%%", int(100*min(1, l.done/l.total)))
	case l.done > 0:
		s += fmt.Sprintf("  %.0f", l.done)
	}
	return s + "  (Ctrl-C stops)"
}

// erase takes the line off the terminal. The lock is held.
func (l *progressLine) erase() {
	if l.drawn {
		fmt.Fprint(l.process.stderr, "\r\x1b[K")
		l.drawn = false
	}
}

// aside has the terminal to itself until resume: there is no line meanwhile.
func (p *process) aside() (resume func()) {
	l := p.line.Load()
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet++
	l.erase()
	return func() {
		l.mu.Lock()
		l.quiet--
		l.mu.Unlock()
	}
}

// tell says something on standard error while a command runs.
func (p *process) tell(text string) {
	defer p.aside()()
	_, _ = io.WriteString(p.stderr, text+"\n")
}
