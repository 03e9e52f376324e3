package message

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestFlowed(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, In string
		DelSp    bool
		Want     string
	}](t, "testdata/cases/flowed.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			if got := Flowed(tc.In, tc.DelSp); got != tc.Want {
				t.Errorf("Flowed(%q) = %q, want %q", tc.In, got, tc.Want)
			}
		})
	}
	if got := Flowed(strings.Repeat(">", 1_000_000), false); len(got) > 1_000_002 {
		t.Errorf("%d bytes", len(got))
	}
}
