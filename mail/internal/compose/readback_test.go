package compose

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// received is a message as a reader reads it.
type received struct {
	From, To, CC, BCC []Address
	Subject           string
	Date              int64 // Unix time
	MessageID         string
	InReplyTo         string
	References        []string
	Body              string // with LF, flowed lines joined
	Files             []Attachment
}

// want returns the message that every reader must read from the built m.
func want(m *Message) received {
	names := func(list []Address) (out []Address) {
		for _, a := range list {
			out = append(out, Address{Name: plain.Line(a.Name), Addr: a.Addr})
		}
		return out
	}
	return received{From: names([]Address{m.From}), To: names(m.To), CC: names(m.CC), Subject: strings.Trim(m.Subject, " "), Date: m.Date.Unix(),
		MessageID: m.MessageID, InReplyTo: m.InReplyTo, References: m.References}
}

// written returns the body as it must arrive. A reader of flowed text adds a space behind
// quote marks without one.
func written(body string, flowed bool) string {
	if body == "" {
		return ""
	}
	body = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for i, l := range lines {
		if l != "-- " {
			l = strings.TrimRight(l, " \t")
		}
		if flowed {
			l = bareQuote.ReplaceAllString(l, "$1 $2")
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n") + "\n"
}

var bareQuote = regexp.MustCompile(`^(>+)([^> ])`)

// checkBuilt checks that the standard library's reader reads from b what m says, and that its
// bytes keep the rules of the wire.
func checkBuilt(t *testing.T, m *Message, b *Built) {
	t.Helper()
	checkLines(t, m, b)
	checkFields(t, m, b.Wire, false)
	checkFields(t, m, b.Copy, true)
	if !bytes.HasSuffix(b.Copy, b.Wire) {
		t.Error("the copy does not end with what went over the wire")
	}
	got, flowed := readStandard(t, b.Wire)
	files := got.Files
	got.Files = nil
	w := want(m)
	w.Body = written(m.Body, flowed)
	if !reflect.DeepEqual(got, w) {
		t.Errorf("read is %+v\nwant %+v", got, w)
	}
	if len(files) != len(m.Attachments) || len(b.Attachments) != len(m.Attachments) {
		t.Fatalf("%d files, told of %d, want %d", len(files), len(b.Attachments), len(m.Attachments))
	}
	for i, f := range files {
		told := b.Attachments[i]
		if f.Name != told.Name || f.Type != told.Type || !bytes.Equal(f.Content, m.Attachments[i].Content) {
			t.Errorf("file %d is %q %q of %d bytes; told %q %q, want %d bytes", i, f.Name, f.Type, len(f.Content), told.Name, told.Type, len(m.Attachments[i].Content))
		}
	}
}

// checkLines checks the lengths of lines and the characters in them.
func checkLines(t *testing.T, m *Message, b *Built) {
	t.Helper()
	head, body, _ := bytes.Cut(b.Copy, []byte("\r\n\r\n"))
	if bytes.IndexByte(bytes.ReplaceAll(b.Copy, []byte("\r\n"), nil), '\r') >= 0 || bytes.IndexByte(bytes.ReplaceAll(b.Copy, []byte("\r\n"), nil), '\n') >= 0 {
		t.Error("a bare CR or LF")
	}
	if !bytes.HasSuffix(b.Wire, []byte("\r\n")) {
		t.Error("the last line has no end")
	}
	for line := range strings.SplitSeq(string(b.Copy), "\r\n") {
		if len(line) > 998 {
			t.Errorf("a line of %d octets", len(line))
		}
	}
	wide := false
	for _, list := range [][]Address{{m.From}, m.To, m.CC, m.BCC} {
		wide = wide || slices.ContainsFunc(list, func(a Address) bool { return !isASCII(a.Addr) })
	}
	if b.SMTPUTF8 != wide {
		t.Errorf("SMTPUTF8 %v, want %v", b.SMTPUTF8, wide)
	}
	if !isASCII(string(body)) {
		t.Error("bytes outside ASCII in the body")
	}
	field := ""
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if !strings.HasPrefix(line, " ") {
			field, _, _ = strings.Cut(line, ":")
		}
		if !isASCII(line) && !(wide && slices.Contains([]string{"From", "To", "Cc", "Bcc"}, field)) {
			t.Errorf("bytes outside ASCII in %s", field)
		}
		if strings.TrimSpace(line) == "" {
			t.Errorf("a blank line in %s", field)
		}
		words := strings.Fields(strings.TrimPrefix(line, field+":"))
		if len(line) > 76 && len(words) > 1 {
			t.Errorf("%s could be folded: %q", field, line)
		}
		for _, w := range words {
			if w = strings.TrimRight(w, ","); strings.HasPrefix(w, "=?") && (len(w) > 75 || len(line) > 76) {
				t.Errorf("an encoded word of %d octets on a line of %d", len(w), len(line))
			}
		}
	}
}

// checkFields checks that the header has exactly the expected fields. kept says that raw
// is the copy, with its Bcc field.
func checkFields(t *testing.T, m *Message, raw []byte, kept bool) {
	t.Helper()
	names := []string{}
	add := func(name string, present bool) {
		if present {
			names = append(names, name)
		}
	}
	add("Bcc", kept && len(m.BCC) > 0)
	add("Date", true)
	add("From", true)
	add("To", len(m.To) > 0 || len(m.CC) == 0 && len(m.BCC) > 0)
	add("Cc", len(m.CC) > 0)
	add("Subject", strings.Trim(m.Subject, " ") != "")
	add("Message-ID", true)
	add("In-Reply-To", m.InReplyTo != "")
	add("References", len(m.References) > 0)
	add("MIME-Version", true)
	add("Content-Type", true)
	add("Content-Transfer-Encoding", len(m.Attachments) == 0)
	head, _, found := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !found {
		t.Fatal("no end of the header")
	}
	var got []string
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			name, _, _ := strings.Cut(line, ":")
			got = append(got, name)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("fields %q, want %q", got, names)
	}
	if kept && len(m.BCC) > 0 {
		if got := rfc5322.ParseHeader(raw).Addresses("Bcc"); !slices.EqualFunc(got, m.BCC, func(a, b Address) bool { return a == Address{Name: plain.Line(b.Name), Addr: b.Addr} }) {
			t.Errorf("Bcc %q, want %q", got, m.BCC)
		}
	}
	for _, name := range []string{"From", "To", "Cc", "Bcc"} {
		h := rfc5322.ParseHeader(raw)
		if h.Get(name) == "undisclosed-recipients:;" {
			continue
		}
		if _, ok := h.StrictAddresses(name); !ok || !h.Certain(name) {
			t.Errorf("programs may differ about %s: %q", name, h.Values(name))
		}
	}
}

