package autoconfig

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

const (
	maxDescription = 64 << 10 // bytes; real ones have two thousand
	maxRedirects   = 3
)

// described fetches and reads one description; nil without a usable one.
func (f *Finder) described(ctx context.Context, address, local, domain string) *proposal {
	text, from, err := f.fetch(ctx, address)
	if err != nil {
		return nil
	}
	p, err := parse(text, local, domain)
	if err != nil {
		return nil
	}
	p.source = "https://" + from.Host + from.EscapedPath()
	return p
}

// fetch asks without cookies, credentials or referrer, over verified TLS only.
func (f *Finder) fetch(ctx context.Context, address string) (text []byte, from *url.URL, err error) {
	transport := f.Transport
	if transport == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10}
		defer own.CloseIdleConnections()
		transport = own
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		r.Header.Del("Referer")
		switch {
		case !plainHTTPS(r.URL):
			return errors.New("the description is not behind https")
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header = http.Header{"User-Agent": {"postern"}, "Accept": {"text/xml, application/xml"}}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("status %d", response.StatusCode)
	}
	text, err = io.ReadAll(io.LimitReader(response.Body, maxDescription+1))
	if err == nil && len(text) > maxDescription {
		err = errors.New("the description is too large")
	}
	return text, response.Request.URL, err
}

// plainHTTPS reports whether the address is https and carries no user or password.
func plainHTTPS(u *url.URL) bool { return u.Scheme == "https" && u.User == nil }

// description is the part of the config-v1.1.xml format that is read.
type description struct {
	XMLName   xml.Name `xml:"clientConfig"`
	Providers []struct {
		Incoming []server `xml:"incomingServer"`
		Outgoing []server `xml:"outgoingServer"`
	} `xml:"emailProvider"`
}

type server struct {
	Type           string   `xml:"type,attr"`
	Host           string   `xml:"hostname"`
	Port           string   `xml:"port"`
	Socket         string   `xml:"socketType"`
	Username       string   `xml:"username"`
	Authentication []string `xml:"authentication"`
}

var errUnusable = errors.New("the description names no server that can be used")

// parse reads a description. It takes the first server of each kind that
// supports TLS and a known login; IMAP goes before POP3.
func parse(text []byte, local, domain string) (*proposal, error) {
	var d description
	x := xml.NewDecoder(bytes.NewReader(text))
	x.CharsetReader = charset.NewReaderLabel
	if err := x.Decode(&d); err != nil {
		return nil, err
	}
	if len(d.Providers) == 0 {
		return nil, errUnusable
	}
	replace := strings.NewReplacer("%EMAILADDRESS%", local+"@"+domain, "%EMAILLOCALPART%", local, "%EMAILDOMAIN%", domain)
	p := &proposal{}
	for _, kind := range []mail.Protocol{mail.IMAP, mail.POP3} {
		for _, s := range d.Providers[0].Incoming {
			e, auth, ok := s.endpoint(string(kind), replace)
			if !ok || !p.incoming.IsZero() {
				continue
			}
			p.incoming, p.protocol, p.auth = e, kind, auth
			if name := replace.Replace(strings.TrimSpace(s.Username)); plainName(name) {
				p.username = name
			}
		}
	}
	for _, s := range d.Providers[0].Outgoing {
		if e, _, ok := s.endpoint("smtp", replace); ok && p.smtp.IsZero() {
			p.smtp = e
		}
	}
	if p.incoming.IsZero() && p.smtp.IsZero() {
		return nil, errUnusable
	}
	return p, nil
}

// endpoint returns the server as an account has it, when it is of the kind,
// protected, and accepts a login that we support.
func (s *server) endpoint(kind string, replace *strings.Replacer) (e mail.Endpoint, auth []mail.Auth, ok bool) {
	switch strings.ToUpper(strings.TrimSpace(s.Socket)) {
	case "SSL":
		e.Security = mail.TLS
	case "STARTTLS":
		e.Security = mail.StartTLS
	default:
		return e, nil, false // no password is sent without TLS
	}
	port, err := strconv.ParseUint(strings.TrimSpace(s.Port), 10, 16)
	if s.Type != kind || err != nil || port == 0 {
		return e, nil, false
	}
	e.Port = uint16(port)
	if e.Host, ok = hostName(replace.Replace(s.Host)); !ok {
		return e, nil, false
	}
	for _, a := range s.Authentication {
		switch strings.TrimSpace(a) {
		case "password-cleartext", "plain":
			auth = append(auth, mail.AuthPassword)
		case "OAuth2":
			auth = append(auth, mail.AuthOAuth2)
		}
	}
	if len(s.Authentication) == 0 {
		auth = []mail.Auth{mail.AuthPassword}
	}
	return e, auth, len(auth) > 0
}

// plainName reports whether a person could have typed a login name.
func plainName(s string) bool {
	return s != "" && len(s) <= 320 && !strings.Contains(s, "%EMAIL") && !strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || plain.Unclear(r) })
}
