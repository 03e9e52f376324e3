package demo

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"mime/quotedprintable"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"
)

// An action of a sample file is {{name argument…}}; an argument is a word or a Go
// string literal. text/template would do this too, but its calls by reflection keep
// every method of every type in the binary, an eighth of it.
var (
	action         = regexp.MustCompile("{{([a-zA-Z0-9]+)((?:\\s+(?:\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[^\\s\"`{}]+))*)}}")
	actionArgument = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[^\\s\"`]+")
)

// fill carries out the actions of a sample file. The files hold readable UTF-8;
// encoded parts are encoded here.
//
//	date            the message's own date, for its Date header
//	dateOf FILE     another message's date, in the same form
//	day N LAYOUT    the first working day from N days from now on, in Go's layout
//	on N CLOCK      that day at that time, as iCalendar writes it, in UTC
//	past N CLOCK    the day N days ago at that time, likewise
//	word CHARSET S  S as encoded words of a header (RFC 2047)
//	b64 CHARSET S   S in that charset, in base64
//	qp CHARSET S    S in that charset, quoted-printable
//	file NAME       a file below mailbox/files, in base64
//	log BYTES       a log file of about that size, in base64
func fill(text []byte, now time.Time, self string, times map[string]time.Time) ([]byte, error) {
	var failed error
	filled := action.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := action.FindSubmatch(found)
		var arguments []string
		for _, a := range actionArgument.FindAllString(string(parts[2]), -1) {
			if s, err := strconv.Unquote(a); err == nil {
				a = s
			}
			arguments = append(arguments, a)
		}
		value, err := act(now, self, times, string(parts[1]), arguments)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: {{%s}}: %w", self, parts[1], err)
		}
		return []byte(value)
	})
	return filled, failed
}

func act(now time.Time, self string, times map[string]time.Time, name string, arguments []string) (string, error) {
	one, two := append(arguments, "", "")[0], append(arguments, "", "")[1]
	number, _ := strconv.Atoi(one)
	switch name {
	case "date":
		return dateOf(times, self)
	case "dateOf":
		return dateOf(times, one)
	case "day":
		return now.AddDate(0, 0, workday(now, number)).Format(two), nil
	case "on":
		at, err := onDay(now, workday(now, number), two)
		return at.UTC().Format("20060102T150405Z"), err
	case "past":
		at, err := onDay(now, -number, two)
		return at.UTC().Format("20060102T150405Z"), err
	case "word":
		return word(one, two)
	case "b64":
		b, err := encode(one, string(crlf([]byte(two))))
		return wrap64(b), err
	case "qp":
		return quoted(one, two)
	case "file":
		b, err := fs.ReadFile(sampleFiles, "mailbox/files/"+one)
		return wrap64(b), err
	case "log":
		return wrap64(buildLog(now, number)), nil
	}
	return "", errors.New("unknown action")
}

func dateOf(times map[string]time.Time, file string) (string, error) {
	at, ok := times[file]
	if !ok {
		return "", fmt.Errorf("no sample %q", file)
	}
	return at.Format(time.RFC1123Z), nil
}

// workday returns days, or one or two more when that day is at a weekend: the
// sample mail has no appointments on weekends.
func workday(now time.Time, days int) int {
	switch now.AddDate(0, 0, days).Weekday() {
	case time.Saturday:
		return days + 2
	case time.Sunday:
		return days + 1
	}
	return days
}

// encode writes UTF-8 text in another charset.
func encode(charset, s string) ([]byte, error) {
	if charset == "utf-8" {
		return []byte(s), nil
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, fmt.Errorf("charset %q: %w", charset, err)
	}
	// A character that the charset lacks is an error of the sample and must not
	// become a question mark.
	b, err := e.NewEncoder().Bytes([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("charset %q: %w", charset, err)
	}
	return b, nil
}

// word writes encoded words of at most 75 characters, none of which splits a
// character, folded one per line (RFC 2047 section 2).
func word(charset, s string) (string, error) {
	const most = 75
	before, after := "=?"+charset+"?B?", "?="
	var words []string
	for rest := []rune(s); len(rest) > 0; {
		n, text := 0, ""
		for n < len(rest) {
			b, err := encode(charset, string(rest[:n+1]))
			if err != nil {
				return "", err
			}
			longer := before + base64.StdEncoding.EncodeToString(b) + after
			if len(longer) > most {
				break
			}
			n, text = n+1, longer
		}
		words = append(words, text)
		rest = rest[n:]
	}
	return strings.Join(words, "\n "), nil
}

func quoted(charset, s string) (string, error) {
	b, err := encode(charset, s)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	w := quotedprintable.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}

// wrap64 is base64 in lines of 76 characters (RFC 2045 section 6.8).
func wrap64(b []byte) string {
	s := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	out.Grow(len(s) + len(s)/76)
	for len(s) > 76 {
		out.WriteString(s[:76])
		out.WriteByte('\n')
		s = s[76:]
	}
	out.WriteString(s)
	return out.String()
}

// buildLog makes the log of a build, one line per step, until it is long enough.
func buildLog(now time.Time, size int) []byte {
	steps := []string{"fetch sources", "check licences", "compile catalogue", "compile reading-room display", "run unit tests", "run display tests", "pack release", "upload"}
	at := now.AddDate(0, 0, -5)
	out := make([]byte, 0, size+100) // and the end of a line
	for i := 0; len(out) < size; i++ {
		out = at.UTC().AppendFormat(out, time.RFC3339)
		out = fmt.Appendf(out, " run=%04d step=\"%s\" status=ok took=%dms\n", i/len(steps), steps[i%len(steps)], 40+i*7919%900)
		at = at.Add(time.Duration(3+i%17) * time.Second)
	}
	return out
}
