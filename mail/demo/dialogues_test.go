package demo

import (
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/textproto"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
)

// speaker is a client of a dialogue, with the end of an answer to what it said.
type speaker struct {
	*textproto.Conn
	last func(said, line string) bool
}

// meet connects the speaker of that name, and logs it in if the name has a number.
func (s *Servers) meet(t *testing.T, name string) *speaker {
	t.Helper()
	address, last := s.IMAPAddr, func(said, line string) bool {
		tag, _, _ := strings.Cut(said, " ")
		return strings.HasPrefix(line, tag+" ")
	}
	login := "login LOGIN {user} {password}"
	if strings.HasPrefix(name, "smtp") {
		address, last = s.SMTPAddr, func(_, line string) bool { return len(line) > 3 && line[3] == ' ' }
		login = "AUTH PLAIN {plain}"
	}
	conn, err := net.Dial("tcp", address)
	must(t, err)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if name != "plain" {
		conn = tls.Client(conn, s.clientTLS(t))
	}
	c := &speaker{textproto.NewConn(conn), last}
	t.Cleanup(func() { c.Close() })
	if name != "plain" {
		_, err = c.ReadLine() // the greeting
		must(t, err)
	}
	if strings.HasPrefix(name, "smtp") {
		c.says(t, "EHLO localhost")
	}
	if strings.HasSuffix(name, "1") || strings.HasSuffix(name, "2") {
		c.says(t, s.filled(t, login))
	}
	return c
}

// says returns the lines of the answer.
func (c *speaker) says(t *testing.T, text string) (answer []string) {
	t.Helper()
	must(t, c.PrintfLine("%s", strings.ReplaceAll(text, `\r\n`, "\r\n")))
	for {
		line, err := c.ReadLine()
		if err != nil {
			return append(answer, "the end")
		}
		if answer = append(answer, line); c.last(text, line) {
			return answer
		}
	}
}

var named = regexp.MustCompile(`\{[a-z][a-z0-9-]*\}`)

// filled has what differs from run to run, and the UIDs of samples by their files.
func (s *Servers) filled(t *testing.T, text string) string {
	password := s.Password.Reveal()
	words := map[string]string{"user": s.Username, "password": password, "plain": base64.StdEncoding.EncodeToString([]byte("\x00" + s.Username + "\x00" + password)),
		"large": strings.Repeat(strings.Repeat("x", 998)+"\r\n", MaxMessageBytes/1000+1)}
	return named.ReplaceAllStringFunc(text, func(name string) string {
		if word, ok := words[strings.Trim(name, "{}")]; ok {
			return word
		}
		return imap.UIDSetNum(uidOf(t, strings.Trim(name, "{}"))).String()
	})
}

// TestDialogues has clients say what stands in testdata/dialogues.txt, which says how.
func TestDialogues(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/dialogues.txt")
	must(t, err)
	for block := range strings.SplitSeq(string(data), "\n\n") {
		name, lines, _ := strings.Cut(block, "\n")
		if strings.HasPrefix(name, "#") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			speakers := map[string]*speaker{}
			var answer []string
			skips := false
			for line := range strings.Lines(lines) {
				who, text, _ := strings.Cut(s.filled(t, strings.TrimSuffix(line, "\n")), "> ")
				switch begins, is := strings.CutPrefix(who, "  "); {
				case begins == "...":
					skips = true
				case is:
					i := slices.IndexFunc(answer, func(l string) bool { return strings.HasPrefix(l, begins) })
					if i < 0 || i > 0 && !skips {
						t.Fatalf("no %q in the rest of the answer: %q", begins, answer)
					}
					answer, skips = answer[i+1:], false
				case speakers[who] == nil:
					speakers[who] = s.meet(t, who)
					fallthrough
				default:
					answer = speakers[who].says(t, text)
				}
			}
		})
	}
}
