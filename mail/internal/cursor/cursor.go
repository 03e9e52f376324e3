// Package cursor seals the position of a search, so that a caller can only bring back a
// cursor that it was given.
package cursor

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/internal/plain"
)

// MaxChars bounds the text form of a cursor.
const MaxChars = 8192

// Position is the position of a search, with its criteria. It travels sealed, so that nobody
// can change it or use it for another account.
type Position struct {
	Accounts    []string  `json:"a"`
	Folders     []string  `json:"f,omitempty"` // as they were named; none means all
	Everywhere  bool      `json:"e,omitempty"`
	Words       string    `json:"w,omitempty"`
	From        string    `json:"fr,omitempty"`
	To          string    `json:"to,omitempty"`
	Subject     string    `json:"s,omitempty"`
	Text        string    `json:"t,omitempty"`
	Unread      bool      `json:"u,omitempty"`
	Attachments bool      `json:"at,omitempty"`
	Invitations bool      `json:"i,omitempty"`
	Since       time.Time `json:"st,omitzero"`
	Until       time.Time `json:"en,omitzero"`
	Places      []Place   `json:"p,omitempty"`
}

// Place is how far a search got in one folder. A folder without one has shown no message
// yet.
type Place struct {
	Account     int    `json:"a,omitempty"` // index into Accounts
	Folder      string `json:"f"`
	UIDValidity uint32 `json:"v,omitempty"` // 0: the folder was not searched in time, and comes first
	Before      uint32 `json:"b,omitempty"` // what is left is below this UID
}

// ErrTooLong is returned for a position whose text form is longer than MaxChars.
var ErrTooLong = errors.New("the position has too many folders for a cursor")

// ErrNoCursor is returned for a text that was not sealed with this key.
var ErrNoCursor = errors.New("not a cursor")

// cursorPurpose keeps a cursor apart from other data that the key seals.
const cursorPurpose = "postern search cursor 2"

// cursorMark begins the text form of a cursor. Without it one in 64 would begin with a
// dash, and be taken for an option of a command.
const cursorMark = "c"

// Sealer seals and opens cursors.
type Sealer struct {
	Key func(ctx context.Context) ([]byte, error)
}

// ProcessKey is the key of a Sealer for a process without a vault.
func ProcessKey() func(context.Context) ([]byte, error) {
	once := sync.OnceValue(func() []byte {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		return key
	})
	return func(context.Context) ([]byte, error) { return once(), nil }
}

func (c Sealer) aead(ctx context.Context) (cipher.AEAD, error) {
	key, err := c.Key(ctx)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal returns the text form of a position, or ErrTooLong.
func (c Sealer) Seal(ctx context.Context, at *Position) (string, error) {
	aead, err := c.aead(ctx)
	if err != nil {
		return "", err
	}
	position, err := plain.JSON(at)
	if err != nil {
		return "", err
	}
	text := cursorMark + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, position, []byte(cursorPurpose)))
	if len(text) > MaxChars {
		return "", ErrTooLong
	}
	return text, nil
}

// Open returns ErrNoCursor for text that was not sealed with the key.
func (c Sealer) Open(ctx context.Context, s string) (*Position, error) {
	aead, err := c.aead(ctx)
	if err != nil {
		return nil, err
	}
	text, marked := strings.CutPrefix(s, cursorMark)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !marked || len(s) > MaxChars {
		return nil, ErrNoCursor
	}
	opened, err := aead.Open(nil, nil, sealed, []byte(cursorPurpose))
	if err != nil {
		return nil, ErrNoCursor
	}
	var at Position
	if err := json.Unmarshal(opened, &at); err != nil {
		return nil, ErrNoCursor
	}
	return &at, nil
}
