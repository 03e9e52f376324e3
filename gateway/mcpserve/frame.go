package mcpserve

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/postern-mail/postern/internal/plain"
)

// maxLine is the most bytes a message may have. The longest command string, every
// character of it written as two escapes, is less than an eighth of it.
const maxLine = 1 << 20

// readLine returns the next line without its end, in memory of its own. A line longer
// than maxLine is skipped in bounded memory: long says so, and line is nil. The last line
// needs no end. The error is the reader's.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		part, ended := bytes.CutSuffix(part, []byte{'\n'})
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case ended, errors.Is(err, io.EOF) && (len(line) > 0 || long):
			return line, long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// A frame is one message from the client: a call if it has a method and an id, a
// notification if it has a method alone, else a response to a call of ours.
type frame struct {
	method   string
	params   json.RawMessage
	id       json.RawMessage // as it came
	key      string          // the same for every way to write the same id
	response jsonrpc.Message
}

// A frameFault is the answer to a line that is not a message. Its id is nil where the line
// has no id that can be trusted.
type frameFault struct {
	id json.RawMessage
	jsonrpc.Error
}

func newFault(id json.RawMessage, code int64, message string) *frameFault {
	return &frameFault{id, jsonrpc.Error{Code: code, Message: message}}
}

// parseFrame reads a line that is not blank. Names count with their case, as they
// do not for encoding/json and a struct.
func parseFrame(line []byte) (*frame, *frameFault) {
	if !utf8.Valid(line) {
		return nil, newFault(nil, jsonrpc.CodeParseError, "the line is not valid UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil || fields == nil {
		switch {
		case !json.Valid(line):
			return nil, newFault(nil, jsonrpc.CodeParseError, "the line is not JSON")
		case bytes.TrimLeft(line, " \t\r")[0] == '[':
			return nil, newFault(nil, jsonrpc.CodeInvalidRequest, "batches are not supported; send each message on a line of its own")
		}
		return nil, newFault(nil, jsonrpc.CodeInvalidRequest, "the message is not an object")
	}
	f := &frame{}
	if id, ok := fields["id"]; ok {
		if f.key = idKey(id); f.key == "" {
			return nil, newFault(nil, jsonrpc.CodeInvalidRequest, "the id is neither a string nor a number")
		}
		f.id = id
	}
	fault := func(code int64, message string) (*frame, *frameFault) {
		return nil, newFault(f.id, code, message)
	}
	if string(fields["jsonrpc"]) != `"2.0"` {
		return fault(jsonrpc.CodeInvalidRequest, `the message does not say "jsonrpc":"2.0"`)
	}
	method, ok := fields["method"]
	if !ok {
		if fields["result"] == nil && fields["error"] == nil || f.id == nil {
			return fault(jsonrpc.CodeInvalidRequest, "the message has no method")
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return fault(jsonrpc.CodeInvalidRequest, "the response is not well-formed")
		}
		f.response = m
		return f, nil
	}
	if method[0] != '"' || json.Unmarshal(method, &f.method) != nil {
		return fault(jsonrpc.CodeInvalidRequest, "the method is not a string")
	}
	if p, ok := fields["params"]; ok && p[0] != 'n' {
		if p[0] != '{' {
			return fault(jsonrpc.CodeInvalidParams, "the params are not an object")
		}
		f.params = p
	}
	return f, nil
}

// idKey makes ids comparable: 1, 1.0 and 1e0 are the same, and so are "a" and
// "\u0061". It is empty for a value that is not an id.
func idKey(id json.RawMessage) string {
	if len(id) == 0 {
		return ""
	}
	switch c := id[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(id, &s) != nil {
			return ""
		}
		return "s" + s
	case c == '-' || '0' <= c && c <= '9':
		const exact = 1 << 53
		if x, err := strconv.ParseFloat(string(id), 64); err == nil && -exact < x && x < exact && x == float64(int64(x)) {
			return "n" + strconv.FormatInt(int64(x), 10)
		}
		return "n" + string(id)
	}
	return ""
}

// encodeResponse encodes a response with the id as the client wrote it.
func encodeResponse(id json.RawMessage, r *jsonrpc.Response) []byte {
	if r.Error == nil {
		b := append(make([]byte, 0, len(r.Result)+len(id)+64), `{"jsonrpc":"2.0","id":`...)
		b = append(append(append(b, id...), `,"result":`...), r.Result...)
		return append(b, '}')
	}
	f := newFault(id, 0, r.Error.Error())
	if wire, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
		f.Code, f.Data = wire.Code, wire.Data
	}
	return f.encode()
}

// encode is the fault as a message. Errors of the library lose their quotes of a long
// request, and get a code where they have none.
func (f *frameFault) encode() []byte {
	const maxMessage = 300
	f.Code, f.Message = cmp.Or(f.Code, jsonrpc.CodeInvalidRequest), strings.ToValidUTF8(plain.Clip(f.Message, maxMessage), "\ufffd")
	b, err := plain.JSON(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", f.id, &f.Error})
	if err != nil { // the id was taken from JSON, and so were the library's data
		panic(err)
	}
	return b
}
