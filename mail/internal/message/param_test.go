package message

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestFilename(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Disposition, Type, Want string }](t, "testdata/cases/filename.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			_, d := splitParams(tc.Disposition)
			_, p := splitParams(tc.Type)
			if got := Filename(d, p); got != tc.Want {
				t.Errorf("Filename(%q, %q) = %q, want %q", tc.Disposition, tc.Type, got, tc.Want)
			}
		})
	}
}

func TestFilenameFitsAFileSystem(t *testing.T) {
	for _, name := range []string{strings.Repeat("ä", 400) + ".pdf", strings.Repeat("x", 400), strings.Repeat("x", 253) + "€.txt", "a." + strings.Repeat("y", 400), strings.Repeat("\xff", 400)} {
		got := Filename(map[string]string{"filename": name}, nil)
		if got == "" || len(got) > 255 || !utf8.ValidString(got) {
			t.Errorf("%d bytes become %d: %q", len(name), len(got), got)
		}
		if strings.HasSuffix(name, ".pdf") && !strings.HasSuffix(got, ".pdf") {
			t.Errorf("%q lost its extension", got)
		}
	}
}

func TestFilenameOfManyContinuations(t *testing.T) {
	params := map[string]string{}
	for i := range 100_000 {
		params[fmt.Sprintf("filename*%d", i)] = "abc"
	}
	if got := Filename(params, nil); len(got) > 255 || !strings.HasPrefix(got, "abcabc") {
		t.Errorf("%q", got)
	}
}

// A part built from a server's description is the same as one built by Parse.
func TestNewPartNormalizes(t *testing.T) {
	p := NewPart(Part{ID: "2", Type: "IMAGE", Subtype: "PNG", Params: map[string]string{"NAME": "x.png"}, Disposition: "Inline",
		Encoding: "BASE64", ContentID: "<i@x>", Size: 3}, map[string]string{"FILENAME*": "UTF-8''%C3%A4.png"})
	if p.MediaType() != "image/png" || p.Disposition != "inline" || p.Encoding != "base64" || p.ContentID != "i@x" || p.Filename != "ä.png" || p.Params["name"] != "x.png" {
		t.Errorf("%+v", *p)
	}
	if p := NewPart(Part{Type: "text"}, nil); p.Params == nil || p.Filename != "" {
		t.Errorf("%+v", *p)
	}
}

func TestSplitParams(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In, Value, Params string }](t, "testdata/cases/params.txt") {
		value, params := splitParams(tc.In)
		if value != tc.Value || fmt.Sprint(params) != tc.Params {
			t.Errorf("splitParams(%q) = %q, %v, want %q, %s", tc.In, value, params, tc.Value, tc.Params)
		}
	}
}
