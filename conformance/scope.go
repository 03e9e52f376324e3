package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scope holds the values of placeholders: those that steps saved and those of
// a quantifier's item.
type scope map[string]any

var placeholder = regexp.MustCompile(`\$\{([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)(?:\|([a-z]+))?\}`)

// checkPlaceholders refuses text that looks like a placeholder but is not one.
func checkPlaceholders(s string) error {
	for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
		if _, err := filter("", m[2]); err != nil {
			return err
		}
	}
	if strings.Contains(placeholder.ReplaceAllString(strings.ReplaceAll(s, "$${", ""), ""), "${") {
		return fmt.Errorf("%q has a placeholder that cannot be read", s)
	}
	return nil
}

// expand replaces ${path} and ${path|filter} in a text. An unknown name is an error;
// "$${" stands for "${" itself.
func (v scope) expand(s string) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var firstErr error
	parts := strings.Split(s, "$${")
	for i, part := range parts {
		parts[i] = placeholder.ReplaceAllStringFunc(part, func(m string) string {
			sub := placeholder.FindStringSubmatch(m)
			value, ok := v.lookup(sub[1])
			if !ok {
				firstErr = fmt.Errorf("there is no ${%s} here", sub[1])
				return ""
			}
			text, err := filter(textOf(value), sub[2])
			if err != nil && firstErr == nil {
				firstErr = err
			}
			return text
		})
	}
	return strings.Join(parts, "${"), firstErr
}

// value is what a string stands for in a pattern: if it is one placeholder and
// nothing else, the value itself, of whatever type.
func (v scope) value(s string) (any, error) {
	if m := placeholder.FindStringSubmatch(s); m != nil && m[0] == s && m[2] == "" {
		if value, ok := v.lookup(m[1]); ok {
			return value, nil
		}
		return nil, fmt.Errorf("there is no %s here", s)
	}
	return v.expand(s)
}

// fill replaces the placeholders in every string of a value.
func (v scope) fill(value any) (any, error) {
	var err error
	switch in := value.(type) {
	case string:
		return v.value(in)
	case []any:
		out := make([]any, len(in))
		for i, e := range in {
			if out[i], err = v.fill(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(in))
		for k, e := range in {
			if out[k], err = v.fill(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

// lookup returns the value at a dotted path.
func (v scope) lookup(path string) (any, bool) {
	return pointer(map[string]any(v), "/"+strings.ReplaceAll(path, ".", "/"))
}

// textOf is a value as it stands in a text: strings and numbers as they are, an
// array's elements joined by commas, anything else as JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case []any:
		list := make([]string, len(v))
		for i, e := range v {
			list[i] = textOf(e)
		}
		return strings.Join(list, ",")
	}
	b, _ := json.Marshal(v) // made of JSON values
	return string(b)
}

func filter(s, name string) (string, error) {
	switch name {
	case "":
		return s, nil
	case "quote":
		return quote(s), nil
	case "word":
		return " " + quote(s), nil
	case "value":
		if strings.HasPrefix(s, "-") {
			return "=" + quote(s), nil
		}
		return " " + quote(s), nil
	case "regex":
		return regexp.QuoteMeta(s), nil
	case "upper":
		if upper := strings.ToUpper(s); upper != s {
			return upper, nil
		}
		return strings.ToLower(s), nil
	case "newline":
		return strings.Replace(s, "n", `\n`, 1), nil
	case "tab":
		return strings.Replace(s, "t", `\t`, 1), nil
	case "chop":
		_, size := utf8.DecodeLastRuneInString(s)
		return s[:len(s)-size], nil
	}
	return "", fmt.Errorf("there is no filter %q", name)
}

var bare = regexp.MustCompile(`\A[A-Za-z0-9_./:@,+=%-]+\z`)

// quote writes an argument so that every tokenizer of 002 section 4.1 reads it back:
// as it is, else in single quotes, else in double quotes.
func quote(s string) string {
	switch {
	case bare.MatchString(s):
		return s
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

var pointerEscapes, pointerMeanings = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

func escapePointer(s string) string { return pointerEscapes.Replace(s) }

// pointer returns the value at a JSON pointer (RFC 6901) in a document.
func pointer(doc any, p string) (any, bool) {
	if p == "" {
		return doc, true
	}
	for _, token := range strings.Split(p[1:], "/") {
		token = pointerMeanings.Replace(token)
		switch in := doc.(type) {
		case map[string]any:
			v, ok := in[token]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			doc = in[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// listAt returns the array at a JSON pointer, nil without one.
func listAt(doc any, p string) []any {
	v, _ := pointer(doc, p)
	list, _ := v.([]any)
	return list
}

// textAt returns the string at a JSON pointer, empty without one.
func textAt(doc any, p string) string {
	v, _ := pointer(doc, p)
	text, _ := v.(string)
	return text
}
