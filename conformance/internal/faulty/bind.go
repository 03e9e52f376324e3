package faulty

import (
	"fmt"
	"regexp"
	"strings"
)

// given holds the values of one argument on a command line.
type given struct {
	values []string
	item   []bool // of each value, whether it is one element, as a positional is
}

// bind reads the words behind a command into its arguments' values. asked is true if
// --help is among the options.
func (s *Server) bind(c *command, words []string) (values map[string]any, asked bool, p *problem) {
	got := map[*argument]*given{}
	add := func(a *argument, value string, item bool) {
		if got[a] == nil {
			got[a] = &given{}
		}
		got[a].values, got[a].item = append(got[a].values, value), append(got[a].item, item)
	}
	var loose []string
	ended := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--help" && !s.is(NoHelpOption) && (!ended || s.is(HelpAfterDashes)):
			return nil, true, nil
		case ended, w == "-" && !s.is(DashIsOption), !strings.HasPrefix(w, "-"):
			loose = append(loose, w)
			continue
		case w == "--" && !s.is(DashesArePositional):
			ended = true
			continue
		case w == "--":
			loose = append(loose, w)
			continue
		}
		a, value, attached, p := s.option(c, w)
		switch {
		case p != nil:
			return nil, false, p
		case a == nil: // a mistake: unknown and ignored
			if _, _, cut := strings.Cut(w, "="); !cut && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
			}
			continue
		case a.kind == typeFlag && !attached:
			value = "true"
			if s.is(FlagTakesNextWord) && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
				value = words[i]
			}
		case !attached && (i+1 == len(words) || s.isOption(a, words[i+1])):
			switch {
			case s.is(MissingValueAccepted):
				continue
			case i+1 < len(words) && words[i+1] == "--help" && s.is(HelpAsValue):
				return nil, true, nil
			}
			return nil, false, s.invalid(c, "%s needs a value.", a.label())
		case !attached:
			i++
			value = words[i]
		case value == "--help" && s.is(HelpAsValue):
			return nil, true, nil
		}
		add(a, value, false)
	}
	for _, a := range c.args {
		if !a.positional {
			continue
		}
		for len(loose) > 0 {
			add(a, loose[0], true)
			if loose = loose[1:]; a.kind != typeArray {
				break
			}
		}
	}
	if len(loose) > 0 && !s.is(AcceptsSurplus) {
		return nil, false, s.invalid(c, "There are %d values too many: '%s'.", len(loose), shown(loose[0]))
	}
	values, p = s.read(c, got)
	return values, false, p
}

// isOption tells whether the word behind an option is one itself, so that the option
// lacks its value.
func (s *Server) isOption(a *argument, w string) bool {
	if !strings.HasPrefix(w, "-") || w == "-" {
		return false
	}
	if s.is(OptionAsValue) && w != "--help" {
		return false
	}
	numeric := a.kind == typeInteger || a.kind == typeNumber
	return !numeric || !negative.MatchString(w) || s.is(NegativeNumberIsOption)
}

var negative = regexp.MustCompile(`\A-\.?[0-9]`)

// option finds what a word with a dash names, and the value attached to it.
func (s *Server) option(c *command, w string) (a *argument, value string, attached bool, p *problem) {
	name, value, attached := strings.Cut(w, "=")
	if s.is(CutsAtSecondEquals) {
		value, _, _ = strings.Cut(value, "=")
	}
	if s.is(NoEqualsForm) && attached {
		name, value, attached = w, "", false
	}
	if a = s.named(c, name); a != nil {
		return a, value, attached, nil
	}
	if short := strings.TrimPrefix(w, "-"); !strings.HasPrefix(w, "--") && len(short) > 1 {
		for _, o := range c.args {
			if o.short == "" || !strings.HasPrefix(short, o.short) || o.kind == typeFlag || s.is(NoShortForm) || s.is(NoAttachedShort) {
				continue
			}
			return o, strings.TrimPrefix(short[1:], "="), true, nil
		}
	}
	if s.is(IgnoresUnknownOption) || s.is(IgnoresUnknownShort) && !strings.HasPrefix(w, "--") {
		return nil, "", false, nil
	}
	if s.is(PrototypeOptions) && (name == "--__proto__" || name == "--constructor" || name == "--toString" || name == "--hasOwnProperty" || name == "--prototype") {
		return nil, "", false, nil
	}
	p = s.invalid(c, "There is no option '%s'.", shown(name))
	var best *argument
	least := 3
	for _, o := range c.args {
		if o.positional || len(name) > 64 || s.is(NoOptionSuggestion) {
			continue
		}
		if d := distance(strings.TrimLeft(name, "-"), o.name); d < least {
			best, least = o, d
		}
	}
	if best != nil && p.hint != "" {
		p.hint = fmt.Sprintf("Did you mean %s? %s", best.label(), p.hint)
	}
	return nil, "", false, p
}

