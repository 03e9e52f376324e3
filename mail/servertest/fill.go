package servertest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// fillStart is the date of the first message of a filled folder; each of the
// others is a quarter of an hour younger than the one before.
var fillStart = time.Date(2019, time.January, 1, 8, 0, 0, 0, time.UTC)

const fillStep = 15 * time.Minute

// fillTimeout is generous: a machine that is busy with other tests takes a
// minute for 200,000 messages in a Maildir.
const fillTimeout = 10 * time.Minute

// Fill makes a user's folder hold n messages with the UIDs 1 to n, or fails the test: small
// ones, no two alike, like those of a real mailbox. They are the same at every call. The
// folder must be empty or not exist; its name is in ASCII without &, with / between the
// levels; empty means INBOX. The server must accept a password without TLS.
//
// Of ten messages six are plain text, three have an HTML alternative and one has
// a small attachment; every third answers the one before it; 480 addresses on 12
// domains write. The subject of the message with UID u ends in "#u". Dates and
// received dates ascend from January 2019, a quarter of an hour apart. One
// message in four is unseen, one in fifty flagged.
//
// A server with Config.Storage MDBox takes some 50,000 messages in a second and
// opens the folder at once; with a Maildir each message is a file to create.
func Fill(t testing.TB, s *DovecotServer, user, folder string, n int) {
	t.Helper()
	if err := s.fill(user, folder, n); err != nil {
		t.Fatalf("fill: %v", err)
	}
}

// fill appends all messages with one command (RFC 3502), which the server runs as one
// transaction.
func (s *DovecotServer) fill(user, folder string, n int) error {
	conn, err := net.Dial("tcp", s.IMAPAddr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(fillTimeout)); err != nil {
		return err
	}
	r, w := bufio.NewReader(conn), bufio.NewWriterSize(conn, 1<<20)
	for _, c := range []byte(folder) {
		if c < ' ' || c > '~' || c == '&' {
			return fmt.Errorf("%q is not a plain name", folder)
		}
	}
	name := cmp.Or(folder, "INBOX")
	fmt.Fprintf(w, "a LOGIN %s %s\r\nb CREATE %s\r\nc STATUS %s (UIDNEXT)\r\n", quoted(user), Password, quoted(name), quoted(name))
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := answer(r, "a"); err != nil {
		return err
	}
	if _, err := answer(r, "b"); err != nil && !strings.Contains(err.Error(), "[ALREADYEXISTS]") {
		return err
	}
	switch lines, err := answer(r, "c"); {
	case err != nil:
		return err
	case !strings.Contains(lines, "(UIDNEXT 1)"):
		return fmt.Errorf("the folder has held messages: %s", lines)
	}
	fmt.Fprintf(w, "d APPEND %s", quoted(name))
	for uid := 1; uid <= n; uid++ {
		message := sampleMessage(uid)
		fmt.Fprintf(w, " (%s) %q {%d+}\r\n", sampleFlags(uid), sampleDate(uid).Format("02-Jan-2006 15:04:05 -0700"), len(message))
		if _, err := w.Write(message); err != nil {
			return err
		}
	}
	fmt.Fprint(w, "\r\n")
	if err := w.Flush(); err != nil {
		return err
	}
	lines, err := answer(r, "d")
	if err != nil {
		return err
	}
	if numbered := fmt.Sprintf(" 1:%d]", n); n > 1 && !strings.Contains(lines, numbered) {
		return fmt.Errorf("the messages got other UIDs: %s", lines)
	}
	return nil
}

// answer reads a whole answer and returns it, or an error with the server's words if it is
// not OK.
func answer(r *bufio.Reader, tag string) (string, error) {
	var all strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		if status, ok := strings.CutPrefix(line, tag+" "); ok {
			if !strings.HasPrefix(status, "OK") {
				return "", errors.New(strings.TrimSpace(status))
			}
			return all.String(), nil
		}
	}
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func sampleFlags(uid int) string {
	switch {
	case uid%4 == 0:
		return ""
	case uid%50 == 1:
		return `\Seen \Flagged`
	}
	return `\Seen`
}

func sampleDate(uid int) time.Time { return fillStart.Add(time.Duration(uid-1) * fillStep) }

