package discovery

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/plain"
)

// Bound is a command line bound to a command's arguments: every value typed,
// every default filled in, every bound held.
type Bound struct {
	Args any // pointer to the command's argument struct

	Common Common

	// Help says that --help stood where an option stands. Args is then unset.
	Help bool
}

// Bind reads the tokens that follow the command's path (002 section 7.3).
// Datetimes without an offset are in loc; nil means UTC. Its error is a Fault
// with code VALIDATION_ERROR or PATH_TRAVERSAL_BLOCKED.
func (c *Command) Bind(tokens []string, loc *time.Location) (*Bound, error) {
	if loc == nil {
		loc = time.UTC
	}
	s := scanner{command: c, tokens: tokens, given: map[*Argument][]string{}}
	if f := s.scan(); f != nil {
		return nil, f
	}
	if s.help {
		return &Bound{Help: true}, nil
	}
	return c.fill(s.given, loc)
}

// Outlook is what is known of a command's tokens before they are bound, without running any
// code of the command.
type Outlook struct {
	Timeout time.Duration // what --timeout says, or the command's own where that is missing or wrong
	Help    bool          // --help stands where an option stands
	Full    bool          // --full stands where an option stands
	Wrong   bool          // an option is unknown or incomplete, a value is one too many or missing
}

// Peek looks at the tokens that follow the command's path. No value but that of
// --timeout is read.
func (c *Command) Peek(tokens []string) Outlook {
	s := scanner{command: c, tokens: tokens, given: map[*Argument][]string{}}
	o := Outlook{Wrong: s.scan() != nil}
	o.Help, o.Full = s.help && !o.Wrong, s.given[c.args.byName["full"]] != nil
	for _, a := range c.args.list {
		o.Wrong = o.Wrong || a.Required && s.given[a] == nil && !o.Help
	}
	a := c.args.byName["timeout"]
	var common Common
	for _, texts := range [][]string{s.given[a], {fmt.Sprint(a.Default)}} {
		if texts != nil && a.set(reflect.ValueOf(&common).Elem().FieldByIndex(a.index), texts, time.UTC) == "" {
			break
		}
	}
	o.Timeout = time.Duration(common.Timeout) * time.Second
	return o
}

func (c *Command) fill(given map[*Argument][]string, loc *time.Location) (*Bound, error) {
	args := reflect.New(c.args.typ)
	b := &Bound{Args: args.Interface()}
	common := reflect.ValueOf(&b.Common)
	var missing []string
	for _, a := range c.args.list {
		texts, ok := given[a]
		switch {
		case !ok && a.Required:
			missing = append(missing, a.Label())
			continue
		case !ok && a.Default == nil:
			continue
		case !ok:
			texts = []string{fmt.Sprint(a.Default)}
		}
		if a.Path {
			for _, t := range texts {
				if traverses(t) {
					f := c.usageFault(PathTraversal,
						fmt.Sprintf("Give a relative path without '..'; files are taken from and saved below the %s only.", a.directory()),
						"%s leads outside the %s.", a.Label(), a.directory())
					f.Reason = "path" // a rule refused it: the audit log says blocked
					return nil, f
				}
			}
		}
		into := args
		if a.Common {
			into = common
		}
		if msg := a.set(into.Elem().FieldByIndex(a.index), texts, loc); msg != "" {
			return nil, c.usageFault(ValidationError, "", "%s %s.", a.Label(), msg)
		}
	}
	for _, a := range c.args.list {
		if given[a] != nil && a.Requires != "" && given[c.args.byName[a.Requires]] == nil {
			return nil, c.usageFault(ValidationError, "", "%s works only together with --%s.", a.Label(), a.Requires)
		}
	}
	if len(missing) > 0 {
		verb := "is"
		if len(missing) > 1 {
			verb = "are"
		}
		return nil, c.usageFault(ValidationError, "", "%s %s missing.", strings.Join(missing, " and "), verb)
	}
	if v, ok := b.Args.(Validator); ok {
		if err := v.Validate(); err != nil {
			if f := AsFault(err); f != nil {
				return nil, c.complete(f)
			}
			return nil, c.usageFault(ValidationError, "", "%s", sentence(err.Error()))
		}
	}
	return b, nil
}

// complete gives a fault that a Validate method made what every usage error has.
func (c *Command) complete(f *Fault) *Fault {
	d := *f
	if d.Hint == "" {
		d.Hint = fmt.Sprintf("Run 'help %s' for its arguments.", c.Path)
	}
	if len(d.Examples) == 0 {
		d.Examples = c.Examples
	}
	return &d
}

func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// scanner reads tokens into the texts given for each argument.
type scanner struct {
	command *Command
	tokens  []string
	given   map[*Argument][]string
	placed  int // positionals so far
	help    bool
}

