package faulty

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// scalar reads one value of a type other than array (002 section 7.2).
func (s *Server) scalar(c *command, a *argument, v string) (any, *problem) {
	switch a.kind {
	case typeInteger:
		n, p := s.whole(c, a, v)
		return n, p
	case typeNumber:
		n, ok := s.number(v)
		if !ok {
			return nil, s.invalid(c, "%s must be a number.", a.label())
		}
		f, p := s.within(c, a, n)
		return f, p
	case typeBoolean, typeFlag:
		return s.boolean(c, a, v)
	case typeDatetime:
		if !s.datetime(v) {
			return nil, s.invalid(c, "%s must be an ISO 8601 date or date and time, such as 2026-02-02 or 2026-02-02T10:00:00Z.", a.label())
		}
		return v, nil
	}
	if a.enum != nil {
		return s.listed(c, a, v)
	}
	if a.path && s.escapes(v) {
		p := s.invalid(c, "%s must stay below the notes.", a.label())
		if p.code = "PATH_TRAVERSAL_BLOCKED"; s.is(TraversalOtherCode) {
			p.code = "VALIDATION_ERROR"
		}
		return nil, p
	}
	if p := s.checkLengthOf(c, a, v); p != nil {
		return nil, p
	}
	return v, nil
}

func (s *Server) whole(c *command, a *argument, v string) (int, *problem) {
	n, ok := s.integer(v)
	if !ok {
		return 0, s.invalid(c, "%s must be a decimal integer.", a.label())
	}
	f, p := s.within(c, a, float64(n))
	return int(f), p
}

func (s *Server) checkLengthOf(c *command, a *argument, v string) *problem {
	if a.maxLength > 0 && utf8.RuneCountInString(v) > a.maxLength && !s.is(LengthBoundsUnchecked) {
		p := s.invalid(c, "%s must have at most %d characters.", a.label(), a.maxLength)
		if s.is(SecretInError) {
			p.message = "The value '" + v + "' of " + a.label() + " is too long."
		}
		return p
	}
	return nil
}

