package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

func calling(t *testing.T, c *mcp.ClientSession, p *mcp.CallToolParams) (storeAnswer, *mcp.CallToolResult) {
	t.Helper()
	p.Name = "cli"
	r, err := c.CallTool(t.Context(), p)
	must(t, err)
	var a storeAnswer
	if r.NeedsInput() {
		return a, r
	}
	if len(r.Content) != 1 {
		t.Fatalf("%d contents", len(r.Content))
	}
	if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &a); err != nil || r.IsError == a.Success {
		t.Fatalf("isError %v of %+v, %v", r.IsError, a, err)
	}
	return a, r
}

func cli(command string) map[string]any { return map[string]any{"command": command} }

// yes is the answer of a person who chose.
var yes = mcp.ElicitResult{Action: "accept", Content: map[string]any{questionField: questionYes}}

// handler answers a question.
type handler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// openStore is a server of a fakeStore, whose client answers questions.
func (tr transport) openStore(t *testing.T, p gateway.Principal, answer handler) (*fakeStore, *libraryClient) {
	t.Helper()
	l, g := newFakeStore(t, gateway.Options{})
	return l, tr.open(t, Server{Gateway: g, Principal: p, MaxInFlight: 1}, mcp.ClientOptions{ElicitationHandler: answer})
}

// scoped is a principal that a grant of its own lets in.
func scoped(valid func(context.Context) error) gateway.Principal {
	return gateway.Principal{Name: "ann", Scope: &gateway.Scope{Profile: gateway.FullProfile(), Valid: valid}}
}

func TestAPersonIsAsked(t *testing.T) {
	t.Parallel()
	const unanswered = "ann true not_answered APPROVAL_REQUIRED"
	for name, c := range map[string]struct {
		answer      mcp.ElicitResult
		code, heard string
		audited     string
	}{
		"accept":         {yes, "", "m7 1", "person via client of ann true accepted "},
		"accept, wait":   {mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "wait"}}, "APPROVAL_REQUIRED", "m7 0", unanswered},
		"accept, bare":   {mcp.ElicitResult{Action: "accept"}, "APPROVAL_REQUIRED", "m7 0", unanswered},
		"decline":        {mcp.ElicitResult{Action: "decline"}, "PERMISSION_DENIED", "m7 2", "person via client of ann false declined PERMISSION_DENIED"},
		"cancel":         {mcp.ElicitResult{Action: "cancel"}, "APPROVAL_REQUIRED", "m7 0", unanswered},
		"something else": {mcp.ElicitResult{Action: "ACCEPT"}, "APPROVAL_REQUIRED", "m7 0", unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			overEveryTransport(t, func(t *testing.T, tr transport) {
				if !tr.asks() {
					return
				}
				var shown []string
				var v *libraryClient
				l, v := tr.openStore(t, scoped(nil), func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = append(shown, r.Params.Mode+" "+r.Params.Message)
					// Meanwhile the call holds no place, of which there is one.
					if a, _ := calling(t, v.ClientSession, &mcp.CallToolParams{Arguments: cli("do write --n 1")}); !a.Success {
						t.Errorf("while a person is asked: %+v", a)
					}
					return &c.answer, nil
				})
				a, _ := calling(t, v.ClientSession, &mcp.CallToolParams{Arguments: cli("do ask --n 7")})
				if string(a.Error.Code) != c.code || !slices.Equal(shown, []string{"form Matter 7?"}) || !slices.Equal(l.opened, []int{7}) {
					t.Errorf("answered %+v, shown %q, opened %d", a, shown, l.opened)
				}
				l.wantReplies(t, c.heard+" person via client of ann")
				l.wantRecords(t, "ann true asked APPROVAL_REQUIRED", c.audited)
			})
		})
	}
}

// A client that fails to ask has no answer. The stateless one gives up by itself.
func TestAClientThatCannotAskAfterAll(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		l, v := tr.openStore(t, gateway.Principal{}, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("nobody is here")
		})
		if text, err := v.call(t.Context(), "do ask"); tr.version >= statelessSince && err == nil || tr.version < statelessSince && !strings.Contains(text, "APPROVAL_REQUIRED") {
			t.Errorf("answered %s, %v", text, err)
		}
		if heard := l.replies(); slices.ContainsFunc(heard, func(s string) bool { return !strings.Contains(s, " 0 ") }) {
			t.Errorf("heard %q", heard)
		}
	})
}

