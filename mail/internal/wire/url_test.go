package wire

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://example.org/token":                        true,
		"https://example.org:8443/t?a=b":                   true,
		"http://localhost:1234/token":                      true,
		"http://LOCALHOST/token":                           true,
		"http://127.0.0.1/token":                           true,
		"http://[::1]:80/token":                            true,
		"http://example.org/token":                         false,
		"http://127.0.0.1.example.org/":                    false,
		"http://localhost.example.org/":                    false,
		"http://127.0.0.1@example.org/":                    false,
		"https://user:pass@example.org/":                   false,
		"https://example.org/#x":                           false,
		"https://example.org/#":                            false,
		"https:///token":                                   false,
		"https:example.org":                                false,
		"ftp://example.org/":                               false,
		"file:///etc/passwd":                               false,
		"example.org/token":                                false,
		"":                                                 false,
		"https://example.org/a b":                          false,
		"https://example.org/\x1b[2J":                      false,
		"https://example.org/" + strings.Repeat("a", 3000): false,
	} {
		if err := CheckURL(address); (err == nil) != ok {
			t.Errorf("%q: %v, want usable %v", address, err, ok)
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
		if err != nil {
			t.Fatal(err)
		}
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
