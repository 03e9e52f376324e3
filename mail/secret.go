package mail

import (
	"errors"
	"fmt"
	"log/slog"
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
