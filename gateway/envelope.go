package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
)

// Bounds of an answer.
const (
	MaxAnswerBytes  = 256 << 10 // of the envelope, unless the caller asked for bytes
	MaxShownCommand = 256       // runes of _meta.command and of the audit entry's command
)

// Answer is the outcome of one command: an envelope (002 section 5) and the code
// that the envelope carries.
type Answer struct {
	JSON []byte         // compact, without a newline
	Code discovery.Code // empty on success

	// Failed is the code of a check that failed, where a success tells of checks
	// (discovery.Checker).
	Failed discovery.Code

	// Asked is set where a person has to decide (Request.CanAsk). JSON is the answer until
	// somebody decides.
	Asked *Asked

	// Receipts are the functions to run once the command's answer has arrived. Use
	// WriteTo or Delivered.
	Receipts []func()

	// What JSON says in the full answer, for a caller in this process. None of it is ever sent.
	Result  any              // what the command returned; nil on failure, and where --fields chose a part of it
	Data    json.RawMessage  // the data; nil on failure
	Fault   *discovery.Fault // nil on success
	Message string           // of a success
	Cut     bool             // Result was made smaller to fit, or ends before its end
	Audit   string           // that the command took effect and its entry could not be written; empty otherwise
}

// Member is the field of this type that the result of an answer has, also where that is one of what is embedded in it;
// zero where it has none. T is a type of which a result has one field.
func Member[T any](a Answer) (member T) {
	v := reflect.Indirect(reflect.ValueOf(a.Result))
	if v.Kind() != reflect.Struct {
		return member
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if field, err := v.FieldByIndexErr(f.Index); err == nil && f.IsExported() && f.Type == reflect.TypeFor[T]() {
			return field.Interface().(T)
		}
	}
	return member
}

// Success reports whether the command did what it was asked.
func (a Answer) Success() bool { return a.Code == "" }

// WriteTo writes the envelope as a line of its own, and tells the command that it has
// left (Delivered).
func (a Answer) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(append(a.JSON[:len(a.JSON):len(a.JSON)], '\n'))
	if err == nil {
		a.Delivered()
	}
	return int64(n), err
}

// Delivered tells the command that its whole answer has left for the caller, and returns
// when the command has noted it. A caller that does not use WriteTo calls it once, when
// the answer has been written. Without it the command treats the answer as not arrived.
func (a Answer) Delivered() {
	for _, done := range a.Receipts {
		done()
	}
}

// ExitStatus is the process exit status of the answer.
func (a Answer) ExitStatus() int { return cmp.Or(a.Code, a.Failed).ExitStatus() }

// envelope is what an answer says (002 section 5), in this order.
type envelope struct {
	Success bool            `json:"success"`
	Meta    *meta           `json:"_meta,omitempty"` // what is untrusted is told before it
	Data    json.RawMessage `json:"data,omitempty"`
	Message string          `json:"message,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code     discovery.Code `json:"code"`
	Message  string         `json:"message"`
	Hint     string         `json:"hint"`
	Examples []string       `json:"examples,omitempty"`
}

// meta is the envelope's _meta. Without --full it is there only for what the data cannot say.
type meta struct {
	Command    string   `json:"command,omitempty"`
	DurationMS *int64   `json:"duration_ms,omitempty"`
	Now        string   `json:"now_utc,omitempty"` // RFC 3339
	Untrusted  []string `json:"untrusted,omitempty"`
	Truncated  bool     `json:"truncated,omitempty"`
	Audit      string   `json:"audit,omitempty"`
}

// encode returns the envelope, whose Data are JSON.
func (e *envelope) encode() []byte {
	b, err := marshal(e)
	if err != nil { // nothing in it has no JSON form
		panic(err)
	}
	return b
}

// marshal is plain.JSON of a value. Characters that steer a terminal or that
// a reader cannot see are escaped, which changes no value.
func marshal(v any) ([]byte, error) {
	b, err := plain.JSON(v)
	return escapeUnclear(b), err
}

// escapeUnclear escapes the characters of JSON that are plain.Unclear, which stand in its
// strings only.
func escapeUnclear(b []byte) []byte {
	i := bytes.IndexFunc(b, plain.Unclear)
	if i < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)+64), b[:i]...)
	for _, r := range string(b[i:]) {
		switch {
		case !plain.Unclear(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
