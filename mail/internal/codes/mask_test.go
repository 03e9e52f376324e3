package codes

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// hostile is what long texts repeat that would be costly for a reader that goes back.
func hostile(t testing.TB) []struct{ Name, Unit string } {
	return testmain.Table[struct{ Name, Unit string }](t, "testdata/cases/hostile.txt")
}

// read reads and masks a text of a length.
func read(unit string, size int) {
	s := strings.Repeat(unit, size/len(unit))
	Find("Your security code 482913", s).Mask(s)
}

func BenchmarkHostile(b *testing.B) {
	for _, c := range hostile(b) {
		b.Run(c.Name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				read(c.Unit, 1<<20)
			}
		})
	}
}

func FuzzMask(f *testing.F) {
	for _, m := range readMails(f, "codes.txt") {
		f.Add(m.subject, m.text, m.text)
	}
	for _, c := range hostile(f) {
		f.Add(c.Name, strings.Repeat(c.Unit, 20), c.Unit)
	}
	f.Add("Your login code", "Your login code is\n\nd-o-e\n", "d-o-e") // too short to be hidden
	f.Fuzz(func(t *testing.T, subject, text, other string) {
		found := Find(subject, text)
		for _, s := range []string{subject, text, other} {
			masked := found.Mask(s)
			if again := found.Mask(masked); again != masked {
				t.Errorf("Mask(%q) = %q, and again %q", s, masked, again)
			}
			if left := found.secrets.in(masked); found.Any() && left != nil {
				t.Errorf("Mask(%q) = %q leaves %q", s, masked, masked[left[0].start:left[0].end])
			}
			if !found.Any() && masked != s {
				t.Errorf("Mask(%q) = %q, and nothing was found", s, masked)
			}
		}
		for _, c := range found.Codes {
			if found.Mask(c) != HiddenCode {
				t.Errorf("Mask(%q) = %q", c, found.Mask(c))
			}
		}
	})
}
