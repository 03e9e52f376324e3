package commands_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
)

// TestErrorsLeadOn with an example for the account of the command, and from a text that is too
// long for a command to those that take it in pieces. The log's times are whole.
func TestErrorsLeadOn(t *testing.T) {
	b := newDemo(t, "second")
	for _, c := range []struct {
		line    string
		code    discovery.Code
		says    string
		example string
	}{
		{"mail send --account second --to ann@example.org", discovery.ValidationError, "", "--account second"},
		{"mail list --account demo --limit 0", discovery.ValidationError, "", "--account demo"},
		{"account edit --mode XX second", discovery.ValidationError, "", "account edit second --mode RW"},
		{"account show", discovery.ValidationError, "", "account show demo"},
		{"mail send --account second --to ann@example.org --body " + strings.Repeat("y", 10_001), discovery.ParseError, "'mail draft --append-to ID'", "mail draft --to "},
	} {
		if e := b.Fails(t, c.line, c.code, c.says); len(e.Error.Examples) == 0 || !strings.Contains(e.Error.Examples[0], c.example) {
			t.Errorf("%.80s: %q, not with %q", c.line, e.Error.Examples, c.example)
		}
	}
	b.Compact = true
	if got := b.Data(t, "audit list --limit 1"); !regexp.MustCompile(`"20[\d-]{8}T[\d:]{8}Z"`).MatchString(got) {
		t.Errorf("the log: %s", got)
	}
}
