package rfc5322

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/plain"
)

func TestParseHeaderTakesWhatRealMailboxesHold(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []Field
	}{
		"nothing":                    {"", nil},
		"CRLF":                       {"A: 1\r\nB: 2\r\n\r\nC: 3\r\n", []Field{{"A", "1"}, {"B", "2"}}},
		"bare LF":                    {"A: 1\nB: 2\n\nC: 3", []Field{{"A", "1"}, {"B", "2"}}},
		"doubled CR":                 {"A: 1\r\r\nB: 2\r\r\n\r\r\nC: 3", []Field{{"A", "1"}, {"B", "2"}}},
		"no end":                     {"A: 1\r\nB: 2", []Field{{"A", "1"}, {"B", "2"}}},
		"folded":                     {"A: 1\r\n 2\r\n\t3\r\nB: 4\n 5\n\n", []Field{{"A", "1 2\t3"}, {"B", "4 5"}}},
		"folded after an empty line": {"A:\r\n 1\r\nB: 2\r\n", []Field{{"A", "1"}, {"B", "2"}}},
		"a fold of white space only": {"A: 1\r\n \r\n 2\r\nB: 3\r\n", []Field{{"A", "1  2"}, {"B", "3"}}},
		"mbox line":                  {"From ann Mon Jan  1 10:00:00 2024\nA: 1\n", []Field{{"A", "1"}}},
		"space before the colon":     {"From : ann@example.org\nA\t: 1\n", []Field{{"From", "ann@example.org"}, {"A", "1"}}},
		"no space behind the colon":  {"A:1\nB::2\n", []Field{{"A", "1"}, {"B", ":2"}}},
		"lines that are no field":    {"A: 1\njunk\n more junk\n: nameless\nX Y: 2\nB: 3\n", []Field{{"A", "1"}, {"B", "3"}}},
		"continuation at the start":  {" A: 1\nB: 2\n", []Field{{"B", "2"}}},
		"NUL, bare CR and 8-bit":     {"A: \x00\xff\rx\nB: 2\n", []Field{{"A", "\x00\xff\rx"}, {"B", "2"}}},
		"control in the name":        {"A\x00: 1\nB\xff: 2\nC: 3\n", []Field{{"C", "3"}}},
		"only an empty line":         {"\r\nA: 1\r\n", nil},
	}
	for name, tt := range tests {
		if got := ParseHeader([]byte(tt.in)).Fields(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestHeaderLookupIgnoresCaseAndKeepsOrder(t *testing.T) {
	h := ParseHeader([]byte("To: a\nsubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nTO: b\n"))
	if got := h.Get("to"); got != "a" {
		t.Errorf("Get = %q", got)
	}
	if got := h.Values("To"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Values = %q", got)
	}
	if h.Get("SUBJECT") == "" || h.Get("Cc") != "" || h.Values("Cc") != nil {
		t.Error("a field that is there is missing, or the reverse")
	}
	if got := h.Text("Subject"); got != "Grüße" {
		t.Errorf("Text = %q", got)
	}
	h.Fields()[0].Value = "changed"
	if h.Get("To") != "a" {
		t.Error("a caller changed the header through Fields")
	}
}

func TestParseHeaderIsBounded(t *testing.T) {
	t.Run("fields", func(t *testing.T) {
		h := ParseHeader([]byte(strings.Repeat("A: 1\n", MaxFields+5) + "From: a@b.c\n\n"))
		if len(h.Fields()) != MaxFields || h.Certain("From") {
			t.Errorf("%d fields, certain %v", len(h.Fields()), h.Certain("From"))
		}
		if h := ParseHeader([]byte(strings.Repeat("A: 1\n", MaxFields) + "\n")); !h.Certain("From") {
			t.Error("a header of exactly the bound lost something")
		}
	})
	t.Run("field", func(t *testing.T) {
		h := ParseHeader([]byte("A: " + strings.Repeat("é", MaxFieldBytes) + "\nTo: " + strings.Repeat("x,\n ", 22_000) + "\nB: 2\n"))
		for _, name := range []string{"A", "To"} {
			if n := len(h.Get(name)); n > MaxFieldBytes || n < MaxFieldBytes-8 {
				t.Errorf("%s has %d bytes", name, n)
			}
		}
		if strings.Contains(h.Text("A"), "\ufffd") || strings.Contains(h.Text("A"), "Ã") {
			t.Error("the bound cut a character in two")
		}
		if h.Certain("A") || !h.Certain("B") || h.Get("B") != "2" {
			t.Error("the bound of one field spoils another")
		}
	})
	t.Run("block", func(t *testing.T) {
		line := "A: " + strings.Repeat("x", 1000) + "\n"
		h := ParseHeader([]byte(strings.Repeat(line, 300) + "From: a@b.c\n\n"))
		if h.Get("From") != "" || h.Certain("From") {
			t.Error("a field beyond the bound was read or is not missed")
		}
		h = ParseHeader([]byte("From: a@b.c\n\n" + strings.Repeat(line, 1000)))
		if !h.Certain("From") {
			t.Error("a long body counts as header")
		}
		h = ParseHeader([]byte("From: " + strings.Repeat("x", 1<<20)))
		if h.Certain("From") || len(h.Get("From")) > MaxFieldBytes {
			t.Error("a line without end was read to its end")
		}
	})
}

func TestCertainMissesNoFieldThatAnotherReaderMayFind(t *testing.T) {
	for _, in := range []string{
		"From: a@b.c\nSubject: x\rFrom: evil@e.org\n",
		"From: a@b.c\nSubject: x\r\n \rfrom : evil@e.org\n",
		"From: a@b.c\nFr\x00om: evil@e.org\n",
		"\xef\xbb\xbfFrom: evil@e.org\nFrom: a@b.c\n",
		" From: evil@e.org\nFrom: a@b.c\n",
		"junk\n From: evil@e.org\nFrom: a@b.c\n",
		"junk\rFrom: evil@e.org\nFrom: a@b.c\n",
		"X\rFrom: evil@e.org\nFrom: a@b.c\n",
	} {
		if ParseHeader([]byte(in)).Certain("From") {
			t.Errorf("%q is certain", in)
		}
	}
	for _, in := range []string{
		"",
		"From: a@b.c\nSubject: From: x\n",
		"From: a@b.c\nReceived: from x\rby y: z\n",
		"From a@b.c Mon Jan  1 10:00:00 2024\nFrom: a@b.c\n",
		"From: a@b.c\njunk\n>From: x y\n",
		"From: a@b.c\nX-From: x\rX-From: y\n\nbody\nF\x00rom: x\n",
	} {
		if !ParseHeader([]byte(in)).Certain("From") {
			t.Errorf("%q is not certain", in)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte("From: Ann <ann@example.org>\r\nDate: Mon, 2 Jan 2006 15:04:05 -0700\r\nMessage-ID: <a@b>\r\n\r\n"))
	f.Add([]byte("From: \"a@b.c\" <x@y.z>, (c(d)) Team: e@f.g;\r\nSubject: =?utf-8?q?=C3?= =?utf-8?b?oA==?=\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := ParseHeader(b)
		seen := map[string]bool{}
		for _, field := range h.Fields() {
			if !isFieldName(field.Name) || strings.Contains(field.Value, "\n") {
				t.Fatalf("field %q", field)
			}
			if s := field.Text(); s != plain.Line(s) {
				t.Fatalf("Text of %q is not clean: %q", field.Value, s)
			}
			if s := plain.Text(field.Value); s != plain.Text(s) {
				t.Fatalf("cleaning %q twice changes it", field.Value)
			}
			dated := Header{fields: []Field{{Name: "Date", Value: field.Value}}}
			if d, ok := dated.Date(); ok {
				if _, err := d.MarshalJSON(); err != nil {
					t.Fatalf("date of %q: %v", field.Value, err)
				}
			}
			if name := strings.ToLower(field.Name); seen[name] || len(seen) == 20 {
				continue
			} else {
				seen[name] = true
			}
			addrs := h.Addresses(field.Name)
			for _, a := range addrs {
				if s := a.String(); s == "" || s != plain.Line(s) || a.Addr != "" && !strings.Contains(a.Addr, "@") {
					t.Fatalf("address %#v of %q", a, field.Value)
				}
			}
			if strict, ok := h.StrictAddresses(field.Name); ok {
				if len(strict) != len(addrs) {
					t.Fatalf("%q: strict %q, tolerant %q", h.Values(field.Name), strict, addrs)
				}
				for i := range strict {
					if strict[i] != addrs[i].Addr {
						t.Fatalf("%q: strict %q, tolerant %q", h.Values(field.Name), strict, addrs)
					}
				}
			}
			for _, id := range h.MsgIDs(field.Name) {
				if id == "" || id != plain.Line(id) || strings.ContainsAny(id, " <>") {
					t.Fatalf("id %q of %q", id, field.Value)
				}
			}
			h.Certain(field.Name)
		}
	})
}
