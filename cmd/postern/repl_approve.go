package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// The person at the prompt who holds the administrator's key approves what is sent:
// 'outbox approve ID', without the digest, shows the message and asks, and a send that
// needs a person's word asks at once. Whoever has the agent's key alone is not asked:
// an agent can have a terminal too.

// asks returns a context whose commands may ask the person at the prompt.
func (c *conversation) asks(ctx context.Context) context.Context {
	if !c.house.principal.Admin || c.asJSON {
		return ctx
	}
	return gateway.WithQuestions(ctx)
}

// approves returns the arguments of an 'outbox approve' that names no digest.
func (c *conversation) approves(line string) (rest []string, ok bool) {
	tokens, err := gateway.Tokenize(line)
	if err != nil || !c.house.principal.Admin || c.asJSON {
		return nil, false
	}
	found, err := c.house.registry.Resolve(tokens, c.house.visible)
	if err != nil || found.Command == nil || found.Command.Path != "outbox approve" || len(found.Rest) != 1 || strings.HasPrefix(found.Rest[0], "-") {
		return nil, false
	}
	return found.Rest, true
}

// approve shows a message of the outbox whole, and sends it if the person says so.
func (c *conversation) approve(ctx context.Context, id []string) {
	envelope, o, ok := c.whole(ctx, id)
	if !ok {
		return
	}
	var b bytes.Buffer
	c.look().render(&b, envelope, "outbox show")
	state := o.str("state")
	if state != "waiting" && state != "queued" && state != "unknown" || o.str("digest") == "" || o.get("text_missing") == true {
		_, _ = c.stdout.Write(b.Bytes())
		return
	}
	question := "Send exactly this? y sends it, anything else leaves it as it is: "
	if state == "unknown" {
		question = "It may have arrived already. Send it again? y sends it, anything else leaves it as it is: "
	}
	if c.decide(ctx, strings.TrimRight(b.String(), "\n"), question) != discovery.Accepted {
		fmt.Fprintln(c.stdout, "Nothing was sent. 'outbox reject "+o.str("outbox_id")+"' refuses it for good.")
		return
	}
	line := discovery.JoinCommand([]string{"outbox", "approve", o.str("outbox_id"), "--hash", o.str("digest")})
	c.show(c.do(ctx, line), line)
}

// whole is the answer of 'outbox show' with all of the text, however many answers
// that takes. Where there is none, the person has been told.
func (c *conversation) whole(ctx context.Context, id []string) (envelope []byte, data object, ok bool) {
	all, chars := "", 0
	for digest := ""; ; {
		line := discovery.JoinCommand(append([]string{"outbox", "show", "--offset", strconv.Itoa(chars)}, id...))
		a := c.do(ctx, line)
		a.Delivered()
		d := json.NewDecoder(bytes.NewReader(a.JSON))
		d.UseNumber()
		v, err := decode(d)
		o, _ := v.(object)
		data, _ = o.get("data").(object)
		part, isText := data.get("text").(string)
		if err != nil || !a.Success() || !isText || digest != "" && data.str("digest") != digest {
			c.show(a, line)
			return nil, nil, false
		}
		digest = data.str("digest")
		all += part
		chars += utf8.RuneCountInString(part)
		if data.get("truncated") == true && part != "" {
			continue
		}
		data = slices.DeleteFunc(data, func(f field) bool { return f.name == "text" || f.name == "next_action" || f.name == "truncated" })
		data = append(data, field{"text", all})
		if n := text(data.get("text_chars")); n != "" && n != strconv.Itoa(chars) {
			fmt.Fprintln(c.stdout, "Not all of the text could be read. Nothing was sent.")
			return nil, nil, false
		}
		o = object{{"success", true}, {"data", data}}
		return o.encode(nil), data, true
	}
}

// encode writes a value as decode reads it.
func (o object) encode(b []byte) []byte {
	b = append(b, '{')
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = encodeValue(append(encodeValue(b, f.name), ':'), f.value)
	}
	return append(b, '}')
}

func encodeValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		return v.encode(b)
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = encodeValue(b, x)
		}
		return append(b, ']')
	}
	j, err := json.Marshal(v)
	if err != nil { // what was decoded has a JSON form
		panic(err)
	}
	return append(b, j...)
}

// ask puts a command's question. What is typed before the question is there is no
// answer to it.
func (c *conversation) ask(ctx context.Context, q string) discovery.Verdict {
	var b strings.Builder
	p := painter{look: c.look()}
	for l := range strings.SplitSeq(strings.TrimRight(q, "\n"), "\n") {
		mark, rest := "", visible(l)
		for _, m := range []string{"> ", "        > "} {
			if r, ok := strings.CutPrefix(rest, m); ok {
				mark, rest = m, r
			}
		}
		p.wrapped(mark, "", rest)
	}
	b.WriteString(p.b.String())
	return c.decide(ctx, strings.TrimRight(b.String(), "\n"), "y sends it, n refuses it, Enter leaves it in the outbox: ")
}

// decide shows lines, a page at a time, and asks when the last of them was shown.
func (c *conversation) decide(ctx context.Context, shown, question string) discovery.Verdict {
	if !c.page(ctx, strings.Split(shown, "\n")) {
		fmt.Fprintln(c.stdout, "Not all of it was shown, so you are not asked.")
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

// typed is what the person answers to a question; nothing when they do not.
func (c *conversation) typed(ctx context.Context, question string) string {
	discardTyped(c.stdin)
	answer, err := c.read(ctx, question)
	if err != nil {
		fmt.Fprintln(c.stdout)
		return ""
	}
	return answer
}

// page shows lines, as many at a time as the window has. It reports whether all of
// them were shown.
func (c *conversation) page(ctx context.Context, lines []string) bool {
	for shown := 0; ; {
		_, height := c.size()
		n := min(max(height-3, 1), len(lines)-shown)
		for _, l := range lines[shown : shown+n] {
			fmt.Fprintln(c.stdout, l)
		}
		if shown += n; shown == len(lines) {
			return true
		}
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(c.typed(ctx, fmt.Sprintf("-- %d of %d lines; Enter shows more, q stops: ", shown, len(lines))))), "q") || ctx.Err() != nil {
			return false
		}
	}
}
