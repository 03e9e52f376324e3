package smtp

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// reply is one answer of the server (RFC 5321 section 4.2).
type reply struct {
	code     int      // 200 to 599
	enhanced string   // such as 5.1.1 (RFC 3463); empty without one
	lines    []string // the text, without codes; at least one, perhaps empty
}

// positive says that what was asked is done, refused that it will not be.
func (r *reply) positive() bool { return r.code/100 == 2 }
func (r *reply) refused() bool  { return r.code/100 >= 4 }

// text is the server's words, fit for a person.
func (r *reply) text() string {
	return wire.Clean(strings.Join(strings.Fields(strings.Join(r.lines, " ")), " "))
}

// readReply reads one reply. It takes a line that ends without CR, and nothing
// else that is not as it should be: half a line is no answer.
func readReply(br *bufio.Reader) (reply, error) {
	var r reply
	for range maxLines {
		raw, err := br.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return reply{}, errTooMuch
		case errors.Is(err, io.EOF) && len(raw) > 0:
			return reply{}, io.ErrUnexpectedEOF
		case err != nil:
			return reply{}, err
		}
		line := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
		code, more, text, ok := parseLine(line)
		if !ok || r.code != 0 && code != r.code {
			return reply{}, errNotSMTP
		}
		if r.code == 0 {
			r.code, r.enhanced = code, enhancedCode(code, text)
		}
		if r.enhanced != "" {
			text = strings.TrimPrefix(strings.TrimPrefix(text, r.enhanced), " ")
		}
		r.lines = append(r.lines, text)
		if !more {
			return r, nil
		}
	}
	return reply{}, errTooMuch
}

// parseLine takes a line apart: 250-text, 250 text, or the code alone.
func parseLine(line string) (code int, more bool, text string, ok bool) {
	if len(line) < 3 || line[0] < '2' || line[0] > '5' || !digit(line[1]) || !digit(line[2]) {
		return 0, false, "", false
	}
	code = int(line[0]-'0')*100 + int(line[1]-'0')*10 + int(line[2]-'0')
	if len(line) == 3 {
		return code, false, "", true
	}
	return code, line[3] == '-', line[4:], line[3] == '-' || line[3] == ' '
}

// enhancedCode is the status code that a text begins with (RFC 2034 section 4),
// where it is of the reply's own class.
func enhancedCode(code int, text string) string {
	status, _, _ := strings.Cut(text, " ")
	parts := strings.Split(status, ".")
	if len(parts) != 3 || parts[0] != string(rune('0'+code/100)) {
		return ""
	}
	for _, p := range parts {
		if len(p) < 1 || len(p) > 3 || strings.Trim(p, "0123456789") != "" {
			return ""
		}
	}
	return status
}

func digit(b byte) bool { return b >= '0' && b <= '9' }
