package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// ask has do exchange a message within the time of a step, counts lost answers, and
// checks answers of the tool against the invariants.
func (r *runner) ask(ctx context.Context, s *session, sent string, ofTool bool, limited bool, do func(context.Context) answer) answer {
	for try := 0; ; try++ {
		stepCtx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
		a := do(stepCtx)
		cancel()
		r.report.Messages++
		if a.doc == nil {
			a.doc = map[string]any{}
		}
		a.doc["outcome"] = a.outcome
		a.doc["faults"] = []any{}
		if s != nil {
			a.doc["faults"] = s.takeFaults()
		}
		if sent != "" {
			a.doc["sent"] = sent
		}
		if a.outcome == OutcomeLost {
			if s != nil {
				s.dead = true
			}
			return a
		}
		r.lost = 0
		if limited && try < 5 && a.doc["code"] == "RATE_LIMITED" && r.wait(ctx, a.doc) {
			continue
		}
		if ofTool {
			if a.doc["bare"] == true && !r.bare {
				r.bare = true
				r.note("answers come without the envelope of section 5: the categories Parser, Security and Discovery are judged by isError and the text")
			}
			r.observe(a.doc)
		}
		return a
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// wait waits as long as a rate limit asks, unless that is too long.
func (r *runner) wait(ctx context.Context, doc map[string]any) bool {
	seconds, err := strconv.Atoi(digits.FindString(textAt(doc, "/error/hint")))
	if err != nil || seconds < 1 {
		seconds = 1
	}
	d := time.Duration(seconds) * time.Second
	if d > maxRateWait {
		return false // such as an hourly limit: this answer counts
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxExamples bounds the examples of errors that are checked.
const maxExamples = 500

// observe checks one answer against the invariants, and keeps an error's examples.
func (r *runner) observe(doc map[string]any) {
	for _, e := range texts(doc, "/error/examples") {
		if len(r.examples) < maxExamples && !slices.Contains(r.examples, e) {
			r.examples = append(r.examples, e)
		}
	}
	for _, i := range r.invariants {
		if i.c.For.Where != nil {
			if miss, err := i.c.For.Where.match(i.c.inForm(doc), nil); err != nil || len(miss) > 0 {
				r.fault(i.c, err)
				continue
			}
		}
		i.result.Asked++
		miss, err := i.c.judge(i.c.Expect, doc, nil)
		r.fault(i.c, err)
		if len(miss) > 0 {
			sent, _ := doc["sent"].(string)
			i.result.fail(Finding{Sent: clip(sent, 300), Got: r.excerpt(doc), Mismatches: miss})
		}
	}
}

// fault records a case that cannot be run as written.
func (r *runner) fault(c *Case, err error) {
	if err != nil && r.fatal == nil {
		r.fatal = fmt.Errorf("%s: case %s: %w", c.File, c.ID, err)
	}
}

func (r *runner) excerpt(doc map[string]any) string {
	for _, name := range []string{"text", "result", "rpc_error"} {
		if v, ok := doc[name]; ok {
			if text, ok := v.(string); ok {
				return clip(text, 600)
			}
			return clip(show(v), 600)
		}
	}
	return ""
}

// command sends a command string on the shared session, as learning does.
func (r *runner) command(ctx context.Context, command string) answer {
	if r.gone || ctx.Err() != nil {
		return lost("not asked")
	}
	s, a := r.sharedSession(ctx)
	if s != nil {
		a = r.ask(ctx, s, command, true, true, func(ctx context.Context) answer { return s.tool(ctx, commandArguments(command)) })
	}
	r.countLost(a)
	return a
}

func (r *runner) countLost(a answer) {
	if a.outcome != OutcomeLost {
		return
	}
	if r.lost++; r.lost >= r.o.MaxLost && !r.gone {
		r.gone = true
		r.note("nothing more was asked after %d answers were lost in succession, the last: %s", r.lost, a.detail)
	}
}

func commandArguments(command string) json.RawMessage {
	b, err := marshalPlain(map[string]string{"command": command})
	if err != nil {
		panic(err) // a string has a JSON form
	}
	return b
}

// tool calls the tool with arguments; nil for a call without any.
func (s *session) tool(ctx context.Context, arguments json.RawMessage) answer {
	params := `{"name":` + show(s.called)
	if arguments != nil {
		params += `,"arguments":` + string(arguments)
	}
	return s.request(ctx, "tools/call", json.RawMessage(params+"}"))
}
