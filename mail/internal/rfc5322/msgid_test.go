package rfc5322

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestMsgIDs(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		In   string
		Want []string
	}](t, "testdata/cases/msgids.txt") {
		h := Header{fields: []Field{{"References", tc.In}}}
		if got := h.MsgIDs("references"); !slices.Equal(got, tc.Want) {
			t.Errorf("%.60q: %q, want %q", tc.In, got, tc.Want)
		}
	}
}

func TestMsgIDsOfSeveralFields(t *testing.T) {
	h := ParseHeader([]byte("In-Reply-To: <a@b>\nin-reply-to: <c@d>\n"))
	if got := h.MsgIDs("In-Reply-To"); !slices.Equal(got, []string{"a@b", "c@d"}) {
		t.Errorf("%q", got)
	}
}

// A long thread keeps its root and its parent, and costs no more than 8 KiB.
func TestMsgIDsOfALongFieldKeepsBothEnds(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, " <id%d@example.org>", i)
	}
	got := (Header{fields: []Field{{"References", b.String()}}}).MsgIDs("References")
	if len(got) == 0 || len(got) > maxIDField/16 || got[0] != "id0@example.org" || got[len(got)-1] != "id1999@example.org" {
		t.Fatalf("%d ids, from %q to %q", len(got), got[0], got[len(got)-1])
	}
	for _, id := range got {
		if !strings.HasPrefix(id, "id") || !strings.HasSuffix(id, "@example.org") {
			t.Errorf("the cut made the id %q", id)
		}
	}
}

func TestMsgIDsOfABombIsNothing(t *testing.T) {
	for _, unit := range []string{"(", "\"", "<", "(<", "\\", "<(\""} {
		h := ParseHeader([]byte("Message-ID: " + strings.Repeat(unit, 200_000/len(unit)) + "\n\n"))
		if got := h.MsgIDs("Message-ID"); len(got) != 0 {
			t.Errorf("%q: %.100q", unit, got)
		}
	}
}

// A scan that is not capped stays linear too.
func BenchmarkScanIDsHostile(b *testing.B) {
	for _, unit := range []string{"(", "\"", "<", "(<", "<(\"", "<a@b>"} {
		s := strings.Repeat(unit, 200_000/len(unit))
		b.Run(unit, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				scanIDs(nil, s)
			}
		})
	}
}
