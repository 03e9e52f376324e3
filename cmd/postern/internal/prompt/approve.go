package prompt

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/cmd/postern/internal/orderedjson"
	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
)

// The person on a terminal who holds the administrator's key approves what is sent:
// 'outbox approve ID', without the code, shows the message and asks, and a send or a deletion
// that needs a person's word asks at once. A person with only the agent's key is not asked:
// an agent can have a terminal too.

// mayAsk reports whether commands may ask the person at the prompt.
func (c *conversation) mayAsk() bool { return c.Principal.Admin && !c.JSON }

// approves returns the arguments of an 'outbox approve' without the code.
func (c *conversation) approves(line string) (rest []string, ok bool) {
	_, found, err := c.resolve(line)
	if err != nil || !c.mayAsk() || found.Command == nil || found.Command.Path != "outbox approve" || len(found.Rest) != 1 || strings.HasPrefix(found.Rest[0], "-") {
		return nil, false
	}
	return found.Rest, true
}

// approve shows a message of the outbox whole, and sends it if the person says so.
func (c *conversation) approve(ctx context.Context, id []string) {
	o, ok := c.whole(ctx, id)
	if !ok {
		return
	}
	shown := c.look().Draw(orderedjson.Object{{Name: "success", Value: true}, {Name: "data", Value: o}}, "outbox show")
	state := o.Str("state")
	if state != "waiting" && state != "queued" && state != "unknown" || o.Str("code") == "" {
		_, _ = io.WriteString(c.Stdout, shown)
		return
	}
	question := "Send exactly this? y sends it, anything else leaves it as it is: "
	if o.Str("kind") == "delete" {
		question = "Delete exactly these for good? y deletes them, anything else leaves them as they are: "
	} else if state == "unknown" {
		question = "It may have arrived already. Send it again? y sends it, anything else leaves it as it is: "
	}
	if c.decide(ctx, strings.TrimRight(shown, "\n"), question) != discovery.Accepted {
		c.status = discovery.ApprovalRequired.ExitStatus()
		fmt.Fprintln(c.Stdout, "Nothing was done. 'outbox reject "+o.Str("outbox_id")+"' refuses it for good.")
		return
	}
	line := discovery.JoinCommand([]string{"outbox", "approve", o.Str("outbox_id"), "--code", o.Str("code")})
	c.show(c.do(ctx, line), line)
}

// whole is the answer of 'outbox show' with all of the text, however many calls that takes.
// If it fails, the person has been told.
func (c *conversation) whole(ctx context.Context, id []string) (data orderedjson.Object, ok bool) {
	all, chars := "", 0
	for digest := ""; ; {
		line := discovery.JoinCommand(append([]string{"outbox", "show", "--offset", strconv.Itoa(chars)}, id...))
		a := c.do(ctx, line)
		a.Delivered()
		v, err := orderedjson.Decode(a.JSON)
		o, _ := v.(orderedjson.Object)
		data, _ = o.Get("data").(orderedjson.Object)
		part, isText := data.Get("text").(string)
		if err != nil || !a.Success() || !isText || digest != "" && data.Str("digest") != digest {
			c.show(a, line)
			return nil, false
		}
		digest = data.Str("digest")
		all += part
		chars += utf8.RuneCountInString(part)
		if data.Get("truncated") == true && part != "" {
			continue
		}
		data = slices.DeleteFunc(data, func(m orderedjson.Member) bool {
			return m.Name == "text" || m.Name == "next_action" || m.Name == "truncated"
		})
		if n := data.Get("text_chars"); n != nil && fmt.Sprint(n) != strconv.Itoa(chars) {
			fmt.Fprintln(c.Stdout, "Not all of the text could be read. Nothing was sent.")
			return nil, false
		}
		return append(data, orderedjson.Member{Name: "text", Value: all}), true
	}
}

// ask puts a command's question. A line typed before the question was shown does not answer
// it.
func (c *conversation) ask(ctx context.Context, q string) discovery.Verdict {
	var lines []string
	width := c.look().Width
	for l := range strings.SplitSeq(strings.TrimRight(q, "\n"), "\n") {
		mark, rest := "", screen.Visible(l)
		for _, m := range []string{"> ", "        > "} {
			if r, ok := strings.CutPrefix(rest, m); ok {
				mark, rest = m, r
			}
		}
		for _, part := range screen.Wrap(rest, width-len(mark)) {
			lines = append(lines, strings.TrimRight(mark+part, " "))
		}
	}
	return c.decide(ctx, strings.TrimRight(strings.Join(lines, "\n"), "\n"), "y approves it, n refuses it, Enter leaves it in the outbox: ")
}

// decide shows lines, a page at a time, and asks when the last of them was shown.
func (c *conversation) decide(ctx context.Context, shown, question string) discovery.Verdict {
	if !c.page(ctx, strings.Split(shown, "\n")) {
		fmt.Fprintln(c.Stdout, "Not all of it was shown, so you are not asked.")
		return discovery.Unanswered
	}
	switch strings.ToLower(strings.TrimSpace(c.typed(ctx, question))) {
	case "y", "yes":
		return discovery.Accepted
	case "n", "no":
		return discovery.Declined
	}
	return discovery.Unanswered
}

// typed is the person's answer to a question; empty without one.
func (c *conversation) typed(ctx context.Context, question string) string {
	terminal.Discard(c.Stdin)
	answer, err := c.read(ctx, question)
	if err != nil {
		fmt.Fprintln(c.Stdout)
		return ""
	}
	return answer
}

// page shows lines, as many at a time as the window has. It reports whether all of
// them were shown.
func (c *conversation) page(ctx context.Context, lines []string) bool {
	for shown := 0; ; {
		_, height := terminal.Size(c.Stdout)
		n := min(max(height-3, 1), len(lines)-shown)
		for _, l := range lines[shown : shown+n] {
			fmt.Fprintln(c.Stdout, l)
		}
		if shown += n; shown == len(lines) {
			return true
		}
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(c.typed(ctx, fmt.Sprintf("-- %d of %d lines; Enter shows more, q stops: ", shown, len(lines))))), "q") || ctx.Err() != nil {
			return false
		}
	}
}
