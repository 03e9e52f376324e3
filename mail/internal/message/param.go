package message

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// maxParams bounds the parameters of one field; the rest is dropped.
const maxParams = 200

// splitParams splits a field such as Content-Type into its value, lower case,
// and its parameters. It forgives what real mail has: unquoted values with
// spaces, missing semicolons, unterminated quotes, Windows paths in quotes. Of
// equal names the first counts.
func splitParams(s string) (value string, params map[string]string) {
	end := strings.IndexByte(s, ';')
	if end < 0 {
		end = len(s)
	}
	value = s[:end]
	if i := strings.IndexByte(value, '('); i > 0 {
		value = value[:i] // a comment
	}
	value = strings.TrimSpace(value)
	if i := strings.IndexAny(value, " \t"); i > 0 && strings.Contains(value[i:], "=") {
		end = i + strings.Index(s, value) // a semicolon was forgotten
		value = value[:i]
	}
	value = strings.ToLower(value)
	params = map[string]string{}
	for s = s[end:]; len(params) < maxParams; {
		s = strings.TrimLeft(s, "; \t")
		i := strings.IndexAny(s, "=;")
		if i < 0 {
			break
		}
		if s[i] == ';' {
			s = s[i:]
			continue
		}
		name := strings.ToLower(strings.TrimSpace(s[:i]))
		var v string
		v, s = paramValue(name, strings.TrimLeft(s[i+1:], " \t"))
		if _, twice := params[name]; !twice && name != "" {
			params[name] = v
		}
	}
	return value, params
}

// paramValue takes a value from the front of s and returns what follows it.
func paramValue(name, s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		value, rest = s, ""
		if i := strings.IndexByte(s, ';'); i >= 0 {
			value, rest = s[:i], s[i:]
		}
		value = strings.TrimSpace(value)
		// Only names are written with spaces and without quotes.
		if i := strings.IndexAny(value, " \t"); i >= 0 && !isNameParam(name) {
			value, rest = value[:i], value[i:]+rest
			if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "(") { // a comment
				if i := strings.IndexByte(rest, ')'); i >= 0 {
					rest = rest[i+1:]
				}
			}
		}
		return value, rest
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

func isNameParam(name string) bool {
	return strings.HasPrefix(name, "name") || strings.HasPrefix(name, "filename")
}

// isToken reports whether s is a token of RFC 2045 section 5.1.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?=`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// lowerKeys returns a copy of params with lower-case names, never nil.
func lowerKeys(params map[string]string) map[string]string {
	lower := make(map[string]string, len(params))
	for k, v := range params {
		lower[strings.ToLower(k)] = v
	}
	return lower
}

// param returns a parameter by its lower-case name: its RFC 2231 form, which
// says its charset, before the plain one. Continuations are joined before they
// are decoded, for a character may be split between two.
func param(params map[string]string, name string) string {
	if v, ok := params[name+"*"]; ok {
		return decodeExtended([]extended{{v, true}})
	}
	var pieces []extended
	for i := 0; i < maxParams; i++ {
		key := name + "*" + strconv.Itoa(i)
		v, ok := params[key+"*"]
		encoded := ok
		if !ok {
			if v, ok = params[key]; !ok {
				break
			}
		}
		pieces = append(pieces, extended{v, encoded})
	}
	if len(pieces) > 0 {
		return decodeExtended(pieces)
	}
	return params[name]
}

// extended is a piece of a parameter of RFC 2231.
type extended struct {
	value   string
	encoded bool // percent-encoded, and the first piece begins with charset'language'
}

func decodeExtended(pieces []extended) string {
	charset := ""
	var b bytes.Buffer
	for i, p := range pieces {
		v := p.value
		if !p.encoded {
			b.WriteString(v)
			continue
		}
		if i == 0 {
			if parts := strings.SplitN(v, "'", 3); len(parts) == 3 {
				charset, v = parts[0], parts[2]
			}
		}
		for j := 0; j < len(v); j++ {
			if v[j] == '%' && j+2 < len(v) {
				if octet, err := strconv.ParseUint(v[j+1:j+3], 16, 8); err == nil {
					b.WriteByte(byte(octet))
					j += 2
					continue
				}
			}
			b.WriteByte(v[j])
		}
	}
	if charset == "" && !pieces[0].encoded {
		return b.String() // encoded words may stand in it, which the caller decodes
	}
	return rfc5322.DecodeText(b.Bytes(), charset)
}

// Filename returns the name of a part from the parameters of its
// Content-Disposition and Content-Type, decoded and made safe as the name of
// one file: no path separator, drive letter or leading dot, at most 255 bytes.
// It is empty when neither names the part. The names of parameters are in lower
// case; either map may be nil. Sources: RFC 2183, RFC 2231, and for what mail
// programs do in spite of them RFC 2047 and raw eight-bit names.
func Filename(dispositionParams, typeParams map[string]string) string {
	name := param(dispositionParams, "filename")
	if strings.TrimSpace(name) == "" {
		name = param(typeParams, "name")
	}
	if strings.TrimSpace(name) == "" { // some swap them
		name = param(dispositionParams, "name")
	}
	if strings.TrimSpace(name) == "" {
		name = param(typeParams, "filename")
	}
	if strings.Contains(name, "=?") {
		name = rfc5322.DecodeHeader(name)
	}
	return oneFile(plain.Line(rfc5322.DecodeText([]byte(name), "")))
}

// maxFilename is the longest name that common file systems take, in bytes.
const maxFilename = 255

// oneFile makes a name that stays in the directory it is used in, on any
// system.
func oneFile(name string) string {
	name = strings.Map(func(r rune) rune {
		switch r {
		case '/', '\\', ':', 0:
			return '_'
		}
		return r
	}, strings.TrimSpace(name))
	trimmed := strings.TrimLeft(name, ".")
	name = strings.Repeat("_", len(name)-len(trimmed)) + trimmed
	name = strings.TrimRight(name, ". ") // Windows drops them, and so would name another file
	if len(name) > maxFilename {
		ext := path.Ext(name)
		if len(ext) > 32 {
			ext = ""
		}
		name = strings.ToValidUTF8(name[:maxFilename-len(ext)], "") + ext
	}
	if base, _, _ := strings.Cut(strings.ToLower(name), "."); isDevice(strings.TrimSpace(base)) {
		name = "_" + name
	}
	return name
}

// isDevice reports whether Windows takes a name for a device.
func isDevice(base string) bool {
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9'
}