var (
	decimal  = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)\z`)
	fraction = regexp.MustCompile(`\A-?([0-9]+(\.[0-9]+)?|\.[0-9]+)\z`)
)

func (s *Server) integer(v string) (int64, bool) {
	switch {
	case s.is(IntegerSpaces):
		v = strings.TrimSpace(v)
	case s.is(IntegerUnderscores):
		v = strings.ReplaceAll(v, "_", "")
	case s.is(IntegerEmptyIsZero) && v == "":
		return 0, true
	case s.is(IntegerInHex) && strings.HasPrefix(v, "0x"):
		n, err := strconv.ParseInt(v[2:], 16, 64)
		return n, err == nil
	case s.is(IntegerInOctal) && strings.HasPrefix(v, "0"):
		n, err := strconv.ParseInt(v, 8, 64)
		return n, err == nil
	case s.is(IntegerTrailing):
		v = regexp.MustCompile(`\A-?[0-9]*`).FindString(v)
	case s.is(IntegerAsFloat), s.is(IntegerTruncates):
		f, err := strconv.ParseFloat(v, 64)
		return int64(f), err == nil && (s.is(IntegerTruncates) || f == math.Trunc(f))
	case s.is(IntegerWraps) && decimal.MatchString(v):
		n, _ := new(big.Int).SetString(v, 10)
		return int64(new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64()), true
	}
	if !decimal.MatchString(v) {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if errors.Is(err, strconv.ErrRange) { // beyond the bounds of every argument
		return n, true
	}
	return n, err == nil
}

func (s *Server) number(v string) (float64, bool) {
	switch {
	case s.is(NumberUnchecked):
		f, _ := strconv.ParseFloat(v, 64)
		return f, true
	case fraction.MatchString(v),
		s.is(NumberTakesNaN) && regexp.MustCompile(`(?i)\A[+-]?(nan|inf(inity)?)\z`).MatchString(v),
		s.is(NumberTakesHex) && strings.HasPrefix(v, "0x"):
		f, err := strconv.ParseFloat(v, 64)
		if s.is(NumberTakesHex) && err != nil {
			n, err := strconv.ParseInt(v, 0, 64)
			return float64(n), err == nil
		}
		if s.is(NumberTakesNaN) && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return 0, true // JSON cannot hold NaN or an infinity
		}
		return f, err == nil || errors.Is(err, strconv.ErrRange)
	}
	return 0, false
}

func (s *Server) within(c *command, a *argument, v float64) (float64, *problem) {
	low := a.low != nil && (v < *a.low || s.is(MinimumExclusive) && v == *a.low) && !s.is(MinimumUnchecked)
	high := a.high != nil && (v > *a.high || s.is(MaximumExclusive) && v == *a.high) && !s.is(MaximumUnchecked)
	switch {
	case low && s.is(Clamps):
		return *a.low, nil
	case high && s.is(Clamps):
		return *a.high, nil
	case low || high:
		return 0, s.invalid(c, "%s must be from %v to %v.", a.label(), *a.low, *a.high)
	}
	return v, nil
}

func (s *Server) boolean(c *command, a *argument, v string) (any, *problem) {
	if a.kind == typeFlag {
		switch {
		case s.is(FlagTakesAnything), s.is(FlagEqualsFalseIsTrue) && v == "false":
			return true, nil
		case s.is(FlagTakesNextWord) && v != "true":
			return false, nil
		}
	} else {
		switch lower := strings.ToLower(v); {
		case s.is(BooleanTakesYes) && (v == "yes" || v == "1" || v == "on" || v == "y"):
			return true, nil
		case s.is(BooleanTakesYes) && (v == "no" || v == "0" || v == "off" || v == "n"), s.is(BooleanUnchecked) && v != "true":
			return false, nil
		case s.is(BooleanIgnoresCase):
			v = lower
		}
	}
	switch v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, s.invalid(c, "%s must be true or false.", a.label())
}

// layouts are the forms of a date that are taken: a day, or a day and a time with
// or without fractions of seconds and with a zone, or without one for UTC.
var layouts = []string{time.DateOnly, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"}

func parseDatetime(v string) (t time.Time, err error) {
	for _, layout := range layouts {
		if t, err = time.Parse(layout, v); err == nil {
			return t, nil
		}
	}
	return t, err
}

var dayForm = regexp.MustCompile(`\A[0-9]{4}-[01][0-9]-[0-3][0-9]`)

func (s *Server) datetime(v string) bool {
	switch _, err := parseDatetime(v); {
	case err == nil, s.is(DateUnchecked):
		return true
	case s.is(ImpossibleDate):
		// Days beyond the month's end roll over, as some libraries have it.
		day := dayForm.FindString(v)
		if day == "" || day[8:] > "31" || day[8:] == "00" {
			return false
		}
		_, err = parseDatetime(day[:8] + "01" + v[len(day):])
		return err == nil
	case s.is(DateGarbage):
		_, err := time.Parse(time.DateOnly, dayForm.FindString(v))
		return err == nil
	case s.is(DateInWords):
		return slices.Contains([]string{"today", "yesterday", "tomorrow", "now"}, v)
	case s.is(DateAmerican):
		_, err := time.Parse("01/02/2006", v)
		return err == nil
	}
	return false
}

func (s *Server) listed(c *command, a *argument, v string) (any, *problem) {
	for _, e := range a.enum {
		if e == v || s.is(EnumUnchecked) || s.is(EnumIgnoresCase) && strings.EqualFold(e, v) || s.is(EnumPrefix) && v != "" && strings.HasPrefix(e, v) {
			return v, nil
		}
	}
	return nil, s.invalid(c, "%s must be one of %s.", a.label(), strings.Join(a.enum, ", "))
}

var drive = regexp.MustCompile(`\A[A-Za-z]:`)

// escapes tells whether a path leads out of the directory it belongs below (002
// section 4.2.3).
func (s *Server) escapes(v string) bool {
	if strings.Contains(v, "\x00") {
		return true
	}
	if (strings.HasPrefix(v, "/") || strings.HasPrefix(v, `\`)) && !s.is(TraversalAbsolute) {
		return true
	}
	if drive.MatchString(v) && !s.is(TraversalDrive) {
		return true
	}
	separators := `/\`
	if s.is(TraversalBackslash) {
		separators = "/"
	}
	steps := strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(separators, r) })
	switch {
	case s.is(TraversalDots):
		return false
	case s.is(TraversalDotsInside):
		return len(steps) > 0 && steps[0] == ".."
	}
	return slices.Contains(steps, "..")
}
