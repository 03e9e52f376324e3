package outbox_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// fakeGraph speaks the answers that Microsoft documents for sendMail. It takes a message when
// the whole request has come, unless its answer refuses.
type fakeGraph struct {
	port    uint16
	mu      sync.Mutex
	answers []string // one for each connection with a request, the last for all others; see serve
	tokens  []string // of the requests, in order
	taken   []string // messages
}

const (
	graphTakes  = "HTTP/1.1 202 Accepted\r\nrequest-id: 7d\r\nContent-Length: 0\r\n\r\n"
	graphSilent = "goes when it has everything" // without an answer
	graphGone   = "goes in the middle"
)

func graphSays(status, code, text string, header ...string) string {
	body := `{"error":{"code":"` + code + `","message":"` + text + `"}}`
	return "HTTP/1.1 " + status + "\r\n" + strings.Join(append(header, ""), "\r\n") + "Content-Type: application/json\r\nConnection: close\r\n\r\n" + body
}

// took returns the messages that were taken.
func (g *fakeGraph) took() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}

func newFakeGraph(t *testing.T, answers ...string) *fakeGraph {
	t.Helper()
	g := &fakeGraph{answers: answers}
	g.port = scripted.Serve(t, func(c *scripted.Conn) { g.serve(c) }).Port
	return g
}

func (g *fakeGraph) serve(c *scripted.Conn) {
	r, err := http.ReadRequest(c.Lines)
	if err != nil {
		return // a connection to see whether it is there
	}
	g.mu.Lock()
	answer := g.answers[0]
	if len(g.answers) > 1 {
		g.answers = g.answers[1:]
	}
	g.tokens = append(g.tokens, r.Header.Get("Authorization"))
	g.mu.Unlock()
	if answer == graphGone {
		_, _ = io.ReadFull(r.Body, make([]byte, 1000))
		return
	}
	body, err := io.ReadAll(r.Body)
	message, wrong := base64.StdEncoding.DecodeString(string(body))
	if err != nil {
		return
	}
	if wrong != nil || r.URL.Path != "/v1.0/me/sendMail" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "text/plain" {
		answer = graphSays("400 Bad Request", "ErrorMimeContentInvalidBase64String", "Invalid base64 string for MIME content.")
	}
	if answer == graphTakes || answer == graphSilent || strings.HasPrefix(answer, "HTTP/1.1 5") {
		g.mu.Lock()
		g.taken = append(g.taken, string(message))
		g.mu.Unlock()
	}
	if answer != graphSilent {
		_, _ = io.WriteString(c, answer)
	}
}

// fakeTokens gives a new access token after each that was refused.
type fakeTokens struct {
	mu      sync.Mutex
	refused int
}

func (g *fakeTokens) ForGraph() login.Credentials { return g }

func (g *fakeTokens) Credential(context.Context, *mail.Account) (login.Credential, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return login.Credential{Secret: mail.NewSecret([]byte("token-" + string(rune('0'+g.refused)))), Bearer: true}, nil
}

func (g *fakeTokens) Refused(context.Context, *mail.Account, login.Credential) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused++
	return g.refused == 1
}

