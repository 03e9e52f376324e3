package imap

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// rule judges the arguments of one verb. A nil rule allows any.
type rule func(args string) bool

// matching allows what a pattern matches as a whole, in either case.
func matching(pattern string) rule {
	whole := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)\A(?:` + pattern + `)\z`) })
	return func(args string) bool { return whole().MatchString(args) }
}

// peeksOnly allows FETCH arguments that cannot set \Seen: a set, and items that peek. A set
// can be too long for a pattern.
func peeksOnly(args string) bool {
	set, items, _ := strings.Cut(args, " ")
	return set != "" && strings.Trim(set, "0123456789:,*$") == "" && itemsThatPeek(items)
}

// itemsThatPeek refuses sections without PEEK, RFC822, RFC822.TEXT and unknown items. BODY
// alone is the structure.
var itemsThatPeek = matching(`([ ()]|` +
	`(BODY\.PEEK|BINARY\.PEEK|BINARY\.SIZE)\[[^]]*\](<[0-9.]*>)?|` +
	`(UID|FLAGS|INTERNALDATE|RFC822\.(SIZE|HEADER)|ENVELOPE|BODY(STRUCTURE)?|MODSEQ|CHANGEDSINCE|ALL|FAST|FULL|EMAILID|THREADID|[0-9]+)([ ()]|\z))+`)

// readOnlyVerbs is every verb a read-only session may send besides its login, which leaves
// past the filter. No other verb leaves: SELECT, STORE, COPY, MOVE, EXPUNGE, APPEND and
// CLOSE among them. grants has the verbs that a Grant adds.
var readOnlyVerbs = map[string]rule{
	"CAPABILITY": nil, "NOOP": nil, "ID": nil, "STARTTLS": nil, "ENABLE": nil, "NAMESPACE": nil, "LIST": nil, "LSUB": nil,
	"STATUS": nil, "EXAMINE": nil, "SEARCH": nil, "UID SEARCH": nil, "SORT": nil, "UID SORT": nil,
	"IDLE": nil, "UNSELECT": nil, "LOGOUT": nil,
	"FETCH": peeksOnly, "UID FETCH": peeksOnly,
}

// maxCommandLine bounds the bytes held back until a line is whole.
const maxCommandLine = 256 << 10

// filter reads the commands that are about to leave, as a server would read them, and lets
// whole lines through that its table allows. It is the last step before the wire, so that
// no layer above can be tricked into a change.
type filter struct {
	verbs map[string]rule

	line    []byte // an incomplete line
	literal int64  // bytes of the literal still to pass
	within  bool   // the next line continues an allowed command
	idle    bool   // only DONE may come

	tag string // of the command that passed last

	mu      sync.Mutex      // the reader reports tagged answers
	awaits  string          // tag of the command that continues when the server says +
	asks    string          // tag of the CAPABILITY in progress
	open    map[string]bool // tags of the commands that have begun to leave and were not answered; true for those that open a folder
	changed bool            // a command beyond readOnlyVerbs has passed since begin or grant, SELECT aside

	opened atomic.Uint32 // EXAMINE and SELECT that were answered
}

// grant sets the verbs that may pass from here on. With a new grant changed is false.
func (f *filter) grant(verbs map[string]rule, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verbs = verbs
	if begins {
		f.changed = false
	}
}

// begin resets changed for a new operation.
func (f *filter) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = false
}

// expect notes a command that leaves without the filter.
func (f *filter) expect(tag string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun(tag, false)
}

// begun notes a command that has begun to leave. The lock is held.
func (f *filter) begun(tag string, opens bool) {
	if f.open == nil {
		f.open = map[string]bool{}
	}
	f.open[tag] = opens
}

// answered ends the command with this tag. A tag without an open command is an error: the
// library knows of a command before it leaves, and would accept an answer that comes too
// early.
func (f *filter) answered(tag string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	opens, known := f.open[tag]
	if !known {
		return errUnasked
	}
	delete(f.open, tag)
	if opens {
		f.opened.Add(1)
	}
	if f.awaits == tag {
		f.awaits = ""
	}
	if f.asks == tag {
		f.asks = ""
	}
	return nil
}

// asksCapabilities reports whether a CAPABILITY is in progress.
func (f *filter) asksCapabilities() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asks != ""
}

// continues reports whether a command waits for the server to say +. Each request allows
// one +.
func (f *filter) continues() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	yes := f.awaits != ""
	f.awaits = ""
	return yes
}

// push takes the library's bytes and returns those that may go out now.
func (f *filter) push(p []byte) ([]byte, error) {
	var out []byte
	for len(p) > 0 {
		if f.literal > 0 {
			n := min(int64(len(p)), f.literal)
			out = append(out, p[:n]...)
			f.literal -= n
			p = p[n:]
			continue
		}
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			i = len(p) - 1
		}
		f.line = append(f.line, p[:i+1]...)
		p = p[i+1:]
		if len(f.line) > maxCommandLine {
			return nil, fmt.Errorf("%w: line too long", errBadWrite)
		}
		if f.line[len(f.line)-1] != '\n' {
			continue
		}
		if err := f.check(f.line); err != nil {
			return nil, err
		}
		out = append(out, f.line...)
		f.line = f.line[:0]
	}
	return out, nil
}

// check judges one whole line.
func (f *filter) check(line []byte) error {
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok || strings.ContainsAny(text, "\r\n\x00") {
		return fmt.Errorf("%w: stray line break or NUL", errBadWrite)
	}
	if f.idle {
		f.idle = false
		if !strings.EqualFold(text, "DONE") {
			return fmt.Errorf("%w: only DONE ends IDLE", ErrForbidden)
		}
		return nil
	}
	size, literal, ok := trailingLiteral(text)
	if !ok {
		return fmt.Errorf("%w: open quote", errBadWrite)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.within {
		tag, rest, _ := strings.Cut(text, " ")
		verb, args, _ := strings.Cut(rest, " ")
		verb = strings.ToUpper(verb)
		if verb == "UID" {
			var sub string
			sub, args, _ = strings.Cut(args, " ")
			verb += " " + strings.ToUpper(sub)
		}
		allow, known := f.verbs[verb]
		_, reads := readOnlyVerbs[verb]
		f.changed = f.changed || known && !reads && verb != "SELECT"
		switch {
		case !known || tag == "" || tag == "*" || tag == "+":
			return fmt.Errorf("%w: %s", ErrForbidden, wire.Clean(verb))
		case allow != nil && (literal || !allow(args)):
			return fmt.Errorf("%w: %s with these arguments", ErrForbidden, verb)
		}
		f.tag, f.idle = tag, verb == "IDLE"
		f.begun(tag, verb == "EXAMINE" || verb == "SELECT")
		if verb == "CAPABILITY" {
			f.asks = tag
		}
	}
	f.within, f.literal = literal, size
	if f.idle || literal && !strings.HasSuffix(text, "+}") {
		if _, known := f.open[f.tag]; !known {
			// The library no longer tracks the command, so its wait would never end.
			return fmt.Errorf("%w: answer to a command that was not whole", errNotIMAP)
		}
		f.awaits = f.tag
	}
	return nil
}

// trailingLiteral finds a literal announced at the end of a line. ok is false
// when the line ends inside a quoted string.
func trailingLiteral(line string) (size int64, literal, ok bool) {
	quoted, start := false, -1
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == '{':
			start = i
		}
	}
	if quoted {
		return 0, false, false
	}
	body, closed := strings.CutSuffix(line[start+1:], "}")
	if start < 0 || !closed {
		return 0, false, true
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(body, "+"), 10, 63)
	if err != nil || n < 0 {
		return 0, false, true
	}
	return n, true, true
}