var (
	sampleDepartments = []string{"Reading room", "Archive", "Front desk", "Loans", "Periodicals", "Map collection", "Workshop", "Building", "Accounts", "Press", "Schools", "Concert series"}
	sampleTopics      = []string{
		"Opening hours in the holidays", "Shelving for the annexe", "Invoice for binding", "Tickets for Thursday",
		"Loan request for two maps", "Minutes of the meeting", "The lift is out of order", "New acquisitions",
		"Visit of a school class", "Reminder: stocktaking", "Offer for scanning", "Café menu", "Übersicht der Termine",
		"Change of the heating plan", "Lost umbrella", "Sign for the entrance", "Print run of the leaflet",
	}
	sampleSentences = []string{
		"Please have a look at the list below and tell us by the end of the week what is missing.",
		"The delivery comes on two pallets, so the yard has to be free in the morning.",
		"We have moved the date by one day because the room was taken.",
		"Nothing has to be done about it before next month.",
		"The price includes transport but not the removal of the old shelves.",
		"As agreed, the key is at the front desk.",
		"Three of the boxes are damaged; photographs follow.",
		"Thank you for the quick answer.",
		"The café stays open until six.",
	}
)

func sampleID(uid int) string { return fmt.Sprintf("<fill.%d@example.org>", uid) }

// sampleMessage returns the message with a UID, with CRLF as it is on the wire.
func sampleMessage(uid int) []byte {
	pick := func(list []string, k int) string { return list[(uid*k+uid/len(list))%len(list)] }
	department := (uid * 7) % len(sampleDepartments)
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\r\n", args...) }
	line("Return-Path: <office%d@d%d.example.org>", uid%40, department)
	line("Received: from mx.d%d.example.org by mail.example.org with ESMTPS id %08x; %s", department, uid*2654435761&0xffffffff, sampleDate(uid).Format(time.RFC1123Z))
	line("From: %s %d <office%d@d%d.example.org>", sampleDepartments[department], uid%40, uid%40, department)
	line("To: Library <library@example.org>")
	if uid%5 == 0 {
		line("Cc: Office <office@example.net>, list-%d@lists.example.org", uid%9)
	}
	topic := pick(sampleTopics, 5)
	if uid%3 == 0 {
		topic = "Re: " + topic
		line("In-Reply-To: %s", sampleID(uid-1))
		line("References: %s", sampleID(uid-1))
	}
	line("Subject: %s", encodeSubject(fmt.Sprintf("%s #%d", topic, uid)))
	line("Date: %s", sampleDate(uid).Format(time.RFC1123Z))
	line("Message-ID: %s", sampleID(uid))
	line("MIME-Version: 1.0")
	var text []string
	for i := range 2 + uid%4 {
		text = append(text, pick(sampleSentences, 3+i))
	}
	body := "Hello,\r\n\r\n" + strings.Join(text, "\r\n") + fmt.Sprintf("\r\n\r\nFile %d\r\n-- \r\n%s\r\n", uid, sampleDepartments[department])
	part := func(contentType, content string) {
		line("Content-Type: %s; charset=utf-8", contentType)
		line("Content-Transfer-Encoding: 8bit")
		line("")
		b.WriteString(content)
	}
	boundary := fmt.Sprintf("=_fill_%d", uid)
	switch k := uid % 10; {
	case k < 6:
		part("text/plain", body)
	case k < 9:
		line("Content-Type: multipart/alternative; boundary=%q", boundary)
		line("")
		line("--%s", boundary)
		part("text/plain", body)
		line("--%s", boundary)
		part("text/html", "<html><body><p>"+strings.Join(text, "</p>\r\n<p>")+"</p></body></html>\r\n")
		line("--%s--", boundary)
	default:
		line("Content-Type: multipart/mixed; boundary=%q", boundary)
		line("")
		line("--%s", boundary)
		part("text/plain", body)
		line("--%s", boundary)
		line("Content-Type: text/csv; name=\"list-%d.csv\"", uid)
		line("Content-Disposition: attachment; filename=\"list-%d.csv\"", uid)
		line("Content-Transfer-Encoding: base64")
		line("")
		list := fmt.Sprintf("number,item,price\n1,shelf,%d.00\n2,bracket,%d.50\n3,screws,%d.20\n", uid%900, uid%70, uid%9)
		line("%s", base64.StdEncoding.EncodeToString([]byte(list)))
		line("--%s--", boundary)
	}
	return b.Bytes()
}

// encodeSubject writes a subject as a mailer does: in an encoded word when it is
// not ASCII.
func encodeSubject(s string) string {
	for _, c := range []byte(s) {
		if c >= 0x80 {
			return "=?utf-8?B?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
		}
	}
	return s
}
