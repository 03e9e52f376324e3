package message

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// maxParams bounds the parameters of one field; the rest is dropped.
const maxParams = 200

// splitParams splits a field such as Content-Type into its value, lower case,
// and its parameters. It forgives the errors of real mail: unquoted values
// with spaces, missing semicolons, unterminated quotes, Windows paths in
// quotes. The first of equal names counts.
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
	for _, m := range paramForm.FindAllStringSubmatch(s[end:], maxParams) {
		name := strings.ToLower(m[1] + m[3])
		if _, twice := params[name]; !twice {
			params[name] = strings.TrimSpace(m[2]) + quotedPair.ReplaceAllString(m[4], "$1") + m[5]
		}
	}
	return value, params
}

var (
	// A file's name with spaces and without quotes, or any parameter with a value in
	// quotes or a word.
	paramForm  = regexp.MustCompile(`(?i)((?:file)?name[^=;\s]*)\s*=\s*([^";\s][^;]*)|([^=;\s]+)\s*=\s*(?:"((?:\\["\\]|[^"])*)"?|([^;\s]*))`)
	quotedPair = regexp.MustCompile(`\\(["\\])`)
)

// lowerKeys returns a copy of params with lower-case names, never nil.
func lowerKeys(params map[string]string) map[string]string {
	lower := make(map[string]string, len(params))
	for k, v := range params {
		lower[strings.ToLower(k)] = v
	}
	return lower
}

// param returns a parameter by its lower-case name, in its RFC 2231 form,
// which names its charset, else in its plain form. Continuations are joined
// before they are decoded, for a character may be split between two.
func param(params map[string]string, name string) string {
	first, extended := params[name+"*"]
	pieces := []string{first}
	if !extended {
		pieces, extended = continuations(params, name)
	}
	value := strings.Join(pieces, "")
	charset := ""
	if parts := strings.SplitN(value, "'", 3); extended && len(parts) == 3 { // and a language
		charset, value = parts[0], parts[2]
	}
	value = octet.ReplaceAllStringFunc(value, func(escape string) string {
		n, _ := strconv.ParseUint(escape[1:], 16, 8) // two digits
		return string([]byte{byte(n)})
	})
	switch {
	case extended:
		return rfc5322.DecodeText([]byte(value), charset)
	case len(pieces) > 0:
		return value // it may hold encoded words, which the caller decodes
	}
	return params[name]
}

// continuations returns the pieces of a parameter (RFC 2231 section 3), all
// percent-encoded, and whether the first one names the charset.
func continuations(params map[string]string, name string) (pieces []string, extended bool) {
	for i := range maxParams {
		key := name + "*" + strconv.Itoa(i)
		piece, encoded := params[key+"*"]
		if !encoded {
			plain, ok := params[key]
			if !ok {
				break
			}
			piece = strings.ReplaceAll(plain, "%", "%25")
		}
		pieces, extended = append(pieces, piece), extended || encoded && i == 0
	}
	return pieces, extended
}

var octet = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

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
	if strings.TrimSpace(name) == "" { // some programs swap the two
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
	name = strings.TrimRight(name, ". ") // Windows drops them, and so names another file
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

// isDevice reports whether Windows treats a name as a device.
func isDevice(base string) bool {
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9'
}
