package visible

import (
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// The text of a link that shows another host than the link leads to is marked, with the host
// that it leads to; an honest text is not.
func TestLinkThatShowsAnotherHost(t *testing.T) {
	for _, c := range testmain.Table[struct{ Text, Href, Other string }](t, "testdata/cases/host.txt") {
		if got := otherHost(c.Text, c.Href); got != c.Other {
			t.Errorf("%q on %q: %q, not %q", c.Text, c.Href, got, c.Other)
		}
	}
	for _, c := range testmain.Table[struct{ HTML, Want string }](t, "testdata/cases/host_text.txt") {
		if got := Text(c.HTML, 1000); got != c.Want {
			t.Errorf("%s\ngot  %s\nwant %s", c.HTML, got, c.Want)
		}
	}
}
