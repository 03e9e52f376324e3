package plain

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestHead(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, In string
		N        int
		Want     string
		Cut      bool
	}](t, "testdata/cases/head.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			if got, cut := Head(tc.In, tc.N); got != tc.Want || cut != tc.Cut {
				t.Errorf("Head(%q, %d) = %q, %v, want %q, %v", tc.In, tc.N, got, cut, tc.Want, tc.Cut)
			}
		})
	}
	// A cluster without an end does not make the result empty.
	if got, cut := Head("e"+strings.Repeat("\u0301", 1000), 100); got == "" || !cut {
		t.Errorf("%q, %v", got, cut)
	}
}

func TestClip(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		In   string
		N    int
		Want string
	}](t, "testdata/cases/clip.txt") {
		if got := Clip(tc.In, tc.N); got != tc.Want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tc.In, tc.N, got, tc.Want)
		}
	}
}