// Nobody is asked through a client that cannot show a form, nor through one that is not
// believed: who has a token writes its client's answers.
func TestOnlyAClientThatCanShowAFormAndIsBelievedIsAsked(t *testing.T) {
	never := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, errors.New("asked")
	}
	unasked := scoped(nil)
	unasked.Unasked = true
	for name, c := range map[string]struct {
		p gateway.Principal
		o mcp.ClientOptions
	}{
		"silent":       {scoped(nil), mcp.ClientOptions{}},
		"url only":     {scoped(nil), mcp.ClientOptions{ElicitationHandler: never, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}}},
		"not believed": {unasked, mcp.ClientOptions{ElicitationHandler: never}},
	} {
		t.Run(name, func(t *testing.T) {
			overEveryTransport(t, func(t *testing.T, tr transport) {
				l, g := newFakeStore(t, gateway.Options{})
				v := tr.open(t, Server{Gateway: g, Principal: c.p}, c.o)
				if a, _ := calling(t, v.ClientSession, &mcp.CallToolParams{Arguments: cli("do ask")}); a.Error.Code != discovery.ApprovalRequired {
					t.Errorf("answered %+v", a)
				}
				l.wantRecords(t, "ann true  APPROVAL_REQUIRED")
			})
		})
	}
}

// What lets a client in may end while its person is asked. Then yes is no more.
func TestAnAnswerAfterTheEndOfAGrantDoesNothing(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		if !tr.asks() {
			return
		}
		var over atomic.Bool
		l, v := tr.openStore(t, scoped(func(context.Context) error {
			if over.Load() {
				return &discovery.Fault{Code: discovery.AuthFailed, Message: "It has ended.", Reason: "grant"}
			}
			return nil
		}), func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			over.Store(true)
			return &yes, nil
		})
		for _, line := range []string{"do ask --n 7", "do read --n 1"} {
			if a, _ := calling(t, v.ClientSession, &mcp.CallToolParams{Arguments: cli(line)}); a.Error.Code != discovery.AuthFailed {
				t.Errorf("%s: %+v", line, a)
			}
		}
		l.wantReplies(t)
	})
}

// When the server stops an open question has no answer, and nothing is done.
func TestAQuestionThatIsOpenAtTheEndIsNotAnswered(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		if !tr.asks() {
			return
		}
		asked, gone := make(chan struct{}), make(chan struct{})
		l, v := tr.openStore(t, scoped(nil), func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(asked)
			<-gone
			return &yes, nil
		})
		ended := make(chan error, 1)
		go func() { ended <- second(v.call(t.Context(), "do ask --n 7")) }()
		<-asked
		start := time.Now()
		_ = v.stop()
		if took := time.Since(start); took >= time.Second {
			t.Errorf("it took %s", took)
		}
		close(gone)
		<-ended
		want := []string{"ann true asked APPROVAL_REQUIRED", "ann true not_answered APPROVAL_REQUIRED"}
		if tr.version >= statelessSince { // the server knows nothing of the question
			want = want[:1]
		} else if heard := l.replies(); len(heard) > 1 || len(heard) == 1 && heard[0] != "m7 0 person via client of ann" {
			t.Errorf("heard %q", heard)
		}
		if got := l.records("do ask"); len(got) != len(want) || got[0] != want[0] || slices.Contains(got, "person via client of ann true accepted ") {
			t.Errorf("audited as %q", got)
		}
	})
}

