package discovery

import (
	"fmt"
	"reflect"
	"strings"
	"time"
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
	s := newScanner(c, tokens)
	f := s.scan()
	switch {
	case f != nil:
		return nil, f
	case s.help:
		return &Bound{Help: true}, nil
	}
	b, f := c.fill(s.given, loc)
	if f != nil {
		return nil, f
	}
	return b, nil
}

// Outlook is what is known of a command's tokens before they are bound, without running any
// code of the command.
type Outlook struct {
	Timeout time.Duration // what --timeout says, or the command's own where that is missing or wrong
	Help    bool          // --help stands where an option stands
	Full    bool          // --full stands where an option stands
	Urgent  bool          // as the command's Spec says
	Bare    bool          // nothing follows the command's path
	Wrong   bool          // an option is unknown or incomplete, a value is one too many, missing or none that there is
}

// Peek looks at the tokens that follow the command's path. What values say together, and where
// paths lead, is for Bind.
func (c *Command) Peek(tokens []string) Outlook {
	s := newScanner(c, tokens)
	o := Outlook{Wrong: s.scan() != nil, Urgent: c.Urgent, Bare: len(tokens) == 0}
	o.Help, o.Full = s.help && !o.Wrong, s.given[c.args().byName["full"]] != nil
	var common Common
	args := reflect.New(c.args().typ).Elem()
	for _, a := range c.args().list {
		into, texts := args, s.given[a]
		if a.Common {
			into = reflect.ValueOf(&common).Elem()
		}
		o.Wrong = o.Wrong || !o.Help && (a.Required && texts == nil || texts != nil && a.set(into.FieldByIndex(a.index), texts, time.UTC) != "")
	}
	a := c.args().byName["timeout"]
	for _, texts := range [][]string{s.given[a], {fmt.Sprint(a.Default)}} {
		if texts != nil && a.set(reflect.ValueOf(&common).Elem().FieldByIndex(a.index), texts, time.UTC) == "" {
			break
		}
	}
	o.Timeout = time.Duration(common.Timeout) * time.Second
	return o
}

func (c *Command) fill(given map[*Argument][]string, loc *time.Location) (*Bound, *Fault) {
	args := reflect.New(c.args().typ)
	b := &Bound{Args: args.Interface()}
	common := reflect.ValueOf(&b.Common)
	var missing []string
	for _, a := range c.args().list {
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
					f := c.argumentFault(PathTraversal, a,
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
			f := c.argumentFault(ValidationError, a, "", "%s %s.", a.Label(), msg)
			for _, t := range texts {
				switch m := a.meant(t, loc); {
				case m != "" && m != t:
					f.Hint = didYouMean([]string{m}, "") + " " + f.Hint
				case a.Kind == KindDatetime && !a.Sensitive && integerPattern.MatchString(t):
					f.Hint = c.idsGoWith(t) + f.Hint
				case a.each() == KindDatetime && m == "":
					f.Hint = "Today is " + time.Now().In(loc).Format(time.DateOnly) + ". " + f.Hint
				}
			}
			return nil, f
		}
	}
	for _, a := range c.args().list {
		if given[a] != nil && a.Requires != "" && given[c.args().byName[a.Requires]] == nil {
			return nil, c.argumentFault(ValidationError, a, "", "%s works only together with --%s.", a.Label(), a.Requires)
		}
	}
	if len(missing) > 0 {
		verb := "is"
		if len(missing) > 1 {
			verb = "are"
		}
		return nil, c.argumentFault(ValidationError, nil, "", "%s %s missing.", strings.Join(missing, " and "), verb)
	}
	if v, ok := b.Args.(Validator); ok {
		if err := v.Validate(); err != nil {
			if f := AsFault(err); f != nil {
				return nil, c.complete(f, nil)
			}
			return nil, c.argumentFault(ValidationError, nil, "", "%s", sentence(err.Error()))
		}
	}
	return b, nil
}

// sentence is an error as a sentence, which begins with a capital letter.
func sentence(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
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

	tolerant bool // what is wrong is passed over
}

func newScanner(c *Command, tokens []string) *scanner {
	return &scanner{command: c, tokens: tokens, given: map[*Argument][]string{}}
}

func (s *scanner) scan() *Fault {
	for i := 0; i < len(s.tokens); i++ {
		t := s.tokens[i]
		var used int
		var f *Fault
		switch {
		case t == "--":
			for k := i + 1; k < len(s.tokens); k++ {
				if f := s.positional(k); f != nil && !s.tolerant {
					return f
				}
			}
			return nil
		case t == "--help", t == "-h" && s.command.args().byShort["h"] == nil:
			s.help = true
			return nil
		case strings.HasPrefix(t, "--"):
			used, f = s.long(i)
		case strings.HasPrefix(t, "-") && len(t) > 1 && !s.negativePositional(t):
			used, f = s.short(i)
		default:
			f = s.positional(i)
		}
		if f != nil && !s.tolerant {
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
	k := a.each()
	return k == KindInteger || k == KindNumber
}

// next is the positional that the next bare token belongs to, or nil.
func (s *scanner) next() *Argument {
	ps := s.command.args().positionals
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
func (s *scanner) positional(i int) *Fault {
	a := s.next()
	if a == nil {
		return s.command.surplus()
	}
	s.placed++
	s.given[a] = append(s.given[a], s.tokens[i])
	return nil
}

func (s *scanner) long(i int) (int, *Fault) {
	name, value, attached := strings.Cut(s.tokens[i][2:], "=")
	a := s.command.args().byName[name]
	if a == nil || a.Positional {
		return 0, s.command.unknown(name)
	}
	return s.option(i, a, value, attached)
}

func (s *scanner) short(i int) (int, *Fault) {
	body := s.tokens[i][1:]
	a := s.command.args().byShort[body[:1]]
	if a == nil {
		return 0, s.command.unknownShort(body)
	}
	value := body[1:]
	return s.option(i, a, strings.TrimPrefix(value, "="), value != "")
}

// takesNext reports whether a token that follows the option can be its value: one
// that starts with a dash is only where it is a number and the option takes one.
func (a *Argument) takesNext(t string) bool {
	return !strings.HasPrefix(t, "-") || len(t) == 1 || a.numeric() && numberPattern.MatchString(t)
}

func (s *scanner) option(i int, a *Argument, value string, attached bool) (used int, f *Fault) {
	c, rest := s.command, s.tokens[i+1:]
	if !attached {
		switch {
		case a.Kind == KindFlag:
			value = "true"
		case len(rest) == 0:
			return 0, c.argumentFault(ValidationError, a, "", "--%s needs a value.", a.Name)
		case !a.takesNext(rest[0]):
			return 0, c.argumentFault(ValidationError, a, fmt.Sprintf("Attach a value that starts with a dash: --%s=VALUE.", a.Name),
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
		return 0, c.argumentFault(ValidationError, a, fmt.Sprintf("Give --%s once.", a.Name), "--%s is given twice.", a.Name)
	}
	s.given[a] = []string{value}
	return used, nil
}
