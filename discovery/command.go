package discovery

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// Effect is what a command can change. The zero Effect is invalid: a command
// whose author forgot to say what it does does not register.
type Effect uint8

// The effects, weakest first.
const (
	Meta  Effect = iota + 1 // speaks of the commands themselves; needs no vault, key or network
	Read                    // shows something and changes nothing anywhere
	State                   // changes our own state only, such as what counts as seen
	Flag                    // changes a mark on something kept elsewhere
	Write                   // changes what is kept elsewhere
	Send                    // lets something leave for others
	Admin                   // changes or shows what only the administrator may
)

var effectNames = [...]string{"unset", "meta", "read", "state", "flag", "write", "send", "admin"}

// String returns the lower-case name.
func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return "unset"
}

// Spec is what a command's author writes down beside its types and function.
type Spec struct {
	Path     string   // words separated by single spaces, such as "mail list"
	Aliases  []string // other full paths that resolve here; not shown in help
	Also     []string // last words that people try for it; they do not run, errors answer them with this command
	Summary  string   // half a line without a full stop, for lists of commands
	Details  string   // optional further sentences, for the command's own help
	Effect   Effect
	Does     string   // what several commands do, such as "send": who denies one of them, or this word, denies all; empty for what no other does
	Examples []string // at least one; each binds
	Timeout  int      // seconds that it may take unless the caller says otherwise; 0 means as any other

	// Options that its usage shows as required, and those that it leaves out, besides the ones
	// tagged so.
	Needed, Rare []string

	// Standing says that it runs also while everything is stopped: it begins nothing
	// elsewhere. Urgent says that it does not wait for the commands sent before it.
	Standing, Urgent bool

	TooLong Advice // where the command is longer than a gateway takes; zero for that of any other

	HostPaths bool // arguments that are paths may be any of this machine

	Forms map[string]Form // that acli:"form=NAME" names
}

// Advice is what to do, with an example that binds.
type Advice struct{ Hint, Example string }

// Caller is what a command's function may know of its caller.
type Caller struct {
	Principal string // the caller's name
	Admin     bool   // the caller is the administrator
	Profile   string // name of the set of commands that the caller is offered

	// Identity is the only identity that the caller may act as, where a command has
	// identities; empty where the caller is not bound to one.
	Identity string

	// CanAsk reports whether a Question that the function returns as its error can
	// reach a person. Unasked says that it never can, because the caller's client is
	// not believed, whatever that client is able to do.
	CanAsk, Unasked bool

	// Visible tells which commands exist for this caller. Never nil.
	Visible func(*Command) bool
}

// Link is a command's way to its caller while it runs.
type Link interface {
	// Progress reports on long work: done of total, total 0 when unknown. It is safe for
	// concurrent use, and cheap when nobody listens.
	Progress(done, total float64, message string)

	// Announce tells the listener to the progress something that a person has to read now,
	// such as an address to open. Unlike a report it is never dropped for a newer one. Else it
	// is as Progress.
	Announce(message string)

	// Delivered has done run when the answer has left for the caller whole. It may
	// never run: the caller may have gone, or the process may end before. It has
	// little time and must not panic. A failure of the command runs none.
	Delivered(done func())

	// Aside runs wait while the commands that came later on the same connection go
	// on as if this one were not there, and returns when it is this one's turn again,
	// or an error. Anything read before may have changed by then.
	Aside(ctx context.Context, wait func(context.Context) error) error
}

// Call is one execution as the command's function sees it.
type Call struct {
	Caller
	Link // never nil where a gateway calls

	// Fields are those the caller wants of the answer; none means all. Full says that it
	// wants the full answer, not the compact one.
	Fields []string
	Full   bool

	// Again writes the command that was called, with its common options, as a
	// command string with other arguments: a pointer to its argument struct. Arguments that
	// were not given stay out. Never nil while the function runs.
	Again func(args any) string

	// Reply is the outcome of the Question that the same command string led to
	// before; nil when it is run for the first time. A function that never returns a
	// Question never sees one.
	Reply *Reply

	// Bytes is set by the function where the answer holds bytes that the caller asked
	// for, however many they are.
	Bytes bool

	// Cut is set by the function where the answer ends before its end, with how to go on. It is
	// the envelope's message then.
	Cut string

	// Account and Target are what the function resolved, for the audit entry: the
	// account's name, and what of it the command is about. Reason, for the entry alone, is
	// why a rule kept some of it back while the rest was done.
	Account, Target, Reason string
}

// Summarizer may be implemented by a result to give the envelope's message.
type Summarizer interface{ Summary() string }

// Checker may be implemented by a result that says what was checked. Failed is the code of
// what failed, empty when all passed. The answer is a success all the same; only a
// process that ends with it takes the code's exit status.
type Checker interface{ Failed() Code }

// Truncator may be implemented by a pointer result that can say less. Truncate
// reduces it to about the given fraction of its size, marks it as truncated and
// says how to get the rest; false means it cannot be reduced.
type Truncator interface{ Truncate(fraction float64) bool }

// Validator may be implemented by a pointer to an argument struct to check what
// one field alone cannot: its error becomes a VALIDATION_ERROR, unless it is a
// Fault already.
type Validator interface{ Validate() error }

