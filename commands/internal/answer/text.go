package answer

import (
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
)

// Count is a number of things in words.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Capital begins a sentence with a capital letter.
func Capital(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

// People are addresses as a person writes them.
func People(list []mail.Address) string { return strings.Join(Written(list), ", ") }

// Written is each address as a person writes it, never nil.
func Written(list []mail.Address) []string {
	return Each(list, func(a *mail.Address) string { return a.String() })
}

// Timestamp is RFC 3339 in the message's own zone; empty for none.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// UTC is RFC 3339 in UTC; empty for none.
func UTC(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Minute is a time as a compact answer shows it, in UTC, and as options take it back; empty
// for none.
func Minute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04Z")
}

// MinuteOf is Minute for a time of a full answer.
func MinuteOf(timestamp string) string {
	t, _ := time.Parse(time.RFC3339, timestamp) // it is zero where there is none
	return Minute(t)
}

// MaxShownChars bounds a subject, a name or a list of addresses in a compact answer.
const MaxShownChars = 120
