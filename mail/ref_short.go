package mail

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// Short is the form of a message id that lists show: 50 is UID 50 of INBOX, Sent/5 that
// of another folder; with the account's name and a colon before it where an id has to
// say which account it means. It has no UIDVALIDITY: who reads it back has to know the
// one under which the folder was shown. The long form stands in its place for a message
// of a POP3 mailbox, and for an account whose name begins like an option.
func (r Ref) Short(account bool) string {
	if r.Protocol == POP3 || account && strings.HasPrefix(r.Account, "-") {
		return r.String()
	}
	s := strconv.FormatUint(uint64(r.UID), 10)
	if r.Folder != "INBOX" {
		s = escapeFolder(r.Folder) + "/" + s
	}
	if account {
		s = r.Account + ":" + s
	}
	return s
}

// ParseShortRef reads what Short writes for IMAP: Account is empty where the id names
// none, and UIDValidity is 0. What ParseRef takes is never a short id: that has two
// colons at least, this one at most. The error says what is wrong and repeats nothing of
// s.
func ParseShortRef(s string) (Ref, error) {
	r := Ref{Protocol: IMAP, Folder: "INBOX"}
	if account, rest, ok := strings.Cut(s, ":"); ok {
		if r.Account, s = account, rest; !ValidAccountName(account) || account[0] == '-' {
			return Ref{}, errors.New("what stands before its colon is not an account's name")
		}
	}
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		folder, err := url.PathUnescape(s[:i])
		if strings.ContainsRune(s, ':') {
			return Ref{}, errors.New("a colon in its folder's name is written %3A")
		}
		if err != nil || !utf8.ValidString(folder) {
			return Ref{}, errors.New("a percent sign in its folder's name is not followed by the two digits of a character (%25 is the sign itself)")
		}
		if err := CheckFolder(folder); err != nil {
			return Ref{}, err
		}
		r.Folder, s = folder, s[i+1:]
	}
	if strings.ContainsRune(s, ',') {
		return Ref{}, errors.New("several ids are separated by spaces, and a comma in a folder's name is written %2C")
	}
	var ok bool
	if r.UID, ok = parseNZ(s); !ok {
		return Ref{}, errors.New("it does not end with a UID, a number from 1 to 4294967295")
	}
	if strings.EqualFold(r.Folder, "INBOX") {
		r.Folder = "INBOX"
	}
	return r, nil
}

// escapeFolder percent-encodes what would end a word of a command, or an id in a list of
// them, and what a reader could not copy.
func escapeFolder(name string) string {
	var b strings.Builder
	for i, c := range name {
		if !strings.ContainsRune(`"',:\%`, c) && !unicode.IsSpace(c) && !plain.Unclear(c) && (c != '-' || i > 0) {
			b.WriteRune(c)
			continue
		}
		for _, octet := range []byte(string(c)) {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[octet>>4], digits[octet&15]})
		}
	}
	return b.String()
}
