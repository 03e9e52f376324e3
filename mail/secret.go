package mail

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"unicode"
	"unicode/utf8"
)

const redacted = "[redacted]"

// Secret is a password or token. Every way of printing it, through fmt with any
// verb, slog, text or JSON encoding, yields a placeholder or an error; only
// Reveal gives the value. The zero Secret is empty.
type Secret struct{ value []byte }

// NewSecret copies b into a Secret. The caller still owns b and may Wipe it.
func NewSecret(b []byte) Secret { return Secret{value: append([]byte(nil), b...)} }

// Reveal returns the value. Call it only where the value goes on the wire or is
// sealed, and keep the result no longer than that.
func (s Secret) Reveal() string { return string(s.value) }

// IsZero reports whether there is no value.
func (s Secret) IsZero() bool { return len(s.value) == 0 }

// Clone returns a copy that the caller wipes.
func (s Secret) Clone() Secret { return NewSecret(s.value) }

// Equal reports whether both have the same value, in a time that does not depend on
// where they differ.
func (s Secret) Equal(t Secret) bool { return subtle.ConstantTimeCompare(s.value, t.value) == 1 }

// IsText reports whether the value can be a password on the wire: UTF-8 without
// control characters (RFC 4616 section 2). It makes no copy.
func (s Secret) IsText() bool {
	for b := s.value; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 || unicode.IsControl(r) {
			return false
		}
		b = b[n:]
	}
	return true
}

// IsWiped reports whether no byte of a value is left.
func (s Secret) IsWiped() bool {
	return !slices.ContainsFunc(s.value, func(b byte) bool { return b != 0 })
}

// Wipe overwrites the value; every copy of this Secret then reads as zero bytes.
// Strings that Reveal returned before are out of its reach.
func (s Secret) Wipe() { clear(s.value) }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses: a secret in an answer is a fault in the program.
func (s Secret) MarshalJSON() ([]byte, error) { return nil, errors.New("a secret has no JSON form") }

// MarshalText refuses, as MarshalJSON does.
func (s Secret) MarshalText() ([]byte, error) { return nil, errors.New("a secret has no text form") }
