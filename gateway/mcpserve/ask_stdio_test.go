package mcpserve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/gateway"
)

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
