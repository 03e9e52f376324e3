package mailbox

import (
	"bytes"
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
)

// MaxCursorChars bounds the text form of a cursor. Criteria of the greatest length
// fit, in characters of four bytes.
const MaxCursorChars = 8192

// cursor is where a search stands. It travels sealed, so that what comes back is
// what was given, for the same account: nobody can make one that names another.
type cursor struct {
	Account       string    `json:"a"`
	Folder        string    `json:"f"`
	UIDValidity   uint32    `json:"v"`
	Before        uint32    `json:"b"` // the next page is below this UID
	Query         string    `json:"q,omitempty"`
	From          string    `json:"fr,omitempty"`
	To            string    `json:"to,omitempty"`
	Subject       string    `json:"s,omitempty"`
	Text          string    `json:"t,omitempty"`
	Unread        bool      `json:"u,omitempty"`
	HasAttachment bool      `json:"at,omitempty"`
	Start         time.Time `json:"st,omitzero"`
	End           time.Time `json:"en,omitzero"`
}

var errNoCursor = errors.New("not a cursor")

// cursorPurpose keeps a cursor from being taken for anything else that the key
// seals.
const cursorPurpose = "postern search cursor 1"

// cursorMark begins the text form of a cursor. Without it one in 64 would begin with a
// dash, and be taken for an option of a command.
const cursorMark = "c"

// cursors seals and opens cursors.
type cursors struct {
	key func(ctx context.Context) ([]byte, error)
}

// processKey is a CursorKey for a process without a vault.
func processKey() func(context.Context) ([]byte, error) {
	once := sync.OnceValue(func() []byte {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		return key
	})
	return func(context.Context) ([]byte, error) { return once(), nil }
}

func (c cursors) aead(ctx context.Context) (cipher.AEAD, error) {
	key, err := c.key(ctx)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (c cursors) seal(ctx context.Context, at *cursor) (string, error) {
	aead, err := c.aead(ctx)
	if err != nil {
		return "", err
	}
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(at); err != nil {
		return "", err
	}
	return cursorMark + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain.Bytes(), []byte(cursorPurpose))), nil
}

// open returns errNoCursor for what was not sealed with the key.
func (c cursors) open(ctx context.Context, s string) (*cursor, error) {
	aead, err := c.aead(ctx)
	if err != nil {
		return nil, err
	}
	text, marked := strings.CutPrefix(s, cursorMark)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !marked || len(s) > MaxCursorChars {
		return nil, errNoCursor
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(cursorPurpose))
	if err != nil {
		return nil, errNoCursor
	}
	var at cursor
	if err := json.Unmarshal(plain, &at); err != nil {
		return nil, errNoCursor
	}
	return &at, nil
}
