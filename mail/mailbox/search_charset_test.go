package mailbox_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

var longText = regexp.MustCompile(`\{(\d+)\+\}\r\n$`)

// withoutCharsets stands before a server and refuses each SEARCH that declares a charset, as
// Exchange does.
func withoutCharsets(t *testing.T, target string) (port uint16) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				defer client.Close()
				_, _ = io.Copy(client, server)
			}()
			go func() {
				defer server.Close()
				lines := bufio.NewReader(client)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					refused := strings.Contains(line, "CHARSET UTF-8")
					tag, _, _ := strings.Cut(line, " ")
					for at := longText.FindStringSubmatch(line); at != nil; at = longText.FindStringSubmatch(line) {
						n, _ := strconv.Atoi(at[1])
						text := make([]byte, n)
						_, _ = io.ReadFull(lines, text)
						rest, _ := lines.ReadString('\n')
						line += string(text) + rest
					}
					if refused {
						_, _ = fmt.Fprintf(client, "%s NO [BADCHARSET (US-ASCII)] The specified charset is not supported.\r\n", tag)
					} else if _, err := io.WriteString(server, line); err != nil {
						return
					}
				}
			}()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// Where a server knows no charset it searches for the ASCII part of the words, and what it
// finds is read.
func TestWordsBeyondASCIIWhereAServerKnowsNoCharset(t *testing.T) {
	t.Parallel()
	e := mailtest.InMemory(t)
	port := withoutCharsets(t, fmt.Sprintf("127.0.0.1:%d", e.Port))
	b := open(t, e, "charset", func(a *mail.Account) { a.IMAP.Port = port })
	b.Add("INBOX", letter{Subject: "Büro", Body: "Die Grüße aus Köln.\r\n", Extra: "Content-Type: text/plain; charset=utf-8\r\n"},
		letter{Subject: "Buro", Body: "Die Grobe aus Keln.\r\n"}, letter{Subject: "Other", Body: "Nothing.\r\n"})
	for name, q := range map[string]mailbox.SearchQuery{
		"words":         {Words: "Grüße aus Köln"},
		"text":          {Text: "Köln"},
		"subject":       {Subject: "Büro"},
		"nothing ASCII": {Subject: "ü"},
	} {
		if p := b.search(q); len(p.Messages) != 1 || p.Messages[0].Subject != "Büro" || len(p.Issues) != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := b.search(mailbox.SearchQuery{Words: "Größe"}); len(p.Messages) != 0 {
		t.Errorf("%+v", p)
	}
}