func (s *scanner) scan() *Fault {
	for i := 0; i < len(s.tokens); i++ {
		t := s.tokens[i]
		var used int
		var f *Fault
		switch {
		case t == "--":
			for _, p := range s.tokens[i+1:] {
				if f := s.positional(p); f != nil {
					return f
				}
			}
			return nil
		case t == "--help":
			s.help = true
			return nil
		case strings.HasPrefix(t, "--"):
			used, f = s.long(t[2:], s.tokens[i+1:])
		case strings.HasPrefix(t, "-") && len(t) > 1 && !s.negativePositional(t):
			used, f = s.short(t[1:], s.tokens[i+1:])
		default:
			f = s.positional(t)
		}
		if f != nil {
			return f
		}
		i += used
	}
	return nil
}

// negativePositional reports whether t is a negative number where the next
// positional is one.
func (s *scanner) negativePositional(t string) bool {
	a := s.next()
	return a != nil && a.numeric() && numberPattern.MatchString(t)
}

func (a *Argument) numeric() bool {
	k := a.Kind
	if k == KindArray {
		k = a.Item
	}
	return k == KindInteger || k == KindNumber
}

// next is the positional that the next bare token belongs to, or nil.
func (s *scanner) next() *Argument {
	ps := s.command.args.positionals
	if len(ps) == 0 {
		return nil
	}
	if s.placed >= len(ps) {
		if last := ps[len(ps)-1]; last.Kind == KindArray {
			return last
		}
		return nil
	}
	return ps[s.placed]
}

// positional takes a bare token. A positional array is never split at commas: its
// elements are tokens already, and a message id may hold a comma.
func (s *scanner) positional(t string) *Fault {
	a := s.next()
	if a == nil {
		return s.command.usageFault(ValidationError, "Quote a value that holds spaces, and give options by name.",
			"There is one value too many: the command takes %s.", countPositionals(len(s.command.args.positionals)))
	}
	s.placed++
	s.given[a] = append(s.given[a], t)
	return nil
}

func countPositionals(n int) string {
	switch n {
	case 0:
		return "only options"
	case 1:
		return "one value besides its options"
	}
	return fmt.Sprintf("%d values besides its options", n)
}

func (s *scanner) long(body string, rest []string) (int, *Fault) {
	name, value, attached := strings.Cut(body, "=")
	a := s.command.args.byName[name]
	if a == nil || a.Positional {
		return 0, s.unknown(name)
	}
	return s.option(a, value, attached, rest)
}

func (s *scanner) short(body string, rest []string) (int, *Fault) {
	a := s.command.args.byShort[body[:1]]
	if a == nil {
		return 0, s.command.usageFault(ValidationError, "Long options start with two dashes; a value that starts with a dash is attached, as in --name=-value.",
			"There is no option '-%s'.", plain.Excerpt(body, 2))
	}
	value := body[1:]
	attached := value != ""
	return s.option(a, strings.TrimPrefix(value, "="), attached, rest)
}

// takesNext reports whether a token that follows the option can be its value: one
// that starts with a dash is only where it is a number and the option takes one.
func (a *Argument) takesNext(t string) bool {
	return !strings.HasPrefix(t, "-") || len(t) == 1 || a.numeric() && numberPattern.MatchString(t)
}

func (s *scanner) option(a *Argument, value string, attached bool, rest []string) (used int, f *Fault) {
	c := s.command
	if !attached {
		switch {
		case a.Kind == KindFlag:
			value = "true"
		case len(rest) == 0:
			return 0, c.usageFault(ValidationError, "", "--%s needs a value.", a.Name)
		case !a.takesNext(rest[0]):
			return 0, c.usageFault(ValidationError, fmt.Sprintf("Attach a value that starts with a dash: --%s=VALUE.", a.Name),
				"--%s needs a value, and what follows it is an option.", a.Name)
		default:
			value, used = rest[0], 1
		}
	}
	if a.Kind == KindArray {
		s.given[a] = append(s.given[a], splitList(value)...)
		return used, nil
	}
	if _, twice := s.given[a]; twice {
		return 0, c.usageFault(ValidationError, fmt.Sprintf("Give --%s once.", a.Name), "--%s is given twice.", a.Name)
	}
	s.given[a] = []string{value}
	return used, nil
}

func (s *scanner) unknown(name string) *Fault {
	c := s.command
	var names []string
	for _, a := range c.args.list {
		if !a.Positional {
			names = append(names, a.Name)
		}
	}
	near := Nearest(name, names, 3)
	for i := range near {
		near[i] = "--" + near[i]
	}
	hint := fmt.Sprintf("Run 'help %s' for its arguments.", c.Path)
	if len(near) > 0 {
		hint = fmt.Sprintf("Did you mean %s? %s", strings.Join(near, " or "), hint)
	}
	return c.usageFault(ValidationError, hint, "There is no option '--%s'.", plain.Excerpt(name, 40))
}
