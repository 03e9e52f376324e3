package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"

	"github.com/postern-mail/postern/internal/testmain"
)

func samplesAt(t testing.TB, now time.Time) []sampleMessage {
	t.Helper()
	messages, err := sampleMessages(now)
	must(t, err)
	return messages
}

func header(t testing.TB, raw []byte) mail.Header {
	t.Helper()
	e, err := message.Read(bytes.NewReader(raw))
	must(t, err)
	return mail.Header{Header: e.Header}
}

func TestEveryFileIsInTheTableOnce(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(sampleFiles, "mailbox/*.eml")
	must(t, err)
	var inTable []string
	for _, m := range samples {
		inTable = append(inTable, "mailbox/"+m.file+".eml")
	}
	slices.Sort(inTable)
	if !slices.Equal(files, inTable) {
		t.Errorf("files %q\ntable %q", files, inTable)
	}
}

// At one minute past midnight today's messages are of yesterday, and none may
// slip into the future.
func TestSamplesAreInOrderAndPastAtAnyHour(t *testing.T) {
	t.Parallel()
	for _, clock := range []string{"00:01", "06:26", "12:00", "23:59"} {
		now, err := onDay(testNow, 0, clock)
		must(t, err)
		last := map[string]time.Time{}
		for _, m := range samplesAt(t, now) {
			if !m.time.Before(now) {
				t.Errorf("at %s %s lies in the future: %v", clock, m.file, m.time)
			}
			if m.time.Before(last[m.folder]) {
				t.Errorf("at %s %s is older than the message before it", clock, m.file)
			}
			last[m.folder] = m.time
		}
	}
}

var longLine = regexp.MustCompile(`[^\r\n]{999}`)

func TestSamplesAreCorrectMessages(t *testing.T) {
	t.Parallel()
	ids := map[string]string{}
	for _, m := range samplesAt(t, testNow) {
		t.Run(m.file, func(t *testing.T) {
			if n := bytes.Count(m.raw, []byte("\n")); n == 0 || n != bytes.Count(m.raw, []byte("\r\n")) || n != bytes.Count(m.raw, []byte("\r")) {
				t.Error("a line does not end in CRLF")
			}
			if longLine.Match(m.raw) {
				t.Error("a line is longer than 998 octets")
			}
			if bytes.Contains(m.raw, []byte("{{")) || bytes.Contains(m.raw, []byte("<no value>")) {
				t.Error("a template was not filled in")
			}
			head, _, _ := bytes.Cut(m.raw, []byte("\r\n\r\n"))
			if slices.ContainsFunc(head, func(b byte) bool { return b >= 0x80 }) {
				t.Error("the header is not ASCII")
			}
			h := header(t, m.raw)
			id, err := h.MessageID()
			if err != nil || id == "" {
				t.Fatalf("Message-ID %q, %v", id, err)
			}
			if other, taken := ids[id]; taken {
				t.Errorf("same Message-ID as %s", other)
			}
			ids[id] = m.file
			from, err := h.AddressList("From")
			if err != nil || len(from) == 0 {
				t.Errorf("From: %v, %v", from, err)
			}
			at, err := h.Date()
			switch {
			case m.file == "no-date":
				if err == nil && !at.IsZero() {
					t.Errorf("dated %v", at)
				}
			case err != nil || !at.Equal(m.time):
				t.Errorf("Date %v, %v, want %v", at, err, m.time)
			}
			if subject, err := h.Subject(); err != nil || (subject == "") != (m.file == "no-subject") {
				t.Errorf("Subject %q, %v", subject, err)
			}
			readAll(t, m.raw)
		})
	}
}

// The samples hold what makes them worth having: the forms, charsets, marks and tricks of mail.
func TestSamplesHoldWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	raw := map[string]string{}
	for _, m := range samplesAt(t, testNow) {
		raw[m.file] = string(m.raw)
	}
	for _, c := range testmain.Table[struct {
		File  string
		Parts []string
	}](t, "testdata/cases/samples.txt") {
		for _, part := range c.Parts {
			if !strings.Contains(raw[c.File], part) {
				t.Errorf("%s lacks %q", c.File, part)
			}
		}
	}
}

