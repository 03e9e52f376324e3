package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// MCP versions of sessions where a case gives none.
const (
	defaultVersion   = "2025-06-18"
	statelessVersion = "2026-07-28" // the first without a handshake
)

// maxStray bounds the unrequested messages of a server while an answer is
// awaited.
const maxStray = 1000

const strayResponse = "a response that nobody waits for"

// session is one connection to a server.
type session struct {
	conn    Conn
	version string
	id      int
	dead    bool
	agreed  string // by the handshake
	called  string // name of the tool
	faults  []string
}

// answer is the outcome of a message. doc is the object that patterns see.
type answer struct {
	outcome string
	detail  string // of a lost answer
	doc     map[string]any
	id      any // of the response

	unreached error // there was no server to open a session with
}

func lost(format string, args ...any) answer {
	return answer{outcome: OutcomeLost, detail: fmt.Sprintf(format, args...)}
}

func (s *session) stateless() bool { return s.version >= statelessVersion }

func (s *session) fault(format string, args ...any) {
	if len(s.faults) < 20 {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

const clientInfo = `{"name":"acli-conformance","version":"1"}`

// meta returns the _meta of each request of a stateless session.
func (s *session) meta() json.RawMessage {
	return json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":` + strconv.Quote(s.version) +
		`,"io.modelcontextprotocol/clientInfo":` + clientInfo + `,"io.modelcontextprotocol/clientCapabilities":{}}`)
}

// handshake makes the session ready for requests.
func (s *session) handshake(ctx context.Context) answer {
	if s.stateless() {
		s.conn.Protocol(s.version)
		return answer{outcome: OutcomeResult}
	}
	a := s.request(ctx, "initialize", json.RawMessage(`{"protocolVersion":`+strconv.Quote(s.version)+`,"capabilities":{},"clientInfo":`+clientInfo+`}`))
	if a.outcome != OutcomeResult {
		return a
	}
	if s.agreed = textAt(a.doc, "/result/protocolVersion"); s.agreed == "" {
		return lost("the answer to initialize names no protocolVersion")
	}
	s.conn.Protocol(s.agreed)
	if err := s.send(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return lost("the server did not take notifications/initialized: %v", err)
	}
	return a
}

func (s *session) send(ctx context.Context, message any) error {
	b, err := marshalPlain(message)
	if err != nil {
		return err
	}
	return s.conn.Send(ctx, b)
}

// withMeta adds the _meta of a stateless session to a request's params.
func (s *session) withMeta(params json.RawMessage) json.RawMessage {
	if !s.stateless() {
		return params
	}
	trimmed := bytes.TrimSpace(params)
	if len(trimmed) == 0 || bytes.Equal(trimmed, []byte("{}")) {
		return json.RawMessage(`{"_meta":` + string(s.meta()) + `}`)
	}
	if trimmed[0] != '{' || bytes.Contains(trimmed, []byte(`"_meta"`)) {
		return params
	}
	return json.RawMessage(`{"_meta":` + string(s.meta()) + `,` + string(trimmed[1:]))
}

// message completes a request or a notification.
func (s *session) message(m map[string]any, params json.RawMessage) map[string]any {
	m["jsonrpc"] = "2.0"
	if p := s.withMeta(params); len(p) > 0 {
		m["params"] = p
	}
	return m
}

// request sends a request and returns the answer to it.
func (s *session) request(ctx context.Context, method string, params json.RawMessage) answer {
	s.id++
	if err := s.send(ctx, s.message(map[string]any{"id": s.id, "method": method}, params)); err != nil {
		return s.broken(err)
	}
	return s.await(ctx, json.Number(strconv.Itoa(s.id)), false)
}

// broken returns the answer for a failed connection.
func (s *session) broken(err error) answer {
	s.dead = true
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return lost("no answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		return lost("the server ended the connection")
	}
	return lost("the connection broke: %v", err)
}

// await reads until the response with that id is there, or any message where first
// is set.
func (s *session) await(ctx context.Context, id json.Number, first bool) answer {
	for range maxStray {
		raw, err := s.conn.Receive(ctx)
		if err != nil {
			return s.broken(err)
		}
		m, ok := s.read(raw)
		if !ok {
			continue
		}
		method, asks := m["method"].(string)
		got, hasID := m["id"]
		switch {
		case asks && hasID && got != nil:
			if err := s.reply(ctx, method, got); err != nil {
				return s.broken(err)
			}
			continue
		case asks:
			continue
		case !first && got != nil && !isNumber(got, id):
			s.fault(strayResponse+", with the id %s", show(got))
			continue
		}
		a := s.response(m, len(raw))
		a.id = got
		return a
	}
	s.dead = true
	return lost("%d messages, none of which is the answer", maxStray)
}

// read parses one message, or records why it is invalid.
func (s *session) read(raw []byte) (map[string]any, bool) {
	if len(bytes.TrimSpace(raw)) == 0 {
		s.fault("an empty line")
		return nil, false
	}
	v, err := decode(raw)
	if err != nil {
		s.fault("a line that is not JSON: %s", show(clip(string(raw), 80)))
		return nil, false
	}
	m, ok := v.(map[string]any)
	if !ok || m["jsonrpc"] != "2.0" {
		s.fault("a message that is not JSON-RPC 2.0: %s", show(clip(string(raw), 80)))
		return nil, false
	}
	if name := memberTwice(string(raw)); name != "" {
		s.fault("a message with the member %s twice", name)
	}
	return m, true
}

// reply answers a request of the server: only ping is supported.
func (s *session) reply(ctx context.Context, method string, id any) error {
	if method == "ping" {
		return s.send(ctx, map[string]any{"jsonrpc": "2.0", "id": id, "result": struct{}{}})
	}
	return s.send(ctx, map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": -32601, "message": "this client has no such method"}})
}

// response makes the document that patterns see.
func (s *session) response(m map[string]any, size int) answer {
	result, hasResult := m["result"]
	fault, hasError := m["error"]
	if hasResult == hasError {
		s.fault("a response with %s", map[bool]string{true: "both a result and an error", false: "neither a result nor an error"}[hasResult])
	}
	if !hasResult && !hasError {
		return lost("a response with neither a result nor an error")
	}
	doc := map[string]any{"bytes": json.Number(strconv.Itoa(size))}
	if id, ok := m["id"]; ok {
		doc["id"] = id
	}
	a := answer{outcome: OutcomeResult, doc: doc}
	if hasError {
		a.outcome = OutcomeError
		doc["rpc_error"] = fault
		return a
	}
	doc["result"] = result
	for _, c := range listAt(result, "/content") {
		part, _ := c.(map[string]any)
		text, ok := part["text"].(string)
		if !ok || part["type"] != "text" {
			continue
		}
		doc["text"] = text
		for name, value := range looseJSON(text) {
			doc[name] = value
		}
		v, err := decode([]byte(text))
		if err == nil {
			open(doc, v)
		}
		if e, _ := v.(map[string]any); e["success"] == nil {
			withoutEnvelope(doc, v, text)
		}
		break
	}
	return a
}

// open puts the members of an envelope where patterns can reach them.
func open(doc map[string]any, envelope any) {
	doc["envelope"] = envelope
	e, ok := envelope.(map[string]any)
	if !ok {
		return
	}
	for from, to := range map[string]string{"success": "success", "data": "data", "message": "message", "_meta": "meta", "error": "error"} {
		if v, ok := e[from]; ok {
			doc[to] = v
		}
	}
	fault, ok := e["error"].(map[string]any)
	if !ok {
		return
	}
	if code, ok := fault["code"]; ok {
		doc["code"] = code
	}
	said := []string{}
	for _, name := range []string{"message", "hint"} {
		if text, ok := fault[name].(string); ok {
			said = append(said, text)
		}
	}
	doc["says"] = strings.Join(said, "\n")
}

// withoutEnvelope makes of an answer without the envelope of 002 section 5 what an envelope would say:
// success is what isError says, the data are the JSON or the text, and a failure's code is
// one that the text names. So what reads commands and describes them is judged although the
// answers are not in form; the cases of the category Response see none of it (inForm).
func withoutEnvelope(doc map[string]any, v any, text string) {
	doc["bare"] = true
	if failed, _ := pointer(doc, "/result/isError"); failed != true {
		doc["success"] = true
		if doc["data"] = v; v == nil {
			doc["data"] = text
		}
		return
	}
	doc["success"], doc["says"] = false, text
	if code := codeWord.FindString(text); code != "" {
		doc["code"] = code
	}
}

// codeWord is a standard code (002 section 5.2), or that of the example in section 5.1.2.
var codeWord = regexp.MustCompile(`\b(PARSE_ERROR|COMMAND_NOT_FOUND|PERMISSION_DENIED|VALIDATION_ERROR|EXECUTION_ERROR|TIMEOUT|RATE_LIMITED|PATH_TRAVERSAL_BLOCKED|INVALID_DATE_FORMAT)\b`)

// inForm is what a case sees of an answer.
func (c *Case) inForm(doc map[string]any) map[string]any {
	if doc["bare"] != true || c.Category != "Response" {
		return doc
	}
	doc = maps.Clone(doc)
	for _, name := range []string{"success", "data", "says", "code"} {
		delete(doc, name)
	}
	return doc
}

// judge matches what a case sees of an answer. The code of a failure that names none is
// not judged.
func (c *Case) judge(expect *Pattern, doc map[string]any, vars scope) ([]Mismatch, error) {
	seen := c.inForm(doc)
	miss, err := expect.match(seen, vars)
	if seen["bare"] == true && seen["success"] == false && seen["code"] == nil {
		miss = slices.DeleteFunc(miss, func(m Mismatch) bool { return m.At == "/code" })
	}
	return miss, err
}

// takeFaults returns the faults on the wire since the last call.
func (s *session) takeFaults() []any {
	list := anys(s.faults)
	s.faults = nil
	return list
}
