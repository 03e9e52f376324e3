package mcpserve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
// than maxLine is skipped in bounded memory, and long is what was seen of it; long is
// nil for any other. The last line needs no end. The error is the reader's.
func readLine(r *bufio.Reader) (line []byte, long *longLine, err error) {
	for {
		part, err := r.ReadSlice('\n')
		part, ended := bytes.CutSuffix(part, []byte{'\n'})
		if long == nil && len(line)+len(part) > maxLine {
			long = &longLine{}
			long.scan(line)
			line = nil
		}
		if long != nil {
			long.scan(part)
		} else {
			line = append(line, part...)
		}
		switch {
		case ended, errors.Is(err, io.EOF) && (len(line) > 0 || long != nil):
			return line, long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, nil, err
		}
	}
}

// A longLine looks for the id of a request whose line is too long to be kept, so that
// a client that sends too much learns it at once instead of waiting in vain. It
// tracks just enough JSON to tell the members of the outermost object.
type longLine struct {
	depth             int
	inString, escaped bool
	isID              bool   // the member at hand is named "id"
	scalar            []byte // of the member at hand, its name or its value
	id                []byte
}

const maxLongID = 256 // bytes of an id that a longLine finds

func (l *longLine) scan(p []byte) {
	for _, b := range p {
		switch {
		case l.inString:
			l.keep(b)
			l.inString = l.escaped || b != '"'
			l.escaped = !l.escaped && b == '\\'
		case b == '"':
			l.inString = true
			l.keep(b)
		case b == '{', b == '[':
			l.depth++
		case b == '}', b == ']':
			l.endMember()
			l.depth--
		case b == ',':
			l.endMember()
		case b == ':' && l.depth == 1:
			l.isID = string(l.scalar) == `"id"`
			l.scalar = l.scalar[:0]
		case b != ' ' && b != '\t' && b != '\r':
			l.keep(b)
		}
	}
}

func (l *longLine) keep(b byte) {
	if l.depth == 1 && len(l.scalar) <= maxLongID {
		l.scalar = append(l.scalar, b)
	}
}

func (l *longLine) endMember() {
	if l.depth != 1 {
		return
	}
	if l.isID {
		l.id = bytes.Clone(l.scalar)
	}
	l.isID, l.scalar = false, l.scalar[:0]
}

// fault is the answer to the line.
func (l *longLine) fault() *frameFault {
	f := &frameFault{code: jsonrpc.CodeInvalidRequest, message: fmt.Sprintf("the line is longer than %d bytes", maxLine)}
	if l.depth == 0 && !l.inString && len(l.id) <= maxLongID && idKey(l.id) != "" && json.Valid(l.id) && utf8.Valid(l.id) {
		f.id = l.id
	}
	return f
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

// A frameFault is the answer to a line that is no message. Its id is nil where the
// line has none that can be trusted.
type frameFault struct {
	id      json.RawMessage
	code    int64
	message string
}

// parseFrame reads a line that is not blank. Names count with their case, as they
// do not for encoding/json and a struct.
func parseFrame(line []byte) (*frame, *frameFault) {
	if !utf8.Valid(line) {
		return nil, &frameFault{code: jsonrpc.CodeParseError, message: "the line is not valid UTF-8"}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil || fields == nil {
		switch {
		case !json.Valid(line):
			return nil, &frameFault{code: jsonrpc.CodeParseError, message: "the line is not JSON"}
		case bytes.TrimLeft(line, " \t\r")[0] == '[':
			return nil, &frameFault{code: jsonrpc.CodeInvalidRequest, message: "batches are not supported; send each message on a line of its own"}
		}
		return nil, &frameFault{code: jsonrpc.CodeInvalidRequest, message: "the message is not an object"}
	}
	f := &frame{}
	if id, ok := fields["id"]; ok {
		if f.key = idKey(id); f.key == "" {
			return nil, &frameFault{code: jsonrpc.CodeInvalidRequest, message: "the id is neither a string nor a number"}
		}
		f.id = id
	}
	fault := func(code int64, message string) (*frame, *frameFault) {
		return nil, &frameFault{id: f.id, code: code, message: message}
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
// "\u0061". It is empty for what is no id.
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
		if _, err := strconv.ParseInt(string(id), 10, 64); err == nil {
			return "n" + string(id)
		}
		const exact = 1 << 53
		if x, err := strconv.ParseFloat(string(id), 64); err == nil && -exact < x && x < exact && x == float64(int64(x)) {
			return "n" + strconv.FormatInt(int64(x), 10)
		}
		return "n" + string(id)
	}
	return ""
}

// appendResponse encodes a response with the id as the client wrote it. Errors of
// the library lose what they repeat of a long request, and get a code where they
// have none.
func appendResponse(b []byte, id json.RawMessage, r *jsonrpc.Response) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if r.Error == nil {
		b = append(b, `,"result":`...)
		b = append(b, r.Result...)
		return append(b, '}')
	}
	code, message, data := int64(0), r.Error.Error(), json.RawMessage(nil)
	var wire *jsonrpc.Error
	if errors.As(r.Error, &wire) {
		code, data = wire.Code, wire.Data
	}
	if code == 0 {
		code = jsonrpc.CodeInvalidRequest
	}
	return appendError(b, code, message, data)
}

func appendFault(b []byte, f *frameFault) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if f.id == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, f.id...)
	}
	return appendError(b, f.code, f.message, nil)
}

func appendError(b []byte, code int64, message string, data json.RawMessage) []byte {
	const maxMessage = 300
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, code, 10)
	b = append(b, `,"message":`...)
	b = appendString(b, strings.ToValidUTF8(plain.Clip(message, maxMessage), "\ufffd"))
	if len(data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, data...)
	}
	return append(b, "}}"...)
}
