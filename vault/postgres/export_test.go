package postgres

import (
	"testing"

	"github.com/postern-mail/postern/mail/servertest"
)

// NewProxy returns the address of a place for a vault, another that leads there through
// a proxy, and the kinds of the requests through that since it was asked last.
func NewProxy(t *testing.T) (direct, through string, sent func() []string) {
	t.Helper()
	servertest.Check(t, serverErr)
	direct = server.NewSchema(t)
	p, through := newProxy(t, direct)
	return direct, through, func() (kinds []string) {
		for _, r := range p.sent() {
			kind := r.kind()
			if r.has("NOTIFY") {
				kind += " and notify"
			}
			kinds = append(kinds, kind)
		}
		p.reset()
		return kinds
	}
}