// A question is no outcome yet: it says neither what is in the answer nor whether
// that is an error.
func TestTheQuestionOfAStatelessClientOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := newFakeStore(t, gateway.Options{})
		s := startSession(t, g, Server{Name: "test", Version: "1"})
		s.send(strings.Replace(modernLine(1, "do ask --n 3"), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1))
		var m struct {
			Result map[string]json.RawMessage
		}
		got := s.one()
		must(t, json.Unmarshal([]byte(got), &m))
		want := `{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Matter 3?","requestedSchema":` + questionSchema + `}}}`
		if r := m.Result; string(r["inputRequests"]) != want || string(r["resultType"]) != `"input_required"` || r["content"] != nil || r["isError"] != nil || r["requestState"] == nil {
			t.Errorf("got %s", got)
		}
		unanswered, yes := "m3 0 person via client", `"approval":{"action":"accept","content":{"decision":"approve"}}`
		d.opened = nil
		for _, c := range []struct{ responses, code, heard string }{
			{`"approval":{"roots":[]}`, "APPROVAL_REQUIRED", unanswered}, // none of these is a yes
			{`"approval":{"role":"user","content":{"type":"text","text":"accept"},"model":"m"}`, "APPROVAL_REQUIRED", unanswered},
			{`"approval":{"action":"accept "}`, "APPROVAL_REQUIRED", unanswered},
			{strings.Replace(yes, "approval", "other", 1), "APPROVAL_REQUIRED", unanswered},
			{"", "APPROVAL_REQUIRED", unanswered},
			{yes, "", "m3 1 person via client"},
			{yes, "", "m3 1 person via client"}, // the command decides what a second one means
		} {
			s.send(strings.Replace(modernLine(2, "do ask --n 3"), `"params":{`, `"params":{"requestState":`+string(m.Result["requestState"])+`,"inputResponses":{`+c.responses+`},`, 1))
			if got, heard := codes(t, []string{s.one()}), d.replies(); !slices.Equal(got, []string{"2 " + c.code}) || !slices.Equal(heard, []string{c.heard}) {
				t.Errorf("%s: %q, heard %q", c.responses, got, heard)
			}
		}
		s.send(strings.Replace(modernLine(2, "do ask --n 3"), `"params":{`, `"params":{"inputResponses":{`+yes+`},`, 1)) // without its state
		if got, heard := codes(t, []string{s.one()}), d.replies(); !slices.Equal(got, []string{"2 PERMISSION_DENIED"}) || len(heard) > 0 || len(d.opened) > 0 {
			t.Errorf("%q, heard %q, opened %d anew", got, heard, d.opened)
		}
	})
}

// One caller's open questions do not keep another's person from being asked.
func TestOpenQuestionsAreBoundedByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g := newFakeStore(t, gateway.Options{})
		s := serveWith(t, newPipes(), Server{Gateway: g}, HTTPOptions{}, defaultTimes)
		asked, answer := make(chan string, 100), make(chan struct{})
		codes := make(chan discovery.Code, 100)
		ask := func(token string, times int) {
			c := s.session(t, token, "2025-06-18", &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- token
				<-answer
				return &yes, nil
			}})
			for n := range times {
				go func() {
					a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli(fmt.Sprint("do ask --n ", n))})
					codes <- a.Error.Code
				}()
			}
			synctest.Wait()
		}
		ask("ann", maxOpenQuestions+1)
		if code := <-codes; code != discovery.ApprovalRequired || len(codes) > 0 || len(asked) != maxOpenQuestions {
			t.Errorf("one question too many: %s; asked %d", code, len(asked))
		}
		ask("bob", 1)
		if len(asked) != maxOpenQuestions+1 {
			t.Errorf("asked %d", len(asked))
		}
		close(answer)
		for range maxOpenQuestions + 1 {
			if code := <-codes; code != "" {
				t.Errorf("an open question: %s", code)
			}
		}
	})
}

// asking is the initialize of a client whose person can be asked.
var asking = strings.Replace(initializeLine, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)

func startAsking(t *testing.T, o Server) (*fakeStore, *session) {
	t.Helper()
	d, g := newFakeStore(t, gateway.Options{})
	d.slowest = 0
	s := startSession(t, g, o)
	s.send(asking, initializedLine)
	s.take()
	return d, s
}

// elicited reads the requests for a person among lines: their ids and messages.
func elicited(t *testing.T, lines []string) (ids []string, messages []string) {
	t.Helper()
	for _, line := range lines {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Message, Mode   string
				RequestedSchema json.RawMessage
			}
		}
		must(t, json.Unmarshal([]byte(line), &m))
		if m.Method != "elicitation/create" {
			continue
		}
		if m.Params.Mode != "form" || string(m.Params.RequestedSchema) != questionSchema {
			t.Errorf("asked by %s", line)
		}
		ids, messages = append(ids, string(m.ID)), append(messages, m.Params.Message)
	}
	return ids, messages
}

