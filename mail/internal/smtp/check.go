package smtp

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// The bounds of a message.
const (
	MaxRecipients = 100 // what every server takes (RFC 5321 section 4.5.3.1.8)
	maxTextLine   = 998 // bytes without the line end (RFC 5322 section 2.1.1)
	maxAddress    = 254 // bytes; a path is two more (RFC 5321 section 4.5.3.1.3)
)

// Check reports why this server would not take a message, as far as can be known before
// MAIL. The error is a *SendError.
func (s *Session) Check(e Envelope, message []byte) error {
	if failed := s.check(&e, message); failed != nil {
		return notSent(failed)
	}
	return nil
}

// Sendable reports a message that arrives changed at some servers or that they may read in
// different ways, and recipients that nobody takes, wherever it is handed over.
func Sendable(e *Envelope, message []byte) *wire.Error {
	fail := func(err error) *wire.Error {
		return &wire.Error{Stage: StageCheck, Kind: wire.KindInvalid, Err: err}
	}
	if n := len(e.Recipients); n == 0 || n > MaxRecipients {
		return fail(fmt.Errorf("message has %d recipients, and can have 1 to %d", n, MaxRecipients))
	}
	if err := checkAddress(e.From); err != nil {
		return fail(fmt.Errorf("sender: %w", err))
	}
	for i, to := range e.Recipients {
		if err := checkAddress(to); err != nil {
			return fail(fmt.Errorf("recipient %d: %w", i+1, err))
		}
	}
	if err := checkMessage(message); err != nil {
		return fail(err)
	}
	return nil
}

func (s *Session) check(e *Envelope, message []byte) *wire.Error {
	fail := func(kind wire.Kind, err error) *wire.Error {
		return &wire.Error{Stage: StageCheck, Kind: kind, Err: err}
	}
	if failed := Sendable(e, message); failed != nil {
		return failed
	}
	if e.international() && !s.offers("SMTPUTF8") {
		return fail(wire.KindUnsupported, errors.New("server does not take addresses or header fields beyond ASCII (SMTPUTF8)"))
	}
	if eightBit(message) && !s.offers("8BITMIME") {
		return fail(wire.KindUnsupported, errors.New("server does not take text beyond ASCII (8BITMIME)"))
	}
	if most, ok := s.maxSize(); ok && uint64(len(message)) > most {
		return fail(wire.KindTooLarge, fmt.Errorf("message has %d bytes, and the server takes %d", len(message), most))
	}
	return nil
}

// maxSize is the largest message that the server takes, in bytes, if it says so;
// 0 says that there is no fixed bound (RFC 1870 section 4).
func (s *Session) maxSize() (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(s.offer["SIZE"]), 10, 64)
	return n, err == nil && n > 0
}

// international reports whether the envelope needs SMTPUTF8 (RFC 6531 section 3.2).
func (e *Envelope) international() bool {
	return e.SMTPUTF8 || eightBit([]byte(e.From)) || eightBit([]byte(strings.Join(e.Recipients, "")))
}

func eightBit(b []byte) bool {
	return slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf })
}

var (
	errAddress    = errors.New("address is not of the form local-part@domain")
	errLongName   = errors.New("address is too long")
	errNUL        = errors.New("message holds a zero byte")
	errLineEnd    = errors.New("message holds a line end that is not CRLF")
	errUnfinished = errors.New("message does not end with a line end")
	errLongLine   = errors.New("message holds a line of more than 998 bytes")
)

// address is the mailbox of RFC 5321 section 4.1.2 and of RFC 6531 section 3.3, without a
// space or an angle bracket even where they could be quoted: nothing in it can end the path
// it stands in. Servers may take more than 64 bytes before the @, and addresses of lists
// and tickets have them; a server that does not refuses.
var address = regexp.MustCompile(`\A(` + word + `(\.` + word + `)*|"([!#-;=?-\[\]-~]|\\[!-;=?-~])*")@(` + label + `(\.` + label + `)*|\[[0-9A-Za-z.:-]+\])\z`)

const (
	word  = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10ffff}-]+"
	label = `[0-9A-Za-z_\x{80}-\x{10ffff}-]+`
)

func checkAddress(a string) error {
	hidden := func(r rune) bool { return r >= utf8.RuneSelf && (!unicode.IsGraphic(r) || unicode.IsSpace(r)) }
	switch {
	case len(a) > maxAddress:
		return errLongName
	case !utf8.ValidString(a) || !address.MatchString(a) || strings.ContainsFunc(a, hidden):
		return errAddress
	}
	return nil
}

// checkMessage accepts only messages that arrive unchanged: a server may treat a lone CR or
// LF as it likes, and even end the message there.
func checkMessage(m []byte) error {
	if !bytes.HasSuffix(m, []byte("\r\n")) {
		return errUnfinished
	}
	for len(m) > 0 {
		i := bytes.IndexByte(m, '\n')
		line := m[:i+1]
		switch {
		case len(line) < 2 || line[len(line)-2] != '\r' || bytes.IndexByte(line, '\r') != len(line)-2:
			return errLineEnd
		case bytes.IndexByte(line, 0) >= 0:
			return errNUL
		case len(line)-2 > maxTextLine:
			return errLongLine
		}
		m = m[i+1:]
	}
	return nil
}
