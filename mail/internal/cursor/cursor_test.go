package cursor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// A cursor is given back as the value of an option, which cannot begin with a dash.
func TestNoCursorBeginsWithADash(t *testing.T) {
	c := Sealer{Key: ProcessKey()}
	for i := range 500 { // each has a nonce of its own
		at := Position{Accounts: []string{"work"}, Places: []Place{{Folder: "INBOX", UIDValidity: 1, Before: uint32(i)}}}
		s, err := c.Seal(context.Background(), &at)
		if err != nil {
			t.Fatal(err)
		}
		if s[0] == '-' {
			t.Fatalf("cursor %s", s)
		}
		if back, err := c.Open(context.Background(), s); err != nil || !reflect.DeepEqual(*back, at) {
			t.Fatalf("%+v came back as %+v, %v", at, back, err)
		}
	}
}

// A cursor that could not be given back is not given.
func TestACursorHasABound(t *testing.T) {
	c := Sealer{Key: ProcessKey()}
	var at Position
	for i := range 300 {
		at.Places = append(at.Places, Place{Folder: fmt.Sprint("Archive/", i), UIDValidity: 1 << 31, Before: 1 << 31})
	}
	if s, err := c.Seal(context.Background(), &at); !errors.Is(err, ErrTooLong) {
		t.Errorf("%d characters, %v", len(s), err)
	}
	at.Places = at.Places[:100]
	if s, err := c.Seal(context.Background(), &at); err != nil || len(s) > MaxChars {
		t.Errorf("%d characters, %v", len(s), err)
	}
}
