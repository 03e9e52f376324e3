package mcpserve

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
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
// than maxLine is skipped in bounded memory, and long is what is kept of it; long is
// nil for any other. The last line needs no end. The error is the reader's.
func readLine(r *bufio.Reader) (line []byte, long *longLine, err error) {
	for {
		part, err := r.ReadSlice('\n')
		part, ended := bytes.CutSuffix(part, []byte{'\n'})
		if long == nil && len(line)+len(part) > maxLine {
			long = &longLine{head: bytes.Clone(line[:min(len(line), edge)])}
			long.keep(line)
			line = nil
		}
		if long != nil {
			long.keep(part)
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

// edge is how many bytes a longLine keeps of its beginning and of its end.
const edge = 512

// A longLine is what is kept of a line that is too long. The id of its request stands at
// one of the two ends, where the common clients write it, so that a client that sends
// too much learns it at once instead of waiting in vain.
type longLine struct{ head, tail []byte }

func (l *longLine) keep(p []byte) {
	l.tail = append(l.tail, p[max(0, len(p)-edge):]...)
	l.tail = append(l.tail[:0], l.tail[max(0, len(l.tail)-edge):]...)
}

const idPattern = `"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(-?[0-9]{1,20}|"(?:[^"\\]|\\.){0,256}")\s*`

// Inside a string no quote stands without a backslash, and the end of an inner object is
// followed by that of the outermost one.
var idFirst, idLast = regexp.MustCompile(`\A\s*\{\s*` + idPattern + `,`), regexp.MustCompile(`,\s*` + idPattern + `\}\s*\z`)

// fault is the answer to the line.
func (l *longLine) fault() *frameFault {
	f := &frameFault{code: jsonrpc.CodeInvalidRequest, message: fmt.Sprintf("the line is longer than %d bytes", maxLine)}
	id := idFirst.FindSubmatch(l.head)
	if id == nil {
		id = idLast.FindSubmatch(l.tail)
	}
	if id != nil && json.Valid(id[1]) && utf8.Valid(id[1]) {
		f.id = id[1]
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
	code    int64 // 0 means jsonrpc.CodeInvalidRequest
	message string
	data    json.RawMessage
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
	if r.Error == nil {
		b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
		b = append(append(b, `,"result":`...), r.Result...)
		return append(b, '}')
	}
	f := &frameFault{id: id, message: r.Error.Error()}
	var wire *jsonrpc.Error
	if errors.As(r.Error, &wire) {
		f.code, f.data = wire.Code, wire.Data
	}
	return appendFault(b, f)
}

func appendFault(b []byte, f *frameFault) []byte {
	const maxMessage = 300
	message := appendString(nil, strings.ToValidUTF8(plain.Clip(f.message, maxMessage), "\ufffd"))
	b = fmt.Appendf(b, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s`, cmp.Or(string(f.id), "null"), cmp.Or(f.code, jsonrpc.CodeInvalidRequest), message)
	if len(f.data) > 0 {
		b = append(append(b, `,"data":`...), f.data...)
	}
	return append(b, "}}"...)
}
