package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTP is a server that speaks MCP's streamable HTTP transport.
type HTTP struct {
	URL   string
	Token string // sent as a bearer token, unless empty
}

var _ Target = (*HTTP)(nil)

// Check returns the reason why the address cannot be used: a token goes over TLS, or
// stays on this machine.
func (h *HTTP) Check() error {
	u, err := url.Parse(h.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("the URL is not of the form https://HOST/PATH")
	}
	if h.Token != "" && u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return errors.New("a token is sent over https only, except to this machine")
	}
	return nil
}

// Transport implements Target.
func (h *HTTP) Transport() string { return "http" }

type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// client follows no redirects: a token must not go elsewhere.
func (h *HTTP) client() *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true}}
	if h.Token != "" {
		c.Transport = bearer{h.Token, c.Transport}
	}
	return c
}

// Open implements Target. It only connects.
func (h *HTTP) Open(ctx context.Context) (Conn, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	u, _ := url.Parse(h.URL) // Check has
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy == nil {
		c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
		if err != nil {
			return nil, err
		}
		_ = c.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &httpConn{inbox: inbox{lines: make(chan line, 4), done: make(chan struct{})}, url: h.URL, client: h.client(), ctx: ctx, cancel: cancel}, nil
}

func (h *HTTP) clientTransport() (mcp.Transport, func(), error) {
	c := h.client()
	return &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: c, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: MaxMessage},
		c.CloseIdleConnections, h.Check()
}

// httpConn posts every message and receives the answers, as JSON or as events.
type httpConn struct {
	inbox
	url    string
	client *http.Client
	ctx    context.Context // of what is being read
	cancel context.CancelFunc

	mu       sync.Mutex
	session  string
	protocol string
}

// Protocol implements Conn.
func (c *httpConn) Protocol(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.protocol = version
}

func (c *httpConn) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.protocol != "" {
		r.Header.Set("Mcp-Protocol-Version", c.protocol)
	}
	return r, nil
}

// Send implements Conn. The server's answer comes from Receive.
func (c *httpConn) Send(ctx context.Context, message []byte) error {
	// The request outlives Send, for its answer may be a stream.
	r, err := c.request(c.ctx, http.MethodPost, message)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal(message, &m) // an unreadable message has no names
	asks := len(m.ID) > 0
	c.mu.Lock()
	stateless := c.protocol >= statelessVersion
	c.mu.Unlock()
	if stateless {
		r.Header.Set("Mcp-Method", m.Method)
		if m.Method == "tools/call" {
			r.Header.Set("Mcp-Name", m.Params.Name)
		}
	}
	got := make(chan error, 1)
	go func() {
		response, err := c.client.Do(r)
		if err != nil {
			got <- fmt.Errorf("the request failed: %w", err)
			return
		}
		defer response.Body.Close()
		if !asks && response.StatusCode >= 300 {
			got <- nil // the usual refusal of a notification
			return
		}
		if id := response.Header.Get("Mcp-Session-Id"); id != "" {
			c.mu.Lock()
			c.session = id
			c.mu.Unlock()
		}
		got <- nil
		c.read(response)
	}()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *httpConn) read(r *http.Response) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "text/event-stream" && r.StatusCode == http.StatusOK {
		c.events(r.Body)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxMessage+1))
	switch {
	case len(body) > MaxMessage:
		c.push(line{err: ErrTooLarge})
	case err != nil:
		c.push(line{err: fmt.Errorf("the answer broke off: %w", err)})
	case kind == "application/json" && len(bytes.TrimSpace(body)) > 0:
		c.push(line{text: bytes.TrimSpace(body)})
	case r.StatusCode < 200 || r.StatusCode > 299:
		c.push(line{err: fmt.Errorf("HTTP status %d", r.StatusCode)})
	}
}

// events reads a stream of server-sent events, each of which holds one message.
func (c *httpConn) events(body io.Reader) {
	s := newScanner(body)
	var data []byte
	size := 0
	for s.Scan() {
		l := s.Text()
		if size += len(l) + 1; size > MaxMessage {
			break
		}
		switch {
		case l == "":
			if len(data) > 0 && !c.push(line{text: data}) {
				return
			}
			data, size = nil, 0
		case strings.HasPrefix(l, "data:"):
			data = append(data, strings.TrimPrefix(l[5:], " ")...)
		}
	}
	if size > MaxMessage || s.Err() == bufio.ErrTooLong {
		c.push(line{err: ErrTooLarge})
	}
}

// Close implements Conn. It ends the server's session.
func (c *httpConn) Close() {
	c.once.Do(func() { close(c.done) })
	ctx, cancel := context.WithTimeout(context.Background(), defaultGrace)
	defer cancel()
	c.mu.Lock()
	kept := c.session != ""
	c.mu.Unlock()
	if kept {
		if r, err := c.request(ctx, http.MethodDelete, nil); err == nil {
			if response, err := c.client.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}
	}
	c.cancel()
	c.client.CloseIdleConnections()
}
