package commands_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
)

// Who denies a command denies what does the same, also what came after the vault was made.
func TestDenyingACommandDeniesWhatDoesTheSame(t *testing.T) {
	b := newDemo(t)
	for _, c := range []struct{ deny, denied, left string }{
		{"mail send", "mail reply 32 --body x", "mail draft --to a@example.org --body x --subject x"},
		{"mail send", "mail forward 32 --to a@example.org", "mail mark-read 32"},
		{"send", "mail send --to a@example.org --subject x --body x", "mail list"},
		{"mail move", "mail trash 32", "mail flags 32 --add Keep"},
		{"mail mark-read", "mail flags 32 --add \\Seen", "mail get 32"},
		{"destroy", "mail delete 32 --confirm", "mail list"},
	} {
		must(t, b.vault.SetSetting(t.Context(), "deny", c.deny))
		for line, want := range map[string]bool{c.denied: true, c.left: false} {
			a := b.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: line})
			if bytes.Contains(a.JSON, []byte("You may not run '"+strings.Join(strings.Fields(line)[:2], " ")+"'.")) != want {
				t.Errorf("deny %s: %s: %s", c.deny, line, a.JSON)
			}
		}
	}
}
