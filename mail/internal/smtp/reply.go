package smtp

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// reply is one answer of the server (RFC 5321 section 4.2).
type reply struct {
	code     int      // 200 to 599
	enhanced string   // such as 5.1.1 (RFC 3463); empty without one
	lines    []string // the text, without codes; at least one, perhaps empty
}

// positive means that the command was done, refused that it will not be.
func (r *reply) positive() bool { return r.code/100 == 2 }
func (r *reply) refused() bool  { return r.code/100 >= 4 }

// text is the server's words, fit for a person.
func (r *reply) text() string {
	return wire.Clean(strings.Join(strings.Fields(strings.Join(r.lines, " ")), " "))
}

// readReply reads one reply. It accepts a line that ends without CR, and refuses any other
// fault: half a line is not an answer.
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
		parts := replyLine.FindStringSubmatch(line)
		if parts == nil {
			return reply{}, errNotSMTP
		}
		code, _ := strconv.Atoi(parts[1])
		text := parts[3]
		switch status := strings.TrimSpace(enhanced.FindString(text)); {
		case r.code == 0:
			if r.code = code; strings.HasPrefix(status, parts[1][:1]) { // of the reply's own class
				r.enhanced = status
			}
		case code != r.code:
			return reply{}, errNotSMTP
		}
		if r.enhanced != "" {
			text = strings.TrimPrefix(strings.TrimPrefix(text, r.enhanced), " ")
		}
		r.lines = append(r.lines, text)
		if parts[2] != "-" {
			return r, nil
		}
	}
	return reply{}, errTooMuch
}

// replyLine is a line of a reply: 250-text, 250 text, or the code alone.
var replyLine = regexp.MustCompile(`(?s)\A([2-5][0-9][0-9])(?:([ -])(.*))?\z`)

// enhanced matches a status code at the beginning of a text (RFC 2034 section 4).
var enhanced = regexp.MustCompile(`\A[245]\.[0-9]{1,3}\.[0-9]{1,3}(?: |\z)`)
