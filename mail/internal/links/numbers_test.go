package links_test

import (
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/links"
)

func TestForeignNumber(t *testing.T) {
	const conversation = "Call 030 123 456 78 or +49 (89) 1234-5678. The invoice is 2026-004711-9, account DE89 3704 0044 0532 0130 00. Ask @ann or bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4."
	for _, c := range testmain.Table[struct {
		In   string
		Want bool
	}](t, "testdata/cases/numbers.txt") {
		if got := links.ForeignNumber(c.In, conversation); got != c.Want {
			t.Errorf("%q: %v", c.In, got)
		}
	}
}
