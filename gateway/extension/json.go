package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// Bounds of JSON that somebody else wrote.
const (
	maxDepth       = 32
	maxNumberChars = 64
	maxMemberChars = 256
)

// The faults of JSON; their texts repeat nothing of it.
var (
	errNotUTF8   = errors.New("it is not valid UTF-8")
	errNotJSON   = errors.New("it is not one JSON value")
	errTooDeep   = errors.New("it nests deeper than 32")
	errNumber    = errors.New("it holds a number that is too long or too large")
	errMember    = errors.New("it holds an object whose member names are too long, twice the same, invisible or reserved")
	errNull      = errors.New("it holds a null: leave the member out instead")
	errInvisible = errors.New("it holds control or invisible characters")
	errLong      = fmt.Errorf("a text is longer than %d characters", maxLongText)
)

// scrub reads exactly one JSON value and writes it again, compact, without the characters
// in its strings that a person would not see. The order of members stays. A manifest is
// refused if characters would be taken out, if a text is too long, or if a null leaves open
// whether something was meant. The error repeats nothing of the JSON.
func scrub(raw []byte, manifest bool) (json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, errNotUTF8
	}
	// The whole is checked first, since a decoder of tokens stops where one value
	// ends. It does not recurse, whatever the depth.
	if !json.Valid(raw) {
		return nil, errNotJSON
	}
	w := rewriter{d: json.NewDecoder(bytes.NewReader(raw)), manifest: manifest}
	w.d.UseNumber()
	w.text = json.NewEncoder(&w.out)
	w.text.SetEscapeHTML(false)
	if err := w.value(0, ""); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type rewriter struct {
	d        *json.Decoder
	out      bytes.Buffer
	text     *json.Encoder // into out
	manifest bool
}

// value writes the next value, which is that of a member or is in an array that is.
func (w *rewriter) value(depth int, member string) error {
	t, err := w.d.Token()
	if err != nil {
		return errNotJSON
	}
	switch v := t.(type) {
	case json.Delim:
		if depth == maxDepth {
			return errTooDeep
		}
		return w.inside(v, depth, member)
	case string:
		clean := plain.Text(v)
		switch {
		case w.manifest && (clean != v || strings.ContainsAny(v, "\n\t")):
			return errInvisible
		case w.manifest && utf8.RuneCountInString(v) > maxLongText:
			return errLong
		}
		return w.string(clean)
	case json.Number:
		if f, err := strconv.ParseFloat(v.String(), 64); len(v) > maxNumberChars || err != nil || math.IsInf(f, 0) {
			return errNumber
		}
		w.out.WriteString(v.String())
	case bool:
		w.out.WriteString(strconv.FormatBool(v))
	default:
		if w.manifest {
			return errNull
		}
		w.out.WriteString("null")
	}
	return nil
}

// inside writes what is in an object or array whose opening has been read.
func (w *rewriter) inside(open json.Delim, depth int, member string) error {
	w.out.WriteString(open.String())
	seen := map[string]bool{}
	for first := true; w.d.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		in := member
		if open == '{' {
			name, err := w.d.Token()
			if err != nil {
				return errNotJSON
			}
			n, ok := name.(string)
			if !ok || seen[n] || n == "__proto__" || plain.Line(n) != n || utf8.RuneCountInString(n) > maxMemberChars {
				return errMember
			}
			if w.manifest && member != "properties" && n != strings.ToLower(n) { // decode would take it for one of ours
				return unknownMember(strconv.Quote(n))
			}
			in, seen[n] = n, true
			if err := w.string(n); err != nil {
				return err
			}
			w.out.WriteByte(':')
		}
		if err := w.value(depth+1, in); err != nil {
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

// decode reads JSON that scrub has let through into v, a pointer to a struct that has a
// field for each of its members.
func decode(clean []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(clean))
	d.UseNumber()
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("its member %q is not of the right type", wrong.Field)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknownMember(name)
	}
	return errNotJSON
}

func unknownMember(quoted string) error { return fmt.Errorf("its member %s is not known", quoted) }
