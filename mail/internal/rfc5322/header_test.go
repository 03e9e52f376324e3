package rfc5322

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
)

// fields makes fields of names and values in turn.
func fields(list []string) (all []Field) {
	for pair := range slices.Chunk(list, 2) {
		all = append(all, Field{pair[0], pair[1]})
	}
	return all
}

func TestParseHeaderTakesWhatRealMailboxesHold(t *testing.T) {
	for _, tt := range testmain.Table[struct {
		Name, In string
		Want     []string
	}](t, "testdata/cases/header.txt") {
		if got := ParseHeader([]byte(tt.In)).Fields(); !slices.Equal(got, fields(tt.Want)) {
			t.Errorf("%s: %q, want %q", tt.Name, got, tt.Want)
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
	for _, tc := range testmain.Table[struct {
		Certain bool
		In      string
	}](t, "testdata/cases/certain.txt") {
		if got := ParseHeader([]byte(tc.In)).Certain("From"); got != tc.Certain {
			t.Errorf("%q is certain: %v", tc.In, got)
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
