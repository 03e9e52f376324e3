package compose

import (
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestDifferentSubmissionsHaveDifferentDigests(t *testing.T) {
	seen := map[string]int{}
	for i, s := range testmain.Table[struct {
		From       string
		Wire       string
		Recipients []string
	}](t, "testdata/cases/digest.txt") {
		d := Digest(s.From, s.Recipients, []byte(s.Wire))
		if len(d) != 64 {
			t.Errorf("%q", d)
		}
		if j, twice := seen[d]; twice {
			t.Errorf("%d and %d have one digest", i, j)
		}
		seen[d] = i
		if Digest(s.From, s.Recipients, []byte(s.Wire)) != d {
			t.Errorf("%d has two digests", i)
		}
	}
}

// The outbox keeps digests for days, so another version must make the same ones.
func TestDigestNeverChanges(t *testing.T) {
	const want = "edb85dcd3b329de9d8ff3324a50d86224a0c14097114008629299a3f06c147f5"
	if got := Digest("ann@example.org", []string{"bob@example.com", "pat@example.net"}, []byte("Subject: x\r\n\r\ny\r\n")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
