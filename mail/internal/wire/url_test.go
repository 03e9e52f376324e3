package wire

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		In   string
		Want bool
	}](t, "testdata/cases/url.txt") {
		if err := CheckURL(c.In); (err == nil) != c.Want {
			t.Errorf("%q: %v, want usable %v", c.In, err, c.Want)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://example.org/", "http://127.0.0.1:1/x", "http://[::1]/", "http://0x7f.1/", "https://a@b/", "http://localhost\\@example.org/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckURL(s) != nil {
			return
		}
		u, err := url.Parse(s)
		must(t, err)
		if u.Scheme != "https" {
			if h := strings.ToLower(u.Hostname()); u.Scheme != "http" || h != "localhost" && !strings.HasPrefix(h, "127.") && !strings.Contains(h, ":") {
				t.Errorf("%q passes", s)
			}
		}
		if _, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s, nil); err != nil {
			t.Errorf("%q passes and makes no request: %v", s, err)
		}
	})
}
