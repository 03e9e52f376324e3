package smtp

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestReadReply(t *testing.T) {
	t.Parallel()
	errs := map[string]error{"EOF": io.EOF, "cut": io.ErrUnexpectedEOF, "not-SMTP": errNotSMTP, "too-much": errTooMuch}
	for _, tc := range testmain.Table[struct {
		In       string
		Code     int
		Enhanced string
		Text     string
		Err      string
	}](t, "testdata/cases/reply.txt") {
		name := tc.In
		if len(name) > 60 {
			name = name[:60]
		}
		r, err := readReply(bufio.NewReaderSize(strings.NewReader(tc.In), maxLine))
		if !errors.Is(err, errs[tc.Err]) || r.code != tc.Code || r.enhanced != tc.Enhanced || tc.Text != "" && r.text() != tc.Text {
			t.Errorf("%q: %d %q %q, %v", name, r.code, r.enhanced, r.text(), err)
		}
	}
}

// readReply returns a whole reply or an error, reads nothing behind the reply, and its text
// is fit for a person.
func FuzzReply(f *testing.F) {
	f.Add("250 ok\r\n250 more\r\n")
	f.Add("250-one\r\n250 two\r\n")
	f.Add("550-5.1.1 no\r\n550 5.1.1 body\r\nrest")
	f.Add("334 " + strings.Repeat("A", 5000))
	f.Fuzz(func(t *testing.T, in string) {
		src := strings.NewReader(in)
		br := bufio.NewReaderSize(src, maxLine)
		r, err := readReply(br)
		used := in[:len(in)-src.Len()-br.Buffered()]
		text := r.text()
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 256 || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("text %q", text)
		}
		if err != nil {
			if r.code != 0 || r.enhanced != "" || r.lines != nil {
				t.Errorf("%+v with %v", r, err)
			}
			return
		}
		if r.code < 200 || r.code > 599 || len(r.lines) == 0 || len(r.lines) > maxLines || strings.Count(used, "\n") != len(r.lines) || !strings.HasSuffix(used, "\n") {
			t.Fatalf("%+v of %q", r, used)
		}
		if last := used[strings.LastIndex(used[:len(used)-1], "\n")+1:]; len(last) > 3 && last[3] == '-' {
			t.Errorf("it goes on after %q", last)
		}
		if r.positive() && r.refused() || r.positive() != strings.HasPrefix(used, "2") {
			t.Errorf("%q is positive %v, refused %v", used, r.positive(), r.refused())
		}
	})
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a@b", "a.b+c=d@example.org", "!#$%&'*+-/=?^_`{|}~@example.org", `"a\"b"@example.org`, `"a@b"@example.org`, "jörg@exämple.org", "用户@例子.中国",
		"a@[192.0.2.1]", "a@[IPv6:2001:db8::1]", "a@under_score.example.org", strings.Repeat("a", 200) + "@example.org"} {
		if err := checkAddress(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "@", "a", "a@", "@b", "a b@c", "a@b c", "a@b>", "<a@b", "<a@b>", "a@b\r\n", "a\n@b", "a\x00@b", "a@b\x7f", ".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c",
		`"a b"@c`, `"a"b"@c`, `"a\"@c`, `"a@c`, `"a<b"@c`, "a,b@c", "a;b@c", "a:b@c", "a(b)@c", "@a,@b:c@d", "a@b@c", "a@[1.2.3.4", "a@[]", "a@[1.2.3.4]x", "a@[x y]", "Ann <a@b>", "a@b> SIZE=1",
		"a\u0085@b", "a\u2028@b", "a\u200b@b", "a@b\u00a0c", "a\u202e@b", "\xff@b", "a@\xff", strings.Repeat("a", 253) + "@b", "a@" + strings.Repeat("b", 253)} {
		if checkAddress(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// No valid address can end the path in which it is sent, or begin another line.
func FuzzAddress(f *testing.F) {
	f.Add("a@example.org")
	f.Add(`"a\>"@b`)
	f.Add("a@[1.2.3.4]> X")
	f.Fuzz(func(t *testing.T, a string) {
		if checkAddress(a) != nil {
			return
		}
		if !utf8.ValidString(a) || len(a) > maxAddress || strings.ContainsAny(a, "<> \t") || strings.ContainsFunc(a, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("%q passes", a)
		}
	})
}
