package visible

import (
	"context"
	"strings"
	"sync/atomic"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/quoted"
)

// Work bounds what one command spends on judging documents that strangers wrote: so many steps,
// of which a million takes less than a tenth of a second, until its context ends. A document that
// gets none is shown plainly: all of its text, also what a person would not see. A nil *Work
// bounds each document by itself. It is safe for concurrent use.
type Work struct {
	ctx     context.Context
	left    atomic.Int64
	plainly atomic.Int64
}

// commandSteps is enough for a list of long newsletters.
const commandSteps = 40_000_000

// NewWork begins what a command that ends with ctx may spend.
func NewWork(ctx context.Context) *Work {
	w := &Work{ctx: ctx}
	w.left.Store(commandSteps)
	return w
}

// Plainly returns how many documents were shown plainly.
func (w *Work) Plainly() int {
	if w == nil {
		return 0
	}
	return int(w.plainly.Load())
}

func (w *Work) ended() bool { return w != nil && w.ctx.Err() != nil }

// grant is how many steps of those that a document wants it may have.
func (w *Work) grant(steps int) int {
	switch {
	case w == nil:
		return steps
	case w.ended():
		return 0
	}
	return min(steps, int(max(w.left.Load(), 0)))
}

// show is show of a document that a command reads: where the work for it is spent and it was not
// this document alone that spent it, false.
func (w *Work) show(s string, to writer) (hidden int, cut, judged bool) {
	want := stepsFor(len(s))
	steps := w.grant(want)
	if steps == 0 {
		w.plainly.Add(1)
		return 0, true, false
	}
	p, root, cut := openHTML(s)
	p.work, p.steps = w, steps
	if p.exhausted() {
		hidden, cut = textIn(root), true
	} else {
		p.show(root, p.root, to)
		hidden, cut = p.hidden, cut || to.isFull() || p.exhausted()
	}
	if w == nil {
		return hidden, cut, true
	}
	w.left.Add(int64(max(p.steps, 0) - steps))
	if judged = p.steps >= 0 || steps == want && !w.ended(); !judged {
		w.plainly.Add(1)
	}
	return hidden, cut, judged
}

// stripped is the text of a document without its tags, at most a little more than maxRunes runes.
func stripped(s string, maxRunes int) []quoted.Line {
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(s[:min(len(s), MaxBytes)]))
	skip := ""
	for out.Len() < 4*maxRunes+spare {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch {
		case kind == html.EndTagToken && t.Data == skip:
			skip = ""
		case skip != "":
		case kind == html.StartTagToken && (t.Data == "style" || t.Data == "script" || t.Data == "title" || t.Data == "template"):
			skip = t.Data
		case kind == html.TextToken:
			out.WriteString(strings.Join(strings.FieldsFunc(t.Data, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " "))
		case kind != html.CommentToken && (isBlock(t.Data) || t.Data == "br"):
			out.WriteByte('\n')
		}
	}
	text, _ := plain.Head(plain.Text(out.String()), maxRunes+spare)
	return quoted.Tidy(quoted.Plain(text, false), 1)
}