// Command is a registered command. Its fields do not change after New.
type Command struct {
	Spec
	args   func() *argumentSet // its first call reflects on New's A, which takes longer than all else of a start
	result reflect.Type
	run    func(context.Context, *Call, any) (any, error)
	err    error        // found at once
	faulty func() error // found by reflecting; nil for a defined command

	defined bool   // by Define: there is no result type
	shape   *Shape // of a defined command's answer; nil for any

	brief reflect.Type // of the result's method Brief; nil without one

	schemaOnce sync.Once
	input      []byte // JSON Schema
	answers    [2]answerShape
}

var pathPattern = regexp.MustCompile(`\A[a-z][a-z0-9_-]*( [a-z][a-z0-9_-]*)*\z`)

// New makes a command of a Spec, an argument struct A, a result R and what
// happens. A mistake in the Spec or R is kept and reported by NewRegistry. A is looked at
// when it is needed: a mistake in it is a panic then, unless a test has asked Err before.
//
// Each field of A is one argument. Its json tag gives the name, omitempty makes
// it optional, a jsonschema tag gives default, bounds, enum, pattern and
// examples, jsonschema_description says what it is for, a form tag says what a value
// that does not match the pattern ought to be ("must be one line"), and an acli tag
// the rest:
//
//	positional   not an option; a slice takes all that remain
//	short=n      also -n
//	boolean      a bool that needs a value (a bool is a flag otherwise)
//	sensitive    never shown in _meta, audit, errors or logs
//	path         a relative path of a file below one directory; path=NAME says which in errors
//	requires=x   refused unless option x is given too
//	form=NAME    strings or numbers of this form, one of Spec.Forms
//	also=x|y     other names that people try, which errors answer with this one
//	with=PATH    there is no such option where there is no such command
//	value=F      what stands for a value in the usage: --folder F
//	needed       required unless another argument stands for it
//	rare         not in the usage; the command's own help has it
//	global       of many commands and told once, in the root help
//
// Field types are string and types of it, bool, int, pointers to these (nil when not
// given), signed and unsigned integers, floats, Datetime, Date, and slices of string,
// integer or float. Embedded structs are flattened. In R,
// acli:"untrusted" marks a field whose content a stranger can choose.
//
// R is the full answer. It may have a method Brief without arguments, which returns the
// compact answer: what a caller gets that does not say --full. The type of its result is
// tagged as R is, and may hold Tables.
func New[A, R any](s Spec, run func(context.Context, *Call, *A) (R, error)) *Command {
	return newCommand(s, reflect.TypeFor[A](), reflect.TypeFor[R](), func(ctx context.Context, call *Call, args any) (any, error) {
		return run(ctx, call, args.(*A))
	})
}

// newCommand is New without type parameters, of which the program would hold a copy for
// every command.
func newCommand(s Spec, args, result reflect.Type, run func(context.Context, *Call, any) (any, error)) *Command {
	c := &Command{Spec: s, result: result, run: run}
	// By a constant name: the linker keeps every method of every type for any other one.
	if m, ok := c.result.MethodByName("Brief"); ok {
		c.brief = m.Type
	}
	made := sync.OnceValues(func() (*argumentSet, error) {
		set, err := newArgumentSet(args, s)
		if err != nil {
			return nil, err
		}
		for _, name := range s.Needed {
			set.byName[name].Needed = true
		}
		for _, name := range s.Rare {
			set.byName[name].Rare = true
		}
		return set, set.setTimeout(s)
	})
	c.faulty = func() error { _, err := made(); return err }
	c.args = func() *argumentSet {
		set, err := made()
		if err != nil {
			panic(fmt.Sprintf("discovery: command %q: %v", s.Path, err))
		}
		return set
	}
	c.err = c.check()
	return c
}

// Err is a mistake in what New or Define was given. A command that has one must not be used.
func (c *Command) Err() error {
	if c.err == nil && c.faulty != nil {
		return c.faulty()
	}
	return c.err
}

func (c *Command) check() error {
	switch {
	case !pathPattern.MatchString(c.Path):
		return errors.New("the path must be lower-case words separated by single spaces")
	case c.Effect < Meta || c.Effect > Admin:
		return errors.New("the effect is not set")
	case c.Summary == "" || strings.HasSuffix(c.Summary, "."):
		return errors.New("the summary is missing or ends with a full stop")
	case len(c.Examples) == 0:
		return errors.New("there is no example")
	case c.brief != nil && (c.brief.NumIn() != 1 || c.brief.NumOut() != 1):
		return errors.New("the result's method Brief does not take nothing and return one value")
	}
	for _, a := range c.Aliases {
		if !pathPattern.MatchString(a) {
			return fmt.Errorf("the alias %q must be lower-case words separated by single spaces", a)
		}
	}
	return nil
}

// Run executes the command with what Bind returned.
func (c *Command) Run(ctx context.Context, call *Call, b *Bound) (any, error) {
	call.Fields, call.Full = b.Common.Fields, call.Full || b.Common.Full
	call.Again = func(args any) string { return JoinCommand(c.Unbind(args, b.Common)) }
	return c.run(ctx, call, b.Args)
}

// Arguments lists the arguments in the order of their definition, the common
// options last. The caller must not change them.
func (c *Command) Arguments() []*Argument { return c.args().list }
