package compose

import (
	"errors"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// maxTyped is the longest text that is read as an address, in bytes.
const maxTyped = 2000

// The reasons for which ParseAddress refuses an address. No text repeats the input.
var (
	errAddress  = errors.New("it is not an address such as ann@example.org or Ann Lee <ann@example.org>")
	errSeveral  = errors.New("it is not one address alone: give each separately, and put a name with a comma or semicolon in double quotes")
	errName     = errors.New("the name before the address must be in double quotes, as it holds one of ( ) < > [ ] : @ \\ \"")
	errQuote    = errors.New("the quoted name does not end, or has something other than a space or the address behind it")
	errEncoded  = errors.New("the name holds an encoded word: write it as it reads")
	errBrackets = errors.New("the address behind a name must be in angle brackets")
	errDomain   = errors.New("the domain of the address is not a valid domain name")
	errLocal    = errors.New("the part before the @ holds letters in an unusual form: write them as they are usually written")
)

// ParseAddress reads one address as a person writes it:
//
//	ann@example.org
//	<ann@example.org>
//	Ann Lee <ann@example.org>
//	"Lee, Ann" <ann@example.org>
//
// Spaces around the address and repeated spaces in the name are removed. Lists,
// groups, comments, routes, quoted local parts, domain literals, encoded words,
// and names with a control or invisible character are refused; a name with one
// of the characters of the address grammar must be quoted.
//
// A domain outside ASCII becomes its A-labels (RFC 5891), which every server
// accepts. Beside a local part outside ASCII, which needs SMTPUTF8 anyway, it
// stays as people read it. A local part may exceed the 64 octets of RFC 5321
// section 4.5.3.1.1, as addresses made for one reply do.
//
// Parsing the result's String gives the same address. The error is one
// sentence and does not repeat s.
func ParseAddress(s string) (Address, error) {
	if err := checkText("address", s, maxTyped); err != nil {
		var f *FieldError
		if errors.As(err, &f) {
			return Address{}, errors.New(f.Problem)
		}
		return Address{}, err
	}
	s = strings.Trim(s, " ")
	name, addr, err := splitTyped(s)
	if err != nil {
		return Address{}, err
	}
	name = plain.Line(name)
	if err := checkName(name); err != nil {
		return Address{}, err
	}
	if addr, err = normalAddr(addr); err != nil {
		return Address{}, err
	}
	return Address{Name: name, Addr: addr}, nil
}

// splitTyped splits the input into a name, without its quotes, and the text
// where the address belongs.
func splitTyped(s string) (name, addr string, err error) {
	var words []string
	for s != "" && s[0] != '<' {
		switch {
		case s[0] == ' ':
			s = strings.TrimLeft(s, " ")
		case s[0] == '"':
			word, rest, ok := cutQuoted(s)
			if !ok || rest != "" && rest[0] != ' ' && rest[0] != '<' {
				return "", "", errQuote
			}
			words, s = append(words, word), rest
		default:
			end := strings.IndexAny(s, " <\"")
			if end < 0 {
				end = len(s)
			}
			words, s = append(words, s[:end]), s[end:]
			word := words[len(words)-1]
			switch {
			case strings.ContainsAny(word, ",;"):
				return "", "", errSeveral
			case s == "" && len(words) == 1:
				return "", word, nil // an address alone
			case strings.Contains(word, "@") && s == "":
				return "", "", errBrackets
			case s != "" && s[0] == '"' || strings.ContainsAny(word, "()[]:@\\>"):
				return "", "", errName
			}
		}
	}
	if s == "" {
		return "", "", errAddress
	}
	inside, rest, closed := strings.Cut(s[1:], ">")
	switch {
	case !closed:
		return "", "", errAddress
	case rest != "":
		if strings.ContainsAny(rest, ",;") {
			return "", "", errSeveral
		}
		return "", "", errAddress
	}
	return strings.Join(words, " "), inside, nil
}

// cutQuoted takes a quoted string (RFC 5322 section 3.2.4) off s and returns its
// content. A backslash may only precede a quote or another backslash.
func cutQuoted(s string) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", false
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// checkName refuses names that a reader would not show as they are.
func checkName(name string) error {
	var f *FieldError
	switch err := checkText("name", name, maxName); {
	case errors.As(err, &f):
		return errors.New("the name: " + f.Problem)
	case strings.Contains(name, "=?"):
		return errEncoded
	}
	return nil
}

// normalAddr returns a plain address as it is written in headers and envelopes.
func normalAddr(s string) (string, error) {
	local, domain, ok := rfc5322.SplitAddr(s)
	if !ok {
		return "", errAddress
	}
	// Where Unicode writes a letter in several ways only one is accepted, so that
	// the address that is judged, shown and sent is the same.
	if norm.NFKC.String(local) != local {
		return "", errLocal
	}
	ascii, ok := asciiDomain(domain)
	switch {
	case !ok:
		return "", errDomain
	case isASCII(domain):
		return s, nil
	case isASCII(local):
		domain = ascii
	default:
		unicoded, err := idna.Lookup.ToUnicode(ascii)
		if err != nil {
			return "", errDomain
		}
		domain = unicoded
	}
	if s = local + "@" + domain; len(s) > rfc5322.MaxAddrBytes {
		return "", errDomain
	}
	return s, nil
}

// asciiDomain returns a domain with A-labels for the labels outside ASCII. A
// label outside ASCII that IDNA maps to ASCII is refused: its letters only look
// like ASCII, and the reader would see another domain than is meant.
func asciiDomain(domain string) (string, bool) {
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil || len(ascii) > 253 {
		return "", false
	}
	was, is := strings.Split(domain, "."), strings.Split(ascii, ".")
	if len(was) != len(is) {
		return "", false
	}
	for i, label := range is {
		if label == "" || len(label) > 63 || !isASCII(was[i]) && !strings.HasPrefix(label, "xn--") {
			return "", false
		}
	}
	return ascii, true
}

// checkAddress refuses an address that ParseAddress would not have returned.
func checkAddress(field string, a Address) error {
	if normal, err := normalAddr(a.Addr); err != nil || normal != a.Addr {
		return fault(field, "an address is not in its plain form, such as ann@example.org")
	}
	return checkText(field, a.Name, maxName)
}
