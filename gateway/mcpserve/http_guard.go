package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// statelessSince is the first protocol version without sessions.
const statelessSince = "2026-07-28"

// Headers of the streamable HTTP transport.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// ServeHTTP takes a request through the checks, the cheapest first, to the library.
func (h *httpHandler) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	h.conns.came(r.Context())
	// Only an admitted caller keeps a connection: a stranger with a request now and then
	// could otherwise hold every one there is.
	w := &httpWriter{ResponseWriter: plain, control: http.NewResponseController(plain), each: h.times.write, last: true}
	// A refusal's unread body and the library's own writes are bounded in time too.
	_ = w.control.SetReadDeadline(time.Now().Add(h.times.body))
	w.extend()
	defer w.extend()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !h.knownHost(r.Host):
		h.turnAway(w, r, http.StatusForbidden, "host", "this server is not known by that host name")
	case !h.allowOrigin(w, r):
		h.turnAway(w, r, http.StatusForbidden, "origin", "pages of that origin may not use this server")
	case r.URL.Path == readyPath:
		h.ready(w, r)
	case r.URL.Path != h.o.Path:
		refuse(w, http.StatusNotFound, "there is nothing here; the endpoint is "+h.o.Path)
	case r.Method == http.MethodOptions && r.Header.Get("Origin") != "":
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost && r.Method != http.MethodDelete:
		// The server has nothing to say of itself, so there is no stream to GET.
		w.Header().Set("Allow", "POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "send requests with POST")
	default:
		h.admit(w, r)
	}
}

// refusedEach is how often refusals of strangers are logged at most.
const refusedEach = time.Second

// turnAway refuses a request from a stranger and logs that, without letting them fill the
// log.
func (h *httpHandler) turnAway(w http.ResponseWriter, r *http.Request, status int, because, why string) {
	h.mu.Lock()
	h.refusals++
	n, now := h.refusals, time.Now()
	quiet := now.Sub(h.refusedAt) < refusedEach
	if !quiet {
		h.refusedAt, h.refusals = now, 0
	}
	h.mu.Unlock()
	if !quiet {
		h.log.Warn("request refused", "because_of", because, "from", r.RemoteAddr, "refused_since_last", n)
	}
	refuse(w, status, why)
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, why+"\n") // a client that does not read it has gone
}

// knownHost reports whether the host that a request names is this server.
func (h *httpHandler) knownHost(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if h.loopback {
		ip := net.ParseIP(name)
		if name == "localhost" || ip != nil && ip.IsLoopback() {
			return true
		}
	}
	return name != "" && h.o.Host != nil && h.o.Host(name)
}

// allowOrigin reports whether a request comes from no web page, from one that this
// server's own address served, or from one of the allowed origins, whose page is told
// what it may read.
func (h *httpHandler) allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	given := r.Header.Values("Origin")
	if len(given) == 0 {
		return true
	}
	if len(given) > 1 {
		return false
	}
	origin := strings.ToLower(given[0])
	if !slices.ContainsFunc(h.o.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		u, err := url.Parse(origin)
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		return err == nil && u.Scheme == scheme && u.Host == strings.ToLower(r.Host)
	}
	w.Header().Set("Vary", "Origin")
	w.Header().Set("Access-Control-Allow-Origin", given[0])
	w.Header().Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Methods", "POST, DELETE")
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name")
		w.Header().Set("Access-Control-Max-Age", "600")
	}
	return true
}

// admit asks HTTPOptions.Admit for the caller, and serves the request as that caller's. Only
// admitTime bounds the question: the request belongs to no caller yet, and a client that
// hangs up is not noticed while its body is unread.
func (h *httpHandler) admit(w *httpWriter, r *http.Request) {
	token, given, ok := bearer(r.Header)
	if !ok {
		refuse(w, http.StatusBadRequest, "there must be one Authorization header")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), admitTime)
	caller, err := h.o.Admit(ctx, token)
	cancel()
	switch {
	case errors.Is(err, ErrNotAdmitted):
		challenge := "Bearer"
		if given {
			challenge = `Bearer error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		h.turnAway(w, r, http.StatusUnauthorized, "token", "a valid token is needed: Authorization: Bearer TOKEN")
		return
	case err != nil || caller.ID == "":
		h.log.Error("callers cannot be admitted", "error_type", fmt.Sprintf("%T", err))
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "tokens cannot be checked now; try again in a few seconds")
		return
	}
	admitted, status := h.open(caller, r.ContentLength)
	switch status {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
		refuse(w, status, "too many of your requests are not answered yet")
		return
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
		refuse(w, status, "the server is about to stop")
		return
	}
	defer admitted.done()
	w.last = h.conns.many(h.o.MaxConnections / 2)
	h.serve(w, r, admitted)
}

// bearer returns the token of a request, and whether the request has one. It is not ok if
// the token is ambiguous.
func bearer(header http.Header) (token string, given, ok bool) {
	values := header.Values("Authorization")
	switch len(values) {
	case 0:
		return "", false, true
	case 1:
		scheme, rest, _ := strings.Cut(values[0], " ")
		if strings.EqualFold(scheme, "Bearer") {
			token = strings.TrimSpace(rest)
		}
		return token, true, true
	}
	return "", true, false
}

// serve hands a request to the library and its caller's receipts to the caller.
func (h *httpHandler) serve(w *httpWriter, r *http.Request, admitted *httpRequest) {
	body, status := h.body(w, r)
	if status != 0 {
		refuse(w, status, http.StatusText(status))
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del("Cookie")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	library := h.sessionful
	switch id := r.Header.Get(sessionHeader); {
	case r.Header.Get(versionHeader) >= statelessSince:
		r.Header.Del(sessionHeader)
		library = h.stateless
	case len(r.Header.Values(sessionHeader)) > 1 || id != "" && !admitted.use(id, r.Method == http.MethodDelete):
		// Another caller's session is answered like one that does not exist.
		refuse(w, http.StatusNotFound, "there is no such session")
		return
	case id == "" && !admitted.reserve():
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusTooManyRequests, "too many sessions are in use; end one with DELETE")
		return
	}
	// This is how the library learns whose a session is, and how the request is found
	// again from what it hands to the middleware. It need not see the real token.
	r.Header.Set("Authorization", "Bearer -")
	auth.RequireBearerToken(func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return tokenOf(admitted, admitted.from.ID), nil
	},
		&auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(library).ServeHTTP(w, r)
	// A client that is known to be gone has not got it, wherever it lies.
	if r.Context().Err() == nil {
		admitted.confirm(w)
	}
}

// body reads a whole body of at most maxBody bytes, in what is left of its time. After
// it the client sends nothing but the end of the connection.
func (h *httpHandler) body(w *httpWriter, r *http.Request) (body []byte, status int) {
	body, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.last = true
		return nil, http.StatusRequestTimeout
	case err != nil:
		return nil, http.StatusBadRequest
	}
	_ = w.control.SetReadDeadline(time.Time{})
	// The library passes over what follows the first value. Only protocol 2025-03-26 has
	// batches, and no client known to us sends one. Bytes that are not UTF-8 it would replace, and
	// run another command than was sent.
	if body = bytes.TrimSpace(body); len(body) > 0 && (!json.Valid(body) || !utf8.Valid(body) || body[0] == '[') {
		return nil, http.StatusBadRequest
	}
	return body, 0
}
