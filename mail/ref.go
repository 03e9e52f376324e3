package mail

import (
	"errors"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Ref names one message: by folder, UIDVALIDITY and UID for IMAP (RFC 9051
// section 2.3.1.1), by UIDL for POP3 (RFC 1939 section 7). UIDVALIDITY 0 stands
// for whatever the folder has now; a Ref in its text form always has one.
type Ref struct {
	Protocol    Protocol
	Account     string
	Folder      string
	UIDValidity uint32
	UID         uint32
	UIDL        string
}

// String returns the text form that ParseRef reads.
func (r Ref) String() string {
	if r.Protocol == POP3 {
		return "pop3:" + r.Account + ":" + r.UIDL
	}
	return "imap:" + r.Account + ":" + r.Folder + ":" + strconv.FormatUint(uint64(r.UIDValidity), 10) + ":" + strconv.FormatUint(uint64(r.UID), 10)
}

// ParseRef reads imap:{account}:{folder}:{uidvalidity}:{uid}, whose folder may
// hold colons, or pop3:{account}:{uidl}. It takes exactly what String writes; the
// error says what is wrong and repeats nothing.
func ParseRef(s string) (Ref, error) {
	protocol, rest, _ := strings.Cut(s, ":")
	account, rest, ok := strings.Cut(rest, ":")
	r := Ref{Protocol: Protocol(protocol), Account: account}
	switch {
	case r.Protocol != IMAP && r.Protocol != POP3:
		return Ref{}, errors.New("it starts with neither imap nor pop3")
	case !ok || !ValidAccountName(account):
		return Ref{}, errors.New("it names no account")
	case r.Protocol == POP3:
		if err := checkUIDL(rest); err != nil {
			return Ref{}, err
		}
		r.UIDL = rest
		return r, nil
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return Ref{}, errors.New("its UID is missing")
	}
	j := strings.LastIndexByte(rest[:i], ':')
	if j < 0 {
		return Ref{}, errors.New("its UIDVALIDITY is missing")
	}
	r.Folder = rest[:j]
	if err := CheckFolder(r.Folder); err != nil {
		return Ref{}, err
	}
	if r.UIDValidity, ok = parseNZ(rest[j+1 : i]); !ok {
		return Ref{}, errors.New("its UIDVALIDITY is not a number from 1 to 4294967295")
	}
	if r.UID, ok = parseNZ(rest[i+1:]); !ok {
		return Ref{}, errors.New("its UID is not a number from 1 to 4294967295")
	}
	return r, nil
}

// Precedes reports whether another message can lie behind this one and before o, which is of the
// same account and folder.
func (r Ref) Precedes(o Ref) bool {
	return r.Protocol == o.Protocol && (r.Protocol == POP3 && r != o || r.Protocol == IMAP && o.UID-1 > r.UID)
}

// CheckFolder reports why name cannot be a folder's name, or nil.
func CheckFolder(name string) error { return wire.CheckFolder(name) }

// parseNZ reads an nz-number in its one canonical form.
func parseNZ(s string) (uint32, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil
}

func checkUIDL(s string) error {
	if len(s) == 0 || len(s) > 70 {
		return errors.New("its UIDL must have 1 to 70 characters")
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return errors.New("its UIDL holds a character other than visible ASCII")
		}
	}
	return nil
}
