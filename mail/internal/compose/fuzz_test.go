package compose

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzBuild checks that any strings in any field give an error, or a message from which
// two readers read the same strings, without any other field.
func FuzzBuild(f *testing.F) {
	f.Add("Ann Lee", "bob@example.com", "Hello", "Text\n", "parent@example.com", "x.txt", "text/plain", []byte("content"), int64(1772000000), 120)
	f.Add("Lee, \"Ann\" \\", "bob@bücher.example", "Grüße  an =?utf-8?q?x?=", longText+"> q\n-- \nAnn", "", "../ü\r\n.pdf", "", []byte{0, 255}, int64(0), -721)
	f.Add("x\r\nBcc: eve@example.net", "<bob@example.com>", "a\r\n\r\nb", "From \x00", "a> <b", "", "text/x; a=\"\r\n\"", []byte(nil), int64(-1), 0)
	f.Add("会議", "jürgen@例え.テスト", strings.Repeat("👨‍👩‍👧 ", 20), strings.Repeat("会議 > From ", 30)+"\r \n\f", "a@b", strings.Repeat("名", 100), "message/rfc822", []byte("x"), int64(253402300799), 14*60)
	f.Fuzz(func(t *testing.T, name, typed, subject, body, parent, file, kind string, content []byte, seconds int64, zone int) {
		if len(subject)+len(body)+len(content) > 64<<10 {
			return // longer inputs are slow and find nothing more
		}
		to := Address{Name: name, Addr: typed}
		if a, err := ParseAddress(typed); err == nil {
			to.Addr = a.Addr
		}
		m := sample()
		m.From.Name, m.To, m.BCC = name, []Address{to, {Addr: "second@example.org"}}, []Address{to}
		m.Subject, m.Body, m.InReplyTo = subject, body, parent
		m.Date = time.Unix(seconds%1e12, 0).In(time.FixedZone("", zone%100000))
		if parent != "" {
			m.References = []string{"root@example.org", parent}
		}
		if file != "" || kind != "" {
			m.Attachments = []Attachment{{Name: file, Type: kind, Content: content}, {Content: []byte("second")}}
		}
		b, err := Build(m)
		if err != nil {
			var fault *FieldError
			if b != nil || !errors.As(err, &fault) || fault.Field == "" || fault.Problem == "" {
				t.Errorf("built %v, error %v", b != nil, err)
			}
			return
		}
		checkBuilt(t, m, b)
	})
}

// FuzzParseAddress checks that an accepted address can be written and read again, also by
// the standard library, and that a message with it can be built.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"ann@example.org", "Ann Lee <ann@example.org>", `"Lee, Ann" <ann@example.org>`, "ä@bücher.example", `"\"\\" <a@b>`, ". .. <a@b>", "Ann\u00a0 <a@b>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			if a != (Address{}) {
				t.Errorf("refused %q with %q", s, a)
			}
			return
		}
		checkAddressAgain(t, a)
		m := sample()
		m.From, m.To = a, []Address{a, a}
		build(t, m)
	})
}

// FuzzBody checks that readers with and without format=flowed get the text that was
// written.
func FuzzBody(f *testing.F) {
	for _, s := range []string{longText, "> " + longText, "-- \n" + longText + " -- ", strings.Repeat("From > ", 20), strings.Repeat(" ", 80) + "x", "a\rb\r\n\n\tc \f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text, flowed, err := layout(body)
		if err != nil {
			return
		}
		checkShown(t, body, strings.ReplaceAll(string(text), "\r\n", "\n"), flowed)
		m := sample()
		m.Body = body
		build(t, m)
	})
}
