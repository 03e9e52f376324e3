package rfc5322

import (
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestDateReadsWhatProgramsWrote(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/date.txt") {
		got, ok := Header{fields: []Field{{"Date", tc.In}}}.Date()
		if !ok || got.Format(time.RFC3339) != tc.Want {
			t.Errorf("%q: %s %v, want %s", tc.In, got.Format(time.RFC3339), ok, tc.Want)
		}
	}
}

func TestDateDoesNotGuess(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In string }](t, "testdata/cases/no_date.txt") {
		if got, ok := (Header{fields: []Field{{"Date", tc.In}}}).Date(); ok || !got.IsZero() {
			t.Errorf("%.60q was read as %v", tc.In, got)
		}
	}
	if _, ok := (Header{}).Date(); ok {
		t.Error("no field has a date")
	}
}