func graphFixture(t *testing.T, g *fakeGraph, change ...func(*mail.Account)) *outboxFixture {
	t.Helper()
	o := newFixture(t, &fakeSubmissionServer{port: g.port}, append([]func(*mail.Account){func(a *mail.Account) {
		a.Auth, a.OAuth, a.Submission = mail.AuthOAuth2, mail.OAuth{Provider: "microsoft", ClientID: "c"}, mail.SubmitGraph
		a.SentCopy = mail.SentAuto
	}}, change...)...)
	boxes := mailbox.New(mailbox.Options{Directory: o.dir})
	t.Cleanup(func() { _ = boxes.Close() })
	o.Outbox = outbox.New(outbox.Options{Directory: o.dir, Mailboxes: boxes, Credentials: &fakeTokens{}, Store: o.vault,
		Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") }})
	return o
}

// What Microsoft Graph answers, or does not, decides what the outbox says: nothing twice,
// nothing lost, and what is not known is called so.
func TestGraphOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		Name    string
		State   mail.OutboxState
		Code    int
		Taken   int
		Later   bool
		Kind    mail.Kind
		Answers []string
	}](t, "testdata/cases/graph_outcomes.txt") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for i, answer := range c.Answers {
				if words := strings.Split(answer, "|"); len(words) > 1 {
					status, old := strings.CutPrefix(words[0], "0 ")
					answer = graphSays(status, words[1], words[2], words[3:]...)
					if old {
						answer = strings.Replace(answer, "HTTP/1.1", "HTTP/1.0", 1)
					}
				}
				c.Answers[i] = strings.NewReplacer("takes", graphTakes, "goes", graphSilent).Replace(answer)
			}
			g := newFakeGraph(t, c.Answers...)
			d := graphFixture(t, g)
			request := hello(keyed("k"), func(r *outbox.Request) { r.Draft.Body = strings.Repeat("line\n", 20_000) })
			e, err := d.Send(t.Context(), account, request)
			if e == nil || e.State != c.State || e.Code != c.Code || kind(err) != c.Kind || len(g.took()) != c.Taken {
				t.Fatalf("entry %+v, error %v (%s), taken %d", e, err, kind(err), len(g.took()))
			}
			if e.State == mail.OutboxAccepted && e.Sent != mail.SentProvider {
				t.Errorf("the copy is %s", e.Sent)
			}
			if strings.Contains(e.Reason, "token-") || err != nil && strings.Contains(err.Error(), "token-") {
				t.Error("the token is told")
			}
			// The same request again sends only where nothing left.
			before := len(g.took())
			g.mu.Lock()
			g.answers = []string{graphTakes}
			g.mu.Unlock()
			_, _ = d.Send(t.Context(), account, request)
			if again := len(g.took()) - before; again != 0 && !c.Later || again == 0 && c.Later {
				t.Errorf("the same request sent %d more", again)
			}
		})
	}
}

// A service that goes in the middle has taken nothing. The outbox knows, or says that it does
// not know where the system had taken the whole message by then.
func TestGraphGoesInTheMiddle(t *testing.T) {
	t.Parallel()
	d := graphFixture(t, newFakeGraph(t, graphGone))
	e, err := d.Send(t.Context(), account, hello(keyed("k"), func(r *outbox.Request) { r.Draft.Body = strings.Repeat("line\n", 200_000) }))
	if e == nil || !(e.State == mail.OutboxQueued && err != nil || e.State == mail.OutboxUnknown && err == nil) {
		t.Errorf("%+v, %v", e, err)
	}
}

// Hidden copies are in the header that Graph reads, and nobody else gets the message; what a
// person approved is what leaves.
func TestGraphGetsExactlyTheRecipients(t *testing.T) {
	t.Parallel()
	g := newFakeGraph(t, graphTakes)
	d := graphFixture(t, g, approving)
	r := hello(func(r *outbox.Request) {
		r.Draft.CC = []mail.Address{{Addr: "carol@example.com"}}
		r.Draft.BCC = []mail.Address{{Name: "Dan", Addr: "dan@example.net"}}
	})
	e := d.mustSend(r)
	shown, err := d.Show(t.Context(), e.ID)
	if err != nil || len(g.took()) != 0 {
		t.Fatal(err)
	}
	if e, err = d.Approve(t.Context(), e.ID, shown.Digest, "Ann"); err != nil || e.State != mail.OutboxAccepted {
		t.Fatalf("%+v, %v", e, err)
	}
	if len(g.took()) != 1 || !strings.HasPrefix(g.took()[0], "Bcc: Dan <dan@example.net>\r\n") {
		t.Fatalf("%q", g.took())
	}
	read := servertest.ReadPython(t, []byte(g.took()[0]))
	if len(read.Defects) > 0 || len(read.To) != 1 || read.To[0][1] != "bob@example.net" || len(read.CC) != 1 {
		t.Errorf("%+v", read)
	}
	if got := d.mustSend(hello(func(r *outbox.Request) {
		r.Draft.To, r.Draft.BCC = nil, []mail.Address{{Addr: "dan@example.net"}}
	})); got.State != mail.OutboxWaiting {
		t.Errorf("%+v", got)
	}
}

// A message over the service's bound is refused before anything leaves.
func TestGraphBound(t *testing.T) {
	t.Parallel()
	g := newFakeGraph(t, graphTakes)
	d := graphFixture(t, g)
	_, err := d.Send(t.Context(), account, hello(func(r *outbox.Request) {
		r.Draft.Attachments = []outbox.Attachment{{Name: "a.bin", Content: make([]byte, 3<<20)}}
	}))
	if kind(err) != mail.KindRefused || len(g.took()) != 0 {
		t.Errorf("%v, taken %d", err, len(g.took()))
	}
}
