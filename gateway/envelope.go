package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
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

	// Asked is set where a person has to decide (Request.CanAsk). JSON is the answer
	// that holds as long as nobody does.
	Asked *Asked

	// Receipts are what the command wants to have run once its answer has arrived. Use
	// WriteTo or Delivered.
	Receipts []func()
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

// Delivered tells the command that its answer has left for the caller whole; it returns
// when the command has noted it. Who hands an answer on in another way than WriteTo calls
// it once, then. A command whose answer is not known to have arrived takes care of that
// itself.
func (a Answer) Delivered() {
	for _, done := range a.Receipts {
		done()
	}
}

// ExitStatus is the process exit status of the answer.
func (a Answer) ExitStatus() int { return a.Code.ExitStatus() }

type meta struct {
	command   string
	duration  time.Duration
	now       time.Time
	untrusted []string
	truncated bool
	auditLost bool
}

// marshal encodes v compactly and leaves <, > and & readable: answers are full of
// addresses, and no HTML page will ever hold them. What would steer a terminal or
// hide from a reader is written as an escape, which changes no value.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escapeUnclear(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escapeUnclear escapes what is plain.Unclear in JSON, which has none of it outside
// strings.
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

func appendString(b []byte, s string) []byte {
	j, err := marshal(s)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	return append(b, j...)
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

func successEnvelope(data []byte, message string, m *meta) []byte {
	b := make([]byte, 0, len(data)+256)
	b = append(b, `{"success":true,"data":`...)
	b = append(b, data...)
	if message != "" {
		b = append(b, `,"message":`...)
		b = appendString(b, message)
	}
	return m.append(b)
}

func failureEnvelope(f *discovery.Fault, m *meta) []byte {
	b := make([]byte, 0, 512)
	b = append(b, `{"success":false,"error":{"code":`...)
	b = appendString(b, string(f.Code))
	b = append(b, `,"message":`...)
	b = appendString(b, f.Message)
	b = append(b, `,"hint":`...)
	b = appendString(b, f.Hint)
	if len(f.Examples) > 0 {
		b = append(b, `,"examples":`...)
		b = appendStrings(b, f.Examples)
	}
	b = append(b, '}')
	return m.append(b)
}

func (m *meta) append(b []byte) []byte {
	b = append(b, `,"_meta":{"command":`...)
	b = appendString(b, m.command)
	b = append(b, `,"duration_ms":`...)
	b = strconv.AppendInt(b, m.duration.Milliseconds(), 10)
	b = append(b, `,"now_utc":"`...)
	b = m.now.UTC().AppendFormat(b, time.RFC3339)
	b = append(b, '"')
	if len(m.untrusted) > 0 {
		b = append(b, `,"untrusted":`...)
		b = appendStrings(b, m.untrusted)
	}
	if m.truncated {
		b = append(b, `,"truncated":true`...)
	}
	if m.auditLost {
		b = append(b, `,"audit":"this command took effect, but its audit entry could not be written"`...)
	}
	return append(b, "}}"...)
}
