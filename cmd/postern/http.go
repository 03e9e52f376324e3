package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
)

// httpFlags are the flags of serve that say how it is reached over HTTP.
type httpFlags struct {
	addr, cert, key string
	open            bool
	hosts, origins  string
}

func (h *httpFlags) register(f *flag.FlagSet) {
	f.StringVar(&h.addr, "http", "", "serve streamable HTTP at `ADDR`, such as 127.0.0.1:8765, in place of standard input and output")
	f.StringVar(&h.cert, "tls-cert", "", "`FILE` of the certificate, in PEM with those that vouch for it; without a certificate only this machine is served")
	f.StringVar(&h.key, "tls-key", "", "`FILE` of the certificate's private key")
	f.BoolVar(&h.open, "no-auth", false, "let every program on this machine in without a token")
	f.StringVar(&h.hosts, "allow-host", "", "further host `NAMES` that clients reach the server by, separated by commas")
	f.StringVar(&h.origins, "allow-origin", "", "`ORIGINS` of web pages that may use the server, such as https://desk.example.org, separated by commas")
}

// check refuses flags that exclude each other, before anything is opened.
func (h *httpFlags) check(profile gateway.Profile) error {
	switch {
	case h.addr == "" && (h.cert != "" || h.key != "" || h.open || h.hosts != "" || h.origins != ""):
		return misused("--tls-cert, --tls-key, --no-auth, --allow-host and --allow-origin belong to --http.", "Add --http ADDR, such as --http 127.0.0.1:8765.")
	case h.addr == "":
		return nil
	case (h.cert == "") != (h.key == ""):
		return misused("--tls-cert and --tls-key belong together.", "Give both, or none to serve this machine only.")
	case profile.Name != gateway.FullProfile().Name && profile.Name != gateway.ReadProfile().Name:
		return misused(fmt.Sprintf("The profile %s is not served over HTTP.", profile.Name), "Use --profile full or --profile read.")
	}
	for _, name := range list(h.hosts) {
		if strings.ContainsAny(name, "/:[]* ") {
			return misused(fmt.Sprintf("--allow-host takes names without a scheme, port or pattern, not %q.", name), "Name hosts such as mail.example.org.")
		}
	}
	for _, origin := range list(h.origins) {
		if !isOrigin(origin) {
			return misused(fmt.Sprintf("%q is not an origin.", origin), "Name origins such as https://desk.example.org: scheme, host in plain letters, and the port if it is not the usual one; patterns are not allowed.")
		}
	}
	return nil
}

// isOrigin reports whether a browser could send this origin: one that it never sends would
// admit nobody, and nobody would know why.
func isOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ContainsFunc(origin, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' }) {
		return false
	}
	usual, ok := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return ok && u.Hostname() != "" && u.Port() != usual && !strings.HasSuffix(u.Host, ":")
}

// list splits at commas and drops empty elements.
func list(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ","), func(e string) bool { return e == "" })
}

// drainTime is what calls at work have to end when the server is told to stop: what starts
// and ends servers often waits for 30 s before it kills.
const drainTime = 25 * time.Second

// serveHTTP speaks MCP over HTTP until ctx ends.
func (p *process) serveHTTP(ctx context.Context, h *house.House, f *httpFlags, readOnly bool) error {
	if !f.open && h.Temporary() {
		return &discovery.Fault{Code: discovery.ConfigError, Message: "There is no vault, so there are no tokens to admit a client.",
			Hint: "Make a vault with 'postern init', or let every program on this machine in with --no-auth."}
	}
	grants, err := h.Grants(ctx)
	if err != nil && !f.open {
		return err // better said now than to every client
	}
	served := mcpserve.HTTPOptions{Admit: h.Caller, Origins: list(f.origins), Ready: func(ctx context.Context) error {
		_, err := h.Grants(ctx)
		return err
	}}
	scheme, hosts, leaf := "http", list(f.hosts), (*x509.Certificate)(nil)
	if f.cert != "" {
		certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The certificate cannot be used: %s.", err),
				Hint: "Give --tls-cert and --tls-key files in PEM that belong together.", Err: err}
		}
		leaf = certificate.Leaf
		scheme, served.TLS = "https", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	served.Host = func(name string) bool {
		return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, name) }) || leaf != nil && leaf.VerifyHostname(name) == nil
	}
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("Nothing can be served at %s: %s.", f.addr, plainNetError(err)),
			Hint: "Give --http an address of this machine with a free port, such as 127.0.0.1:8765.", Err: err}
	}
	defer func() { _ = l.Close() }()
	if err := f.mayServe(l.Addr()); err != nil {
		return err
	}
	if f.open {
		anybody := h.Principal
		anybody.Unasked = true // a program on this machine is not its person
		served.Admit = func(context.Context, string) (mcpserve.Caller, error) {
			return mcpserve.Caller{Principal: anybody, ID: "anybody"}, nil
		}
		fmt.Fprintf(p.stderr, "postern: WARNING: --no-auth: every program and every user of this machine can use this mail at %s without a token.\n", l.Addr())
	} else if len(grants) == 0 {
		fmt.Fprintln(p.stderr, "postern: there is no grant yet, so no client is admitted; add one with 'grant add NAME --accounts ACCOUNT' where POSTERN_ADMIN_KEY is set.")
	}
	fmt.Fprintf(p.stderr, "postern: serving MCP at %s://%s/mcp\n", scheme, l.Addr())
	server := p.mcpServer(h, readOnly)
	server.Grace = drainTime
	return server.HTTP(ctx, l, served)
}

// mayServe refuses an address that other machines can reach without TLS and tokens.
func (f *httpFlags) mayServe(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsLoopback() {
		return nil
	}
	switch {
	case f.open:
		return misused(fmt.Sprintf("--no-auth is for this machine only, and other machines can reach %s.", addr), "Leave it out, or serve 127.0.0.1.")
	case f.cert == "":
		return misused(fmt.Sprintf("Other machines can reach %s, and tokens and mail would be sent unencrypted.", addr),
			"Give --tls-cert and --tls-key, or serve 127.0.0.1 and put a proxy with TLS before it.")
	}
	return nil
}

// plainNetError is the end of a network error, without the repeated address.
func plainNetError(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}
