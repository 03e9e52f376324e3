package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// Bounds of JSON that somebody else wrote.
const (
	maxDepth       = 32
	maxNumberChars = 64
	maxMemberChars = 256
)

// What can be wrong with JSON; the words hold nothing of it.
var (
	errNotUTF8   = errors.New("it is not valid UTF-8")
	errNotJSON   = errors.New("it is not one JSON value")
	errTooDeep   = errors.New("it nests deeper than 32")
	errNumber    = errors.New("it holds a number that is too long or too large")
	errMember    = errors.New("it holds an object whose member names are too long, twice the same, invisible or reserved")
	errNull      = errors.New("it holds a null: leave the member out instead")
	errInvisible = errors.New("it holds control or invisible characters")
)

// scrub reads exactly one JSON value and writes it again, compact, with what a
// person would not see taken out of its strings. The order of members stays. Its
// error is one of the above.
func scrub(raw []byte) (json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, errNotUTF8
	}
	// The whole is checked first, since a decoder of tokens stops where one value
	// ends. It does not recurse, whatever the depth.
	if !json.Valid(raw) {
		return nil, errNotJSON
	}
	w := rewriter{d: json.NewDecoder(bytes.NewReader(raw))}
	w.d.UseNumber()
	w.text = json.NewEncoder(&w.out)
	w.text.SetEscapeHTML(false)
	if err := w.value(0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type rewriter struct {
	d    *json.Decoder
	out  bytes.Buffer
	text *json.Encoder // into out
}

func (w *rewriter) value(depth int) error {
	t, err := w.d.Token()
	if err != nil {
		return errNotJSON
	}
	switch v := t.(type) {
	case json.Delim:
		if depth == maxDepth {
			return errTooDeep
		}
		return w.inside(v, depth)
	case string:
		return w.string(plain.Text(v))
	case json.Number:
		if f, err := strconv.ParseFloat(v.String(), 64); len(v) > maxNumberChars || err != nil || math.IsInf(f, 0) {
			return errNumber
		}
		w.out.WriteString(v.String())
	case bool:
		w.out.WriteString(strconv.FormatBool(v))
	default:
		w.out.WriteString("null")
	}
	return nil
}

// inside writes what is in an object or array whose opening has been read.
func (w *rewriter) inside(open json.Delim, depth int) error {
	w.out.WriteString(open.String())
	seen := map[string]bool{}
	for first := true; w.d.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if open == '{' {
			name, err := w.d.Token()
			if err != nil {
				return errNotJSON
			}
			n, ok := name.(string)
			if !ok || seen[n] || n == "__proto__" || plain.Line(n) != n || utf8.RuneCountInString(n) > maxMemberChars {
				return errMember
			}
			seen[n] = true
			if err := w.string(n); err != nil {
				return err
			}
			w.out.WriteByte(':')
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	end, err := w.d.Token()
	if err != nil {
		return errNotJSON
	}
	w.out.WriteString(end.(json.Delim).String())
	return nil
}

func (w *rewriter) string(s string) error {
	if err := w.text.Encode(s); err != nil {
		return errNotJSON
	}
	w.out.Truncate(w.out.Len() - 1) // the newline
	return nil
}