// named finds an option by its whole name.
func (s *Server) named(c *command, name string) *argument {
	if s.is(IgnoresOptionCase) {
		name = strings.ToLower(name)
	}
	if s.is(UnderscoreIsDash) {
		name = strings.ReplaceAll(name, "_", "-")
	}
	var found []*argument
	for _, a := range c.args {
		switch {
		case a.positional:
		case name == "--"+a.name,
			a.short != "" && name == "-"+a.short && !s.is(NoShortForm),
			s.is(SingleDashLong) && name == "-"+a.name:
			return a
		case s.is(AcceptsAbbreviation) && len(name) > 2 && strings.HasPrefix("--"+a.name, name):
			found = append(found, a)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}

func (s *Server) invalid(c *command, format string, a ...any) *problem {
	p := &problem{code: "VALIDATION_ERROR", message: fmt.Sprintf(format, a...),
		hint: fmt.Sprintf("Run 'help %s' for its arguments.", c.path()), examples: c.examples[:1]}
	if s.is(OptionAsParseError) {
		p.code = "EXECUTION_ERROR"
	}
	return p
}

// read turns the given words into values of all arguments, in the order of their
// definition.
func (s *Server) read(c *command, got map[*argument]*given) (map[string]any, *problem) {
	values := map[string]any{}
	for _, a := range c.args {
		g := got[a]
		switch {
		case g != nil:
			v, p := s.value(c, a, g)
			if p != nil {
				return nil, p
			}
			values[a.name] = v
		case a.required && !s.is(RequiredUnchecked) && (a.positional || !s.is(RequiredOptionIgnored)):
			return nil, s.invalid(c, "%s is missing.", a.label())
		case s.is(DefaultNotApplied):
		case a.def != nil:
			values[a.name] = a.def
		case a.kind == typeFlag:
			values[a.name] = false
		case a.kind == typeArray:
			values[a.name] = []string{}
		}
	}
	return values, nil
}

// value reads one argument's values.
func (s *Server) value(c *command, a *argument, g *given) (any, *problem) {
	if a.kind == typeArray {
		return s.elements(c, a, g)
	}
	if len(g.values) > 1 && !s.is(RepeatedLastWins) {
		return nil, s.invalid(c, "%s is given %d times.", a.label(), len(g.values))
	}
	return s.scalar(c, a, g.values[len(g.values)-1])
}

func (s *Server) elements(c *command, a *argument, g *given) (any, *problem) {
	list := []string{}
	for i, v := range g.values {
		if s.is(ArrayLastWins) && !g.item[i] {
			list = list[:0]
		}
		if g.item[i] || s.is(ArrayNotSplit) {
			list = append(list, v)
		} else {
			list = append(list, s.commas(v)...)
		}
	}
	if a.maxItems > 0 && len(list) > a.maxItems && !s.is(ItemsUnchecked) {
		return nil, s.invalid(c, "%s takes at most %d elements.", a.label(), a.maxItems)
	}
	if a.items == typeInteger {
		numbers := []int{}
		for _, e := range list {
			n, p := s.whole(c, a, e)
			if p != nil {
				return nil, p
			}
			numbers = append(numbers, n)
		}
		return numbers, nil
	}
	for _, e := range list {
		if a.enum != nil {
			if _, p := s.listed(c, a, e); p != nil {
				return nil, p
			}
		}
		if p := s.checkLengthOf(c, a, e); p != nil {
			return nil, p
		}
	}
	return list, nil
}

// commas splits an array's value; a backslash before a comma makes it a letter.
func (s *Server) commas(v string) []string {
	if s.is(ArrayNoEscape) {
		return strings.Split(v, ",")
	}
	var list []string
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		switch {
		case v[i] == '\\' && i+1 < len(v) && v[i+1] == ',':
			b.WriteByte(',')
			i++
		case v[i] == ',':
			list = append(list, b.String())
			b.Reset()
		default:
			b.WriteByte(v[i])
		}
	}
	return append(list, b.String())
}
