package gateway

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
)

// Request is one command on its way into a Gateway.
type Request struct {
	Principal Principal

	// One of these three says what is wanted: the command string; its tokens, for a
	// caller that has an argument vector already, used where they are not nil; or why
	// the call never became a command, which is answered and audited like one.
	Line    string
	Tokens  []string
	Refusal *discovery.Fault

	// Full asks for the full answer, as --full does.
	Full bool

	// Ticket is the command's place in the Order of its connection, nil where it waits
	// for nobody.
	Ticket *Ticket

	// Pause takes the call out of those at work until resume, while the command waits
	// for something outside. resume waits for a place among those at work; it is not ok
	// when ctx ends first. It is called once. nil where nothing counts calls.
	Pause func() (resume func(ctx context.Context) (ok bool))

	// Progress is told how far the command is: done of total of what the command
	// counts, total 0 where nobody knows. It is called from one goroutine at a time,
	// when a command has run for half a second, at most four times a second and only
	// when there is something new, at least every five seconds, and not after the
	// command has returned. It may take its time: commands do not wait for it. What a
	// command announces (discovery.Link) comes at once, without a count. nil is told
	// nothing.
	Progress func(done, total float64, message string)

	// CanAsk says that a person can be asked: the Answer may have Asked then. Without
	// it the answer is that a person has to decide.
	CanAsk bool

	// Reply runs a command string again that was answered with Asked, with the outcome of the
	// question. The rules, the rate, the line and the deadline hold as before. A state that is
	// not of this question does nothing; one that is too old counts as no answer, whatever the
	// verdict. The same state may come more than once: the command decides what that means.
	Reply *Reply
}

// Reply is the outcome of a question.
type Reply struct {
	State   string // of the Asked
	Verdict discovery.Verdict
}

// tokens are the arguments that a request is made of, or why there are none.
func (r *Request) tokens() ([]string, *discovery.Fault) {
	tokens, err := r.Tokens, error(nil)
	switch {
	case r.Refusal != nil:
		return nil, r.Refusal
	case tokens != nil:
		err = checkTokens(tokens)
	default:
		tokens, err = Tokenize(r.Line)
	}
	if err != nil {
		return nil, &discovery.Fault{Code: discovery.ParseError, Message: "The command string cannot be read: " + err.Error() + ".",
			Hint:     "Put a value that holds spaces or quotes in quotes, and close every quote.",
			Examples: []string{"help", "help version"}}
	}
	return tokens, nil
}

// checkTokens holds tokens to the bounds of 002 section 4.2.2.
func checkTokens(tokens []string) error {
	if len(tokens) > MaxArguments {
		return fmt.Errorf("it has more than %d arguments", MaxArguments)
	}
	for i, t := range tokens {
		switch {
		case !utf8.ValidString(t):
			return fmt.Errorf("argument %d is not valid UTF-8", i+1)
		case strings.ContainsRune(t, 0):
			return fmt.Errorf("argument %d holds a NUL character", i+1)
		case len(t) > MaxArgumentChars && utf8.RuneCountInString(t) > MaxArgumentChars:
			return fmt.Errorf("argument %d is longer than %d characters", i+1, MaxArgumentChars)
		}
	}
	return nil
}
