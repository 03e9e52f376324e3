package oneclick

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

// asked is a server, and a client that reaches it.
func asked(t *testing.T, answer http.HandlerFunc) (c *Client, uri string, count *atomic.Int32) {
	t.Helper()
	count = new(atomic.Int32)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.RequestURI() != "/u?x=1" || string(body) != Body || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.Header.Get("Cookie") != "" {
			t.Errorf("asked by %s %s %v %q", r.Method, r.URL, r.Header, body)
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	pool := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return &Client{Roots: pool, May: func(netip.AddrPort) bool { return true }}, s.URL + "/u?x=1", count
}

func TestPostAsksOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // of the error
	}{
		"taken":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, ""},
		"a cookie": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Set-Cookie", "a=b") }, ""},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 20 {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
			t.Error("64 GiB were read")
		}, ""},
		"a slow body": {func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, ""},
		"a redirection": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		}, "a redirection"},
		"gone":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, "with status 410"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "with status 502"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "did not answer"},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		}, "did not answer"},
		"an endless header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2*maxAnswer)) }, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, uri, count := asked(t, c.answer)
			if strings.HasPrefix(name, "s") || name == "a slow body" {
				client.Time = time.Second
			} else {
				client.Time = time.Minute
			}
			err := client.Post(t.Context(), uri)
			var unanswered *Unanswered
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || errors.As(err, &unanswered) != strings.HasPrefix(c.want, "did not") || count.Load() != 1 {
				t.Errorf("asked %d times: %v", count.Load(), err)
			}
		})
	}
}

// Neither the proxy of the environment nor a server of another name is asked.
func TestPostAsksWhomItNames(t *testing.T) {
	client, uri, count := asked(t, func(http.ResponseWriter, *http.Request) {})
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	for uri, want := range map[string]string{
		uri: "", strings.Replace(uri, "https:", "http:", 1): "not behind https", strings.Replace(uri, "127.0.0.1", "localhost", 1): "certificate",
	} {
		err := client.Post(t.Context(), uri)
		var unanswered *Unanswered
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || errors.As(err, &unanswered) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if count.Load() != 1 {
		t.Errorf("asked %d times", count.Load())
	}
}

// What a name stands for is judged when it is dialed: it may have stood for another address before.
func TestPostReachesPublicAddressesAlone(t *testing.T) {
	t.Parallel()
	client, uri, count := asked(t, func(http.ResponseWriter, *http.Request) {})
	port := uri[strings.LastIndexByte(uri, ':'):strings.LastIndex(uri, "/u")]
	next := atomic.Pointer[netip.Addr]{}
	client.May, client.Resolver = nil, names(&next)
	var found netip.Addr
	for _, a := range strings.Fields(`127.0.0.1 10.1.2.3 172.31.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 192.0.0.1
		::1 :: fc00::1 fd00::1 fe80::1 ff02::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::10.0.0.1 64:ff9b::a00:1 2002:a00:1::1 2001:0:1::1 2001:db8::1`) {
		public := netip.MustParseAddr("9.9.9.9")
		next.Store(&public)
		if all, err := client.Resolver.LookupNetIP(t.Context(), "ip4", "news.example"); err != nil || !Public(all[0]) {
			t.Fatal(all, err)
		}
		found = netip.MustParseAddr(a)
		next.Store(&found)
		for _, uri := range []string{"https://news.example/u", "https://" + bracketed(a) + "/u", "https://" + bracketed(a) + port + "/u"} {
			if err := client.Post(t.Context(), uri); !errors.Is(err, ErrPrivate) {
				t.Errorf("%s, which is %s: %v", uri, a, err)
			}
		}
	}
	for _, a := range []string{"9.9.9.9", "172.32.0.1", "100.128.0.1", "2620:fe::fe", "::ffff:9.9.9.9"} {
		if !Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
		if err := client.Post(t.Context(), "https://"+bracketed(a)+":8443/u"); !errors.Is(err, ErrPrivate) {
			t.Errorf("another port of %s: %v", a, err)
		}
	}
	if count.Load() > 0 {
		t.Error("this machine was asked")
	}
}

func bracketed(a string) string {
	if strings.Contains(a, ":") {
		return "[" + a + "]"
	}
	return a
}

// names resolves every name to one address.
func names(to *atomic.Pointer[netip.Addr]) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			var size [2]byte
			if _, err := io.ReadFull(ours, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			var m dnsmessage.Message
			if _, err := io.ReadFull(ours, query); err != nil || m.Unpack(query) != nil {
				return
			}
			q, a := m.Questions[0], *to.Load()
			m.Header, m.Additionals = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, nil
			r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}}
			switch {
			case q.Type == dnsmessage.TypeA && a.Is4():
				r.Body = &dnsmessage.AResource{A: a.As4()}
				m.Answers = append(m.Answers, r)
			case q.Type == dnsmessage.TypeAAAA && a.Is6():
				r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
				m.Answers = append(m.Answers, r)
			}
			answer, _ := m.Pack()
			_, _ = ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}()
		return theirs, nil
	}}
}
