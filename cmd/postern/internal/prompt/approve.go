package prompt

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/cmd/postern/internal/orderedjson"
	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
)

// The person on a terminal who holds the administrator's key approves what is sent:
// 'outbox approve ID', without the code, shows the message and asks, and a send or a deletion
// that needs a person's word asks at once. So does what a person sends whose administrator's key
// 'approve' would find, and what only shows something asks before it takes that. Nothing else acts
// with a key that was found: an agent can have a terminal, too.

// mayAsk reports whether commands may ask the person at the prompt.
func (c *conversation) mayAsk() bool { return c.Principal.Admin && !c.JSON }

// decidesHere reports whether what this person sends is theirs to approve at once: they are the
// administrator, or the key is where 'approve' finds it.
func (c *conversation) decidesHere() bool {
	return c.mayAsk() || c.KeyKept != nil && !c.JSON && c.KeyKept()
}

// approveOne is 'outbox approve ID' without a code: it shows the message whole, and sends it if
// the person says so.
func (c *conversation) approveOne(ctx context.Context, id []string) {
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
	if c.decide(ctx, strings.TrimRight(shown, "\n")+"\n\n"+c.look().Strong(questionOf(o)), "y "+yesOf(o)+", anything else leaves "+them(o)+": ") != discovery.Accepted {
		c.status = discovery.ApprovalRequired.ExitStatus()
		c.tell("Nothing was done. " + c.typedAs("outbox reject "+o.Str("outbox_id")) + " refuses it for good.")
		return
	}
	line := approval(o)
	if a := c.do(ctx, line); a.Code != discovery.Conflict || !c.overtaken(ctx, o.Str("outbox_id")) {
		c.show(a, line)
	}
}

// questionOf asks about an entry that was shown, yesOf says what a yes does.
func questionOf(entry orderedjson.Object) string {
	switch {
	case entry.Str("kind") == "delete":
		return "Delete exactly these for good?"
	case entry.Str("state") == "unknown":
		return "It may have arrived already. Send it again?"
	}
	return "Send exactly this?"
}

func them(entry orderedjson.Object) string {
	if entry.Str("kind") == "delete" {
		return "them as they are"
	}
	return "it as it is"
}

func yesOf(entry orderedjson.Object) string {
	if entry.Str("kind") == "delete" {
		return "deletes"
	}
	return "sends it"
}

// approval is the command that approves an entry as it was shown.
func approval(entry orderedjson.Object) string {
	return discovery.JoinCommand([]string{"outbox", "approve", entry.Str("outbox_id"), "--code", entry.Str("code")})
}

// overtaken tells what somebody else decided about an entry meanwhile, once that is
// known. ok is false where it is not within a few seconds.
func (c *conversation) overtaken(ctx context.Context, id string) (ok bool) {
	for range 10 {
		v, _ := orderedjson.Decode(c.do(ctx, command("outbox", "show", id)).JSON)
		answer, _ := v.(orderedjson.Object)
		data, _ := answer.Get("data").(orderedjson.Object)
		switch data.Str("state") {
		case "", "waiting", "queued", "unknown": // it may be leaving
		default:
			c.tell("Somebody else decided about it. " + answer.Str("message") + ".")
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(500 * time.Millisecond):
		}
	}
	return false
}

// said runs a command about an entry and tells in a line what it did, or why it did not. It
// reports whether the entry waits no more.
func (c *conversation) said(ctx context.Context, line string, entry orderedjson.Object) (decided bool) {
	a := c.do(ctx, line)
	v, _ := orderedjson.Decode(a.JSON)
	answer, _ := v.(orderedjson.Object)
	if text := answer.Str("message"); a.Success() && text != "" {
		a.Delivered()
		c.status = 0
		c.tell(text + ".")
		return true
	}
	if c.status = a.ExitStatus(); a.Code == discovery.Conflict && c.overtaken(ctx, entry.Str("outbox_id")) {
		return true
	}
	c.show(a, line)
	return a.Success() || !c.waits(ctx, entry)
}

// ApproveWaiting shows each entry of the outbox that waits for a person, the oldest first, asks
// about it and goes on. With an id, or the beginning of one, only those are shown. The
// principal must be the administrator and standard input a terminal. The status is 0 if
// every entry was decided and each decision was carried out.
func ApproveWaiting(ctx context.Context, o Options, id string) (status int, err error) {
	c, end := begin(o)
	defer end()
	return c.approveAll(ctx, id), ctx.Err()
}

func (c *conversation) approveAll(ctx context.Context, id string) (status int) {
	ids, ok := c.waiting(ctx, id)
	switch {
	case !ok:
		return c.status
	case len(ids) == 0:
		return c.nothing(id)
	}
	left, failed := 0, 0
	for i, id := range ids {
		c.status = 0
		fmt.Fprintf(c.Stdout, "\n%d of %d\n", i+1, len(ids))
		decided, on := c.walk(ctx, id, true)
		if !decided {
			left++
		} else if c.status != 0 {
			failed = c.status
		}
		if !on {
			left += len(ids) - i - 1
			break
		}
	}
	if left == 0 {
		return failed
	}
	fmt.Fprintf(c.Stdout, "Still waiting: %d.\n", left)
	return discovery.ApprovalRequired.ExitStatus()
}

// nothing says that nothing waits that has this id, or at all where that is empty.
func (c *conversation) nothing(id string) (status int) {
	if id == "" {
		c.tell("Nothing waits for you.")
		return 0
	}
	c.tell("Nothing that waits has this id: " + c.typedAs("approve") + " without one shows all.")
	return discovery.NotFound.ExitStatus()
}