// readStandard reads with net/mail and mime only, and joins flowed lines with
// message.Flowed.
func readStandard(t *testing.T, raw []byte) (r received, flowed bool) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	must(t, err)
	words := new(mime.WordDecoder)
	if r.Subject, err = words.DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Error(err)
	}
	list := func(name string) (out []Address) {
		if m.Header.Get(name) == "" {
			return nil
		}
		addrs, err := m.Header.AddressList(name)
		if err != nil {
			t.Errorf("%s: %v: %q", name, err, m.Header.Get(name))
		}
		for _, a := range addrs {
			out = append(out, Address{Name: a.Name, Addr: a.Address})
		}
		return out
	}
	r.From, r.To, r.CC, r.BCC = list("From"), list("To"), list("Cc"), list("Bcc")
	date, err := m.Header.Date()
	if err != nil {
		t.Error(err)
	}
	r.Date = date.Unix()
	r.MessageID = strings.Trim(m.Header.Get("Message-ID"), "<>")
	r.InReplyTo = strings.Trim(m.Header.Get("In-Reply-To"), "<>")
	for _, id := range strings.Fields(m.Header.Get("References")) {
		r.References = append(r.References, strings.Trim(id, "<>"))
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	must(t, err)
	if kind != "multipart/mixed" {
		r.Body, flowed = standardText(t, m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
		return r, flowed
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for i := 0; ; i++ {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			return r, flowed
		}
		must(t, err)
		if i == 0 {
			r.Body, flowed = standardText(t, p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p)
			continue
		}
		disposition, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
		if err != nil || disposition != "attachment" {
			t.Errorf("disposition %q: %v", p.Header.Get("Content-Disposition"), err)
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			t.Error(err)
		}
		r.Files = append(r.Files, Attachment{Name: params["filename"], Type: kind, Content: []byte(decoded(t, p.Header.Get("Content-Transfer-Encoding"), p))})
	}
}

func standardText(t *testing.T, contentType, encoding string, body io.Reader) (string, bool) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "text/plain" || params["charset"] != "utf-8" || params["delsp"] != "" {
		t.Errorf("text is %q: %v", contentType, err)
	}
	text := strings.ReplaceAll(decoded(t, encoding, body), "\r\n", "\n")
	flowed := params["format"] == "flowed"
	if flowed {
		text = message.Flowed(text, false)
	}
	return text, flowed
}