func replyLine(id, action string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"` + action + `","content":{"decision":"approve"}}}`
}

// codes are the ids of answers with the error code of each envelope.
func codes(t *testing.T, lines []string) []string {
	t.Helper()
	var list []string
	for id, a := range answers(t, lines) {
		list = append(list, fmt.Sprint(id, " ", a.Error.Code))
	}
	slices.Sort(list)
	return list
}

func wantCodes(t *testing.T, lines []string, want ...string) {
	t.Helper()
	if got := codes(t, lines); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnOpenQuestionHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startAsking(t, Server{MaxInFlight: 1})
		s.send(callLine(1, "do ask --n 1 --timeout 1"), callLine(2, "do write --n 2"), callLine(3, "do read --n 3"))
		lines := s.take()
		ids, messages := elicited(t, lines)
		if len(ids) != 1 || messages[0] != "Matter 1?" {
			t.Fatalf("asked %q in %q", messages, lines)
		}
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "elicitation/create") })
		wantCodes(t, lines, "2 ", "3 ")
		time.Sleep(gateway.AskTime - 2*time.Second) // the person's time is not the command's
		release := d.hold(4)
		s.send(callLine(4, "do read --n 4"), callLine(5, "do write --n 5"))
		if lines := s.take(); len(lines) != 0 { // the read is at work now
			t.Errorf("%q", lines)
		}
		s.send(replyLine(ids[0], "accept"))
		if lines := s.take(); len(lines) != 0 {
			t.Errorf("a change overtook a read that was at work: %q", lines)
		}
		if heard := d.replies(); len(heard) != 0 {
			t.Errorf("the answer overtook a read that was at work: %q", heard)
		}
		release()
		wantCodes(t, s.take(), "1 ", "4 ", "5 ")
		d.wantReplies(t, "m1 1 person via client")
	})
}

func TestAQuestionThatNobodyAnswersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startAsking(t, Server{})
		s.send(callLine(1, "do ask --n 1"))
		s.take()
		time.Sleep(gateway.AskTime)
		lines := slices.DeleteFunc(s.take(), func(l string) bool { return strings.Contains(l, "notifications/cancelled") })
		wantCodes(t, lines, "1 APPROVAL_REQUIRED")
		d.wantReplies(t, "m1 0 person via client")
	})
}

// Open questions end with the input, and none is asked after it.
func TestTheEndOfInputIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startAsking(t, Server{MaxInFlight: 1})
		s.send(callLine(1, "do ask --n 1"), callLine(2, "do ask --n 2"))
		if ids, _ := elicited(t, s.take()); len(ids) != 2 {
			t.Fatalf("asked %d times", len(ids))
		}
		release := d.hold(3)
		s.send(callLine(3, "do write --n 3"), callLine(4, "do ask --n 4"))
		_ = s.in.Close()
		before := time.Now()
		synctest.Wait()
		release()
		s.finish()
		if took := time.Since(before); took >= time.Second {
			t.Errorf("it took %s", took)
		}
		lines := s.take()
		if ids, _ := elicited(t, lines); len(ids) != 0 {
			t.Errorf("somebody was asked: %q", lines)
		}
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "notifications/cancelled") })
		wantCodes(t, lines, "1 APPROVAL_REQUIRED", "2 APPROVAL_REQUIRED", "3 ", "4 APPROVAL_REQUIRED")
		if got := d.records("do ask"); len(got) != 6 || got[5] != "agent true not_answered APPROVAL_REQUIRED" {
			t.Errorf("audited as %q", got)
		}
	})
}

func TestACallCancelledWhileAPersonIsAskedDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startAsking(t, Server{})
		s.send(callLine(1, "do ask --n 1"))
		ids, _ := elicited(t, s.take())
		s.send(cancelLine(1))
		s.take()
		s.send(replyLine(ids[0], "accept"), callLine(2, "do write"))
		wantCodes(t, s.take(), "2 ")
		if heard := d.replies(); len(heard) != 0 && !slices.Equal(heard, []string{"m1 0 person via client"}) {
			t.Errorf("heard %q", heard)
		}
		if got := d.records("do ask"); len(got) != 2 || got[1] != "agent true not_answered EXECUTION_ERROR" {
			t.Errorf("audited as %q", got)
		}
	})
}