// waiting returns the ids of what waits, the oldest first. If it fails, the person has been
// told.
func (c *conversation) waiting(ctx context.Context, prefix string) (ids []string, ok bool) {
	const line = "outbox list --state waiting --limit 500"
	data, ok := c.data(ctx, line)
	messages, _ := data.Get("messages").([]any)
	for _, m := range slices.Backward(messages) {
		entry, _ := m.(orderedjson.Object)
		if id := entry.Str("outbox_id"); id != "" && strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	return ids, ok
}

// walk shows one entry and asks what becomes of it. on is false where the person ends, which
// they can where more are to come.
func (c *conversation) walk(ctx context.Context, id string, more bool) (decided, on bool) {
	o, ok := c.whole(ctx, []string{id})
	if !ok {
		return false, ctx.Err() == nil
	}
	if o.Str("state") != "waiting" || o.Str("code") == "" {
		c.tell("It does not wait any more.")
		return true, true
	}
	seen := slices.DeleteFunc(slices.Clone(o), func(m orderedjson.Member) bool { return m.Name == "digest" || m.Name == "code" })
	shown := c.look().Draw(orderedjson.Object{{Name: "success", Value: true}, {Name: "data", Value: seen}}, "outbox show")
	if !c.page(ctx, append(strings.Split(strings.TrimRight(shown, "\n"), "\n"), "", c.look().Strong(questionOf(o)))) {
		c.tell("Not all of it was shown, so you are not asked.")
		return false, ctx.Err() == nil
	}
	question := "y " + yesOf(o) + ", n refuses it, Enter leaves it waiting"
	if more {
		question += ", q ends"
	}
	for {
		answer, err := c.readNow(ctx, c.begun(question+": "))
		if err != nil {
			fmt.Fprintln(c.Stdout)
			return false, false
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return c.said(ctx, approval(o), o), true
		case "n", "no":
			return c.refuse(ctx, o)
		case "q", "quit":
			return false, false
		case "":
			return false, true
		}
		c.tell("That is no answer, and nothing was decided.")
	}
}

// refuse refuses an entry, with a reason for whoever asked for it, if that was somebody else. A
// reason that is too long is asked for again. The results are those of walk.
func (c *conversation) refuse(ctx context.Context, o orderedjson.Object) (decided, on bool) {
	for {
		line := []string{"outbox", "reject", o.Str("outbox_id")}
		if by := o.Str("principal"); by != c.Principal.Name && by != c.Person {
			why, err := c.read(ctx, c.begun("Why, for "+screen.Line(by)+" to read? Enter for no reason: "))
			if err != nil {
				fmt.Fprintln(c.Stdout)
				return false, false
			}
			if why = strings.TrimSpace(why); why != "" {
				line = append(line, "--reason="+why)
			}
		}
		decided = c.said(ctx, command(line...), o)
		if len(line) == 3 || c.status != discovery.ValidationError.ExitStatus() {
			return decided, true
		}
	}
}

// waits reports whether an entry still waits, which somebody else may have decided about.
func (c *conversation) waits(ctx context.Context, entry orderedjson.Object) bool {
	now := part(c.do(ctx, command("outbox", "show", entry.Str("outbox_id"))), "data").Str("state")
	return now == "waiting" || now == ""
}

// whole is the answer of 'outbox show' with all of the text, however many calls that takes.
// If it fails, the person has been told.
func (c *conversation) whole(ctx context.Context, id []string) (data orderedjson.Object, ok bool) {
	all, chars := "", 0
	for digest := ""; ; {
		line := discovery.JoinCommand(append([]string{"outbox", "show", "--offset", strconv.Itoa(chars)}, id...))
		a := c.do(ctx, line)
		a.Delivered()
		data = part(a, "data")
		text, isText := data.Get("text").(string)
		if !a.Success() || !isText || digest != "" && data.Str("digest") != digest {
			c.show(a, line)
			return nil, false
		}
		digest = data.Str("digest")
		all += text
		chars += utf8.RuneCountInString(text)
		if data.Get("truncated") == true && text != "" {
			continue
		}
		data = slices.DeleteFunc(data, func(m orderedjson.Member) bool {
			return m.Name == "text" || m.Name == "next_action" || m.Name == "truncated"
		})
		if n := data.Get("text_chars"); n != nil && fmt.Sprint(n) != strconv.Itoa(chars) {
			c.tell("Not all of the text could be read. Nothing was sent.")
			return nil, false
		}
		return append(data, orderedjson.Member{Name: "text", Value: all}), true
	}
}

// decide shows lines, a page at a time, and asks when the last of them was shown.
func (c *conversation) decide(ctx context.Context, shown, question string) discovery.Verdict {
	if !c.page(ctx, strings.Split(shown, "\n")) {
		c.tell("Not all of it was shown, so you are not asked.")
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
	answer, err := c.readNow(ctx, c.begun(question))
	if err != nil {
		fmt.Fprintln(c.Stdout)
		return ""
	}
	return answer
}

// key is a key that a question names, which stays with what it does.
var key = regexp.MustCompile(`(^|, )(\w+) `)

// begun writes what does not fit into the last line of a question, and returns that line.
func (c *conversation) begun(question string) string {
	lines := screen.Words(key.ReplaceAllString(strings.TrimRight(question, " "), "$1$2\u00a0"), c.look().Width-2)
	for _, l := range lines[:len(lines)-1] {
		fmt.Fprintln(c.Stdout, l)
	}
	return lines[len(lines)-1] + " "
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
		answer, err := c.readNow(ctx, c.begun(fmt.Sprintf("-- %d of %d lines; Enter shows more, q stops: ", shown, len(lines))))
		if err != nil {
			fmt.Fprintln(c.Stdout)
		}
		if err != nil || strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "q") {
			return false
		}
	}
}
