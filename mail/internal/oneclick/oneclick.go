// Package oneclick makes the one request by which RFC 8058 unsubscribes. What is asked is an
// address that a stranger wrote, so it is asked with nothing that tells who asks, nothing that
// it answers leads on, and nothing is reached by it that is not public.
//
// The clients of mail/autoconfig and of OAuth 2.0 are others for a reason: they ask an address
// that the person named, through the proxy that the environment names, and follow or read what
// comes.
package oneclick

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Time is how long a request may take.
const Time = 15 * time.Second

// Body is what is sent (RFC 8058 section 3.1).
const Body = "List-Unsubscribe=One-Click"

// maxAnswer bounds what is read of an answer, in bytes, so that the server sees it arrive. All of
// it is thrown away.
const maxAnswer = 64 << 10

// Client makes requests. The zero Client is the one to use; what it has is for tests.
type Client struct {
	Roots    *x509.CertPool            // nil: the system's
	Resolver *net.Resolver             // nil: the system's
	May      func(netip.AddrPort) bool // whether an address may be reached; nil: Public, at port 443
	Time     time.Duration             // 0 means Time
}

// ErrPrivate says that nothing was sent, since the server is at an address that is not public.
var ErrPrivate = errors.New("its server is at an address that is not public")

// Unanswered is a request that may have arrived and that got no answer.
type Unanswered struct{ Err error }

func (e *Unanswered) Error() string { return "its server did not answer: " + e.Err.Error() }
func (e *Unanswered) Unwrap() error { return e.Err }

// Refused is a request that was answered, and not with success.
type Refused struct{ Status int }

func (e *Refused) Error() string {
	if e.Status/100 == 3 {
		return "its server answered with a redirection, which RFC 8058 does not allow"
	}
	return fmt.Sprintf("its server answered with status %d", e.Status)
}

// Post makes the request at an https URI, once. The error is nil where the server took it, with a
// status of 2xx; a *Refused or *Unanswered; and with any other nothing was sent.
func (c *Client) Post(ctx context.Context, uri string) error {
	limit := c.Time
	if limit == 0 {
		limit = Time
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dialer := net.Dialer{Resolver: c.Resolver, Control: c.control}
	transport := &http.Transport{ // no Proxy: what is behind one is not seen here
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswer,
	}
	var begun atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { begun.Store(true) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, strings.NewReader(Body))
	if err != nil {
		return err
	}
	if request.URL.Scheme != "https" {
		return errors.New("the address is not behind https")
	}
	request.Header = http.Header{"User-Agent": {"postern"}, "Content-Type": {"application/x-www-form-urlencoded"}}
	answer, err := transport.RoundTrip(request) // no redirection is followed and no cookie kept
	switch {
	case err != nil && begun.Load():
		return &Unanswered{err}
	case err != nil:
		return err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return &Refused{answer.StatusCode}
	}
	return nil
}

// control judges the address that is about to be dialed, whatever the name stood for before.
func (c *Client) control(_, address string, _ syscall.RawConn) error {
	may := c.May
	if may == nil {
		may = func(a netip.AddrPort) bool { return a.Port() == 443 && Public(a.Addr()) }
	}
	if a, err := netip.ParseAddrPort(address); err != nil || !may(a) {
		return ErrPrivate
	}
	return nil
}

// special are the networks among those of unicast that are not public, or lead on into others
// (RFC 6890, and the registries of IANA that it began).
var special = func() (all []netip.Prefix) {
	for _, s := range strings.Fields(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
		192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20`) {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}()

var unicast6 = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is one of the public network: for IPv6 one of those that are
// given out, without those that stand for others, as for IPv4 behind a translator.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if a.Is6() && !unicast6.Contains(a) || a.Zone() != "" || !a.IsValid() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