func decoded(t *testing.T, encoding string, r io.Reader) string {
	t.Helper()
	switch encoding {
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, r)
	case "quoted-printable":
		r = quotedprintable.NewReader(r)
	case "7bit":
	default:
		t.Errorf("encoding %q", encoding)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// build builds m, checks it with checkBuilt, and returns the result.
func build(t *testing.T, m *Message) *Built {
	t.Helper()
	b, err := Build(m)
	must(t, err)
	checkBuilt(t, m, b)
	return b
}

func field(b []byte, name string) string { return rfc5322.ParseHeader(b).Get(name) }

func list(n int, item func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

// vocabulary holds parts of strings that are hard to write into a message.
var vocabulary = []string{" ", " ", " ", "  ", "word", "a", "ü", "é", "会議", "протокол", "👨‍👩‍👧", "🇩🇪", "e\u0301", "क्\u200dष", "\u00a0", "\u3000",
	"=?", "?=", "=?utf-8?q?x?=", "=", "_", "?", ",", ";", ":", "\"", "\\", "(", ")", "<", ">", "@", "[", "]", ".", "..", "-- ", "'", "%", "*", "/",
	"From ", ">", "> ", ">> ", "Re: ", "ａ", "\ufffd", "https://example.org/a_very_long_link/that/is/longer/than/a/line/of/a/header?and=a&query=string"}

// bodyVocabulary holds the parts that only a text may have.
var bodyVocabulary = append([]string{"\n", "\n", "\r\n", "\r", "\t", "\f", "\u200b", "\u202e", "\n> ", "\n-- \n", "\nFrom ", "\n "}, vocabulary...)

func text(r *rand.Rand, from []string, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(from[r.IntN(len(from))])
	}
	return b.String()
}

// Messages with random words of vocabulary in every field are built, and both readers read
// the same words. Fuzzing would rarely make such messages.
func TestRandomMessagesReadBack(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 22))
	addrs := []string{"ann@example.org", "jürgen@bücher.example", "a.b+c=d@xn--bcher-kva.example", strings.Repeat("x", 200) + "@example.org"}
	built, refused := 0, map[string]int{}
	tries := 1500
	if testing.Short() {
		tries = 300
	}
	for range tries {
		address := func() Address { return Address{Name: text(r, vocabulary, 12), Addr: addrs[r.IntN(len(addrs))]} }
		m := sample()
		m.From, m.Subject, m.Body = address(), text(r, vocabulary, 40), text(r, bodyVocabulary, 120)
		m.Date = time.Unix(r.Int64N(1<<36)-1<<31, 0).In(time.FixedZone("", r.IntN(40*3600)-20*3600))
		m.To = nil
		for range r.IntN(4) {
			m.To, m.BCC = append(m.To, address()), append(m.BCC, address())
		}
		for range r.IntN(3) {
			m.Attachments = append(m.Attachments, Attachment{Name: text(r, bodyVocabulary, 30), Content: []byte(text(r, bodyVocabulary, 50))})
		}
		b, err := Build(m)
		var f *FieldError
		if errors.As(err, &f) {
			refused[f.Field]++
			continue
		}
		built++
		checkBuilt(t, m, b)
		if t.Failed() {
			t.Fatalf("%#v", m)
		}
	}
	if built < tries*2/3 {
		t.Errorf("only %d were built; refused were %v", built, refused)
	}
}
