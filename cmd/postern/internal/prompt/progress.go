package prompt

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/gateway"
)

// The pace of the progress line.
const (
	lineAfter = time.Second            // nothing is shown of what takes less
	lineEvery = 250 * time.Millisecond // how often it moves
)

// Progress is the line on a terminal's standard error that says how far a command is.
// It is erased whenever something else is written, and at the end.
type Progress struct {
	out   io.Writer
	shows bool

	mu          sync.Mutex
	start       time.Time // of the command
	done, total float64
	what        string
	drawn       bool
	quiet       int // others that have the terminal
}

// NewProgress shows progress on out where that is a terminal that can erase a line.
func NewProgress(out io.Writer, getenv func(string) string) *Progress {
	return &Progress{out: out, shows: terminal.Is(out) && terminal.Draws(getenv)}
}

// Do runs a command at a door, and shows meanwhile how far it is. One command is run at
// a time.
func (p *Progress) Do(ctx context.Context, d Door, r gateway.Request) gateway.Answer {
	r.Principal = d.Principal
	if !p.shows {
		return d.Gateway.Do(ctx, r)
	}
	p.mu.Lock()
	p.start, p.done, p.total, p.what = time.Now(), 0, 0, ""
	p.mu.Unlock()
	r.Progress = p.report
	over := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(lineEvery)
		defer tick.Stop()
		for frame := 0; ; frame++ {
			select {
			case <-tick.C:
				p.draw(frame)
			case <-over:
				return
			}
		}
	})
	defer func() {
		close(over)
		drawing.Wait()
		p.Aside()()
	}()
	return d.Gateway.Do(ctx, r)
}

func (p *Progress) report(done, total float64, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.what = done, total, what
}

func (p *Progress) draw(frame int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet > 0 || time.Since(p.start) < lineAfter {
		return
	}
	width, _ := terminal.Size(p.out)
	fmt.Fprint(p.out, "\r"+screen.Cut(p.text(frame), width-1)+"\x1b[K")
	p.drawn = true
}

// text is what the line says.
func (p *Progress) text(frame int) string {
	s := fmt.Sprintf("%c %d s", `|/-\`[frame%4], int(time.Since(p.start).Seconds()))
	if p.what != "" {
		s += "  " + screen.Line(p.what)
	}
	switch {
	case p.total > 0:
		s += fmt.Sprintf("  %d%%", int(100*min(1, p.done/p.total)))
	case p.done > 0:
		s += fmt.Sprintf("  %.0f", p.done)
	}
	return s + "  (Ctrl-C stops)"
}

// erase takes the line off the terminal. The lock is held.
func (p *Progress) erase() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// Aside hides the line until resume, for other output on the terminal.
func (p *Progress) Aside() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet++
	p.erase()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.quiet--
	}
}

// Tell says something on standard error while a command runs.
func (p *Progress) Tell(text string) {
	defer p.Aside()()
	_, _ = io.WriteString(p.out, text+"\n")
}
