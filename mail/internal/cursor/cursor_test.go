package cursor

import (
	"context"
	"testing"
)

// A cursor is given back as the value of an option, which cannot begin with a dash.
func TestNoCursorBeginsWithADash(t *testing.T) {
	c := Sealer{Key: ProcessKey()}
	for i := range 500 { // each has a nonce of its own
		at := Position{Account: "work", Folder: "INBOX", UIDValidity: 1, Before: uint32(i)}
		s, err := c.Seal(context.Background(), &at)
		if err != nil {
			t.Fatal(err)
		}
		if s[0] == '-' {
			t.Fatalf("cursor %s", s)
		}
		if back, err := c.Open(context.Background(), s); err != nil || *back != at {
			t.Fatalf("%+v came back as %+v, %v", at, back, err)
		}
	}
}
