package discovery

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// set writes the given texts, one unless the argument is an array, into field v.
// It returns what is wrong in words that follow the argument's label, or "". The
// words never repeat the value: it may be sensitive.
func (a *Argument) set(v reflect.Value, texts []string, loc *time.Location) string {
	if a.Kind != KindArray {
		return a.setOne(v, a.Kind, texts[0], loc)
	}
	if a.MinItems != nil && uint64(len(texts)) < *a.MinItems {
		return fmt.Sprintf("needs at least %d values", *a.MinItems)
	}
	if a.MaxItems != nil && uint64(len(texts)) > *a.MaxItems {
		return fmt.Sprintf("takes at most %d values", *a.MaxItems)
	}
	s := reflect.MakeSlice(v.Type(), len(texts), len(texts))
	for i, t := range texts {
		if msg := a.setOne(s.Index(i), a.Item, t, loc); msg != "" {
			return msg
		}
	}
	v.Set(s)
	return ""
}

func (a *Argument) setOne(v reflect.Value, kind Kind, text string, loc *time.Location) string {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch kind {
	case KindString, KindEnum:
		if kind == KindEnum && !slices.Contains(a.Enum, text) {
			return "must be one of " + strings.Join(a.Enum, ", ")
		}
		if msg := a.checkLength(text); msg != "" {
			return msg
		}
		v.SetString(text)
	case KindBoolean, KindFlag:
		switch text {
		case "true", "false":
			v.SetBool(text == "true")
		default:
			return "must be true or false"
		}
	case KindInteger:
		return a.setInteger(v, text)
	case KindNumber:
		f, ok := parseNumber(text)
		if !ok {
			return "must be a decimal number"
		}
		if msg := a.checkRange(f); msg != "" {
			return msg
		}
		v.SetFloat(f)
	case KindDatetime:
		if v.Type() == dateType {
			return setDate(v, text)
		}
		d, ok := parseDatetime(text, loc)
		if !ok {
			return cmp.Or(a.Form, "must be an ISO 8601 date or time, such as 2026-02-02, 2026-02-02T10:00:00Z or, of today, 10:00")
		}
		v.Set(reflect.ValueOf(d))
	}
	return ""
}

func (a *Argument) checkLength(text string) string {
	n := uint64(utf8.RuneCountInString(text))
	switch {
	case a.MinLength != nil && n < *a.MinLength && *a.MinLength == 1:
		return "must not be empty"
	case a.MinLength != nil && n < *a.MinLength:
		return fmt.Sprintf("must be at least %d characters long", *a.MinLength)
	case a.MaxLength != nil && n > *a.MaxLength:
		return fmt.Sprintf("must be at most %d characters long", *a.MaxLength)
	case a.Pattern != nil && !a.Pattern.MatchString(text):
		return cmp.Or(a.Form, "does not have the form that the command's help gives")
	}
	return ""
}

// The forms of numbers are those of JSON, so that a value is written alike in a
// command and in an instance of the schema.
var integerPattern = regexp.MustCompile(`\A-?(0|[1-9][0-9]{0,39})\z`)

func (a *Argument) setInteger(v reflect.Value, text string) string {
	if !integerPattern.MatchString(text) {
		return "must be a decimal integer"
	}
	f, _ := strconv.ParseFloat(text, 64)
	if msg := a.checkRange(f); msg != "" {
		return msg
	}
	if v.CanUint() {
		u, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return "is too large"
		}
		v.SetUint(u)
		return ""
	}
	i, err := strconv.ParseInt(text, 10, v.Type().Bits())
	if err != nil {
		return "is too large"
	}
	v.SetInt(i)
	return ""
}

// checkRange compares as float64, which is exact for every bound in use: none is
// above 2^53.
func (a *Argument) checkRange(f float64) string {
	low, errLow := a.Minimum.Float64()
	high, errHigh := a.Maximum.Float64()
	below, above := errLow == nil && f < low, errHigh == nil && f > high
	switch {
	case (below || above) && errLow == nil && errHigh == nil:
		return fmt.Sprintf("must be between %s and %s", a.Minimum, a.Maximum)
	case below:
		return fmt.Sprintf("must be at least %s", a.Minimum)
	case above:
		return fmt.Sprintf("must be at most %s", a.Maximum)
	}
	return ""
}

var numberPattern = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\z`)

func parseNumber(text string) (float64, bool) {
	if !numberPattern.MatchString(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0)
}

var datetimePattern = regexp.MustCompile(`\A[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?\z`)

// The layouts that the pattern lets through; time.Parse takes a fraction of a
// second after the seconds by itself.
var datetimeLayouts = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04",
}

// clockPattern is a time of day alone.
var clockPattern = regexp.MustCompile(`\A[0-9]{2}:[0-9]{2}(:[0-9]{2})?\z`)

// parseDatetime reads ISO 8601 in its extended format. What has no offset is in
// loc, a time of day alone is of today there. time.Parse alone is too lenient about the form, the pattern about the
// calendar, so both must agree. The year 0 has no RFC 3339 form everywhere, so
// years start at 1.
func parseDatetime(text string, loc *time.Location) (Datetime, bool) {
	if clockPattern.MatchString(text) {
		text = time.Now().In(loc).Format("2006-01-02T") + text
	}
	if !datetimePattern.MatchString(text) || strings.HasPrefix(text, "0000") {
		return Datetime{}, false
	}
	if len(text) == len("2006-01-02") {
		t, err := time.ParseInLocation("2006-01-02", text, loc)
		for err == nil && t.Format("2006-01-02") < text {
			t = t.Add(time.Hour) // midnight does not exist where clocks go forward then
		}
		return Datetime{Time: t, DateOnly: true}, err == nil
	}
	for _, layout := range datetimeLayouts {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return Datetime{Time: t}, true
		}
	}
	return Datetime{}, false
}

// setDate takes the full-date of RFC 3339 and nothing else.
func setDate(v reflect.Value, text string) string {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || !datetimePattern.MatchString(text) || strings.HasPrefix(text, "0000") {
		return "must be a day, such as 2026-02-02"
	}
	v.Set(reflect.ValueOf(Date{t}))
	return ""
}

// splitList splits an array option's value at its commas; "\," is a comma that
// belongs to an element, and every other backslash is itself.
func splitList(value string) []string {
	var items []string
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '\\' && i+1 < len(value) && value[i+1] == ',':
			i++
			b.WriteByte(',')
		case value[i] == ',':
			items = append(items, b.String())
			b.Reset()
		default:
			b.WriteByte(value[i])
		}
	}
	return append(items, b.String())
}

// traverses reports whether a path could name something outside the directory it
// is relative to, on any operating system: the answer must not depend on the
// machine, and the file is opened through os.Root besides.
var traverses = regexp.MustCompile(`\A([A-Za-z]:|[/\\])|\x00|(\A|[/\\])\.\.([/\\]|\z)`).MatchString
