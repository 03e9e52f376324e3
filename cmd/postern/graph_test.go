package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// fakeGraph takes messages from whom the authorization server gave a token for Mail.Send, and
// for nothing else.
type fakeGraph struct {
	*httptest.Server
	oauth   *servertest.OAuthServer
	mu      sync.Mutex
	taken   []string
	refused int
}

func newFakeGraph(t *testing.T, oauth *servertest.OAuthServer) *fakeGraph {
	g := &fakeGraph{oauth: oauth}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *fakeGraph) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	message, err := base64.StdEncoding.DecodeString(string(body))
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	answer, asked := http.PostForm(g.oauth.Introspection, url.Values{"token": {token}})
	var about struct {
		Active bool
		Scope  string
	}
	if asked == nil {
		asked = json.NewDecoder(answer.Body).Decode(&about)
		_ = answer.Body.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case asked != nil || !about.Active || about.Scope != "https://127.0.0.1/Mail.Send":
		g.refused++
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":"InvalidAuthenticationToken","message":"Lifetime validation failed."}}`)
	case err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1.0/me/sendMail" || r.Header.Get("Content-Type") != "text/plain":
		w.WriteHeader(http.StatusBadRequest)
	default:
		g.taken = append(g.taken, string(message))
		w.WriteHeader(http.StatusAccepted)
	}
}

func (g *fakeGraph) took() (messages []string, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, g.refused
}

// From the account's settings through one consent to a message that a person approved: the
// mailbox is read with one token, and the message leaves once with another.
func TestGraphFromConsentToApproval(t *testing.T) {
	t.Parallel()
	b := newBureau(t, servertest.OAuthConfig{})
	g := newFakeGraph(t, b.oauth)
	a := b.account("ann")
	a.Mode, a.OAuth.Scopes = mail.Approve, []string{"mail"}
	b.v.add(t, a, "")
	_, port, _ := strings.Cut(g.Listener.Addr().String(), ":")
	b.do(t, "account edit work --smtp graph --smtp-host 127.0.0.1 --smtp-security none --smtp-port "+port, &struct{}{})
	if refused := b.do(t, "mail verify", nil); !strings.Contains(string(refused.raw), "account authorize work") {
		t.Errorf("without consent: %s", refused.raw)
	}
	b.authorize(t, "work", "ann", false)
	b.do(t, "mail list", &struct{}{})
	before := b.oauth.Refreshes()
	if v := b.do(t, "doctor --account work", &struct{}{}); !strings.Contains(string(v.raw), `"name":"work graph","ok":true,"detail":"Got a token for Microsoft Graph, which only a message tries, and reached 127.0.0.1:`) || b.oauth.Refreshes() != before+1 {
		t.Errorf("%d tokens for Graph, %s", b.oauth.Refreshes()-before, v.raw)
	}
	const line = "mail send --to bob@example.org --bcc carol@example.org --subject Graph --body hello --idempotency-key one"
	agent := func() answer {
		_, raw, _ := inThisProcess(t, b.v.environment(false), []string{"exec", line})
		return answerOf(t, line, raw)
	}
	if a := agent(); a.Error.Code != discovery.ApprovalRequired {
		t.Fatalf("%s", a.raw)
	}
	var waiting struct {
		Messages []sendData `json:"messages"`
	}
	b.do(t, "outbox list", &waiting)
	if taken, _ := g.took(); len(waiting.Messages) != 1 || waiting.Messages[0].State != "waiting" || len(taken) != 0 {
		t.Fatalf("%+v, taken %q", waiting, taken)
	}
	id := waiting.Messages[0].ID
	var shown struct {
		State string `json:"state"`
		Code  string `json:"code"`
		Sent  string `json:"sent_copy"`
	}
	show := b.do(t, "outbox show "+id, &shown)
	if !strings.Contains(string(show.raw), "carol@example.org") {
		t.Errorf("the person is shown %s", show.raw)
	}
	b.oauth.RefuseAccessTokens() // every token there was is expired when the message leaves
	b.do(t, fmt.Sprintf("outbox approve %s --code %s", id, shown.Code), &shown)
	taken, refused := g.took()
	if shown.State != "accepted" || shown.Sent != "provider" || len(taken) != 1 || refused > 1 {
		t.Fatalf("%+v, taken %q, refused %d", shown, taken, refused)
	}
	read := servertest.ReadPython(t, []byte(taken[0]))
	if len(read.Defects) > 0 || !strings.HasPrefix(taken[0], "Bcc: carol@example.org\r\n") || len(read.To) != 1 || read.To[0][1] != "bob@example.org" {
		t.Errorf("%q", taken[0])
	}
	if a := agent(); !a.Success {
		t.Errorf("again: %s", a.raw)
	}
	if taken, _ := g.took(); len(taken) != 1 {
		t.Errorf("taken %d", len(taken))
	}
	if a := b.as(t, gateway.Principal{Name: "agent"}, "account edit work --smtp server"); a.Success {
		t.Errorf("an agent changes how mail is sent: %s", a.raw)
	}
}
