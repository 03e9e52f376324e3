package compose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func TestAReplyGoesWhereTheHeaderSays(t *testing.T) {
	own := func(a string) bool {
		return slices.Contains([]string{"me@example.org", "alias@example.net"}, strings.ToLower(a))
	}
	for _, c := range testmain.Table[struct {
		Name, Header string
		To, All      string
		Notes        string
		AllNotes     string
	}](t, "testdata/cases/recipients.txt") {
		t.Run(c.Name, func(t *testing.T) {
			for _, all := range []bool{false, true} {
				r := ReplyRecipients(rfc5322.ParseHeader([]byte(strings.ReplaceAll(c.Header, "\n", "\r\n")+"\r\n\r\n")), own, all)
				write := func(list []Address) string {
					var out []string
					for _, a := range list {
						out = append(out, a.String())
						if _, err := ParseAddress(a.String()); err != nil {
							t.Errorf("%s cannot be sent to: %v", a, err)
						}
					}
					return strings.Join(out, " ")
				}
				got, notes, want, wantNotes := write(r.To), "", c.To, c.Notes
				if len(r.CC) > 0 {
					got += "|" + write(r.CC)
				}
				if r.Unusable > 0 {
					notes = fmt.Sprintf("%d left out", r.Unusable)
				}
				if r.Elsewhere {
					notes = strings.TrimSpace(notes + " elsewhere")
				}
				if all {
					want = c.All
					if c.AllNotes != "" {
						wantNotes = c.AllNotes
					}
				}
				if got != want || notes != wantNotes {
					t.Errorf("all %v: %q %q, want %q %q", all, got, notes, want, wantNotes)
				}
			}
		})
	}
}
