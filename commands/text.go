package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
)

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func capital(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

// people are addresses as a person writes them.
func people(list []mail.Address) string { return strings.Join(written(list), ", ") }

// written is each address as a person writes it, never nil.
func written(list []mail.Address) []string {
	text := make([]string, len(list))
	for i, a := range list {
		text[i] = a.String()
	}
	return text
}

// timestamp is RFC 3339 in the message's own zone; empty for none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func utc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// minute is a time as a compact answer shows it, in UTC, and as options take it back; empty
// for none.
func minute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04Z")
}

// minuteOf is minute for a time of a full answer.
func minuteOf(timestamp string) string {
	t, _ := time.Parse(time.RFC3339, timestamp) // it is zero where there is none
	return minute(t)
}