// readAll reads every part to its end in its charset.
func readAll(t testing.TB, raw []byte) {
	t.Helper()
	e, err := message.Read(bytes.NewReader(raw))
	must(t, err)
	parts := map[string]int{} // of those that have some, by their path
	must(t, e.Walk(func(path []int, e *message.Entity, err error) error {
		if len(path) > 0 {
			parts[fmt.Sprint(path[:len(path)-1])]++
		}
		kind, _, typeErr := e.Header.ContentType()
		if strings.HasPrefix(kind, "multipart/") {
			parts[fmt.Sprint(path)] += 0
			return errors.Join(err, typeErr)
		}
		_, readErr := io.Copy(io.Discard, e.Body)
		return errors.Join(err, typeErr, readErr)
	}))
	for path, n := range parts {
		if n == 0 {
			t.Errorf("the multipart at %s has no part", path)
		}
	}
}

var address = regexp.MustCompile(`[A-Za-z0-9._+-]+@([A-Za-z0-9-]+\.)*[A-Za-z]+|https?://[a-z0-9.-]+`)

func TestSamplesNameNobodyReal(t *testing.T) {
	t.Parallel()
	reserved := regexp.MustCompile(`[@./]example\.(com|net|org)$`)
	for _, m := range samplesAt(t, testNow) {
		text := bytes.ReplaceAll(m.raw, []byte("\r\n "), nil) // an address may be folded
		for _, found := range address.FindAll(text, -1) {
			if !reserved.Match(found) {
				t.Errorf("%s names %s", m.file, found)
			}
		}
	}
}

func TestEverySampleIsServedAsItIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	uids := map[string]imap.UID{}
	folder := ""
	for _, m := range samplesAt(t, testNow) {
		if m.folder != folder {
			folder = m.folder
			open(t, c, folder, true)
		}
		uids[folder]++
		whole := &imap.FetchItemBodySection{Peek: true}
		got, err := c.Fetch(imap.UIDSetNum(uids[folder]), &imap.FetchOptions{
			RFC822Size: true, InternalDate: true, Envelope: true, Flags: true,
			BodyStructure: &imap.FetchItemBodyStructure{Extended: true},
			BodySection:   []*imap.FetchItemBodySection{whole},
		}).Collect()
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %d messages, %v", m.file, len(got), err)
		}
		if body := got[0].FindBodySection(whole); !bytes.Equal(body, m.raw) {
			t.Errorf("%s: the body differs: %q", m.file, body)
		}
		if got[0].RFC822Size != int64(len(m.raw)) || !got[0].InternalDate.Equal(m.time) {
			t.Errorf("%s: size %d, date %v", m.file, got[0].RFC822Size, got[0].InternalDate)
		}
		if len(got[0].Flags) != len(m.flags) {
			t.Errorf("%s: flags %q, want %q", m.file, got[0].Flags, m.flags)
		}
		got[0].BodyStructure.Walk(func(path []int, part imap.BodyStructure) bool {
			single, ok := part.(*imap.BodyStructureSinglePart)
			if !ok {
				return true
			}
			section := &imap.FetchItemBodySection{Part: path, Peek: true}
			parts, err := c.Fetch(imap.UIDSetNum(uids[folder]), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
			if err != nil || len(parts) != 1 || len(parts[0].FindBodySection(section)) != int(single.Size) {
				t.Errorf("%s: part %v is not as long as its structure says, %v", m.file, path, err)
			}
			return true
		})
	}
}

func TestWordKeepsLinesShortAndCharactersWhole(t *testing.T) {
	t.Parallel()
	const text = "図書交換のお知らせ、図書交換のお知らせ、図書交換のお知らせ 🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻🐻"
	folded, err := word("utf-8", text)
	must(t, err)
	lines := bufio.NewScanner(strings.NewReader(folded))
	for lines.Scan() {
		if len(lines.Text()) > 76 {
			t.Errorf("a line of %d characters", len(lines.Text()))
		}
	}
	var h message.Header
	h.Set("Subject", strings.ReplaceAll(folded, "\n", ""))
	if got, err := h.Text("Subject"); err != nil || got != text {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := word("koi8-r", "図"); err == nil {
		t.Error("a character the charset lacks was accepted")
	}
}

func TestAnActionThatCannotBeCarriedOutIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{{nothing}}", "{{dateOf unknown}}", "{{file none.png}}", `{{b64 "latin" "x"}}`, `{{word "iso-8859-1" "語"}}`, `{{on 5 noon}}`} {
		if filled, err := fill([]byte(text), testNow, "self", nil); err == nil {
			t.Errorf("%s gave %q", text, filled)
		}
	}
}
