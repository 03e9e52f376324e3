package codes

import (
	"strings"
	"testing"
	"time"
)

// hostile are texts that would be costly for a reader that goes back.
var hostile = map[string]string{
	"digits":       "1 ",
	"codes":        "code 482913 ",
	"many codes":   "code K7XQ2P-",
	"groups":       "AB1-",
	"names":        "security code ",
	"capitals":     "ABCDEF ",
	"links":        "https://acme.example/reset/8f3A2b1C9d0E8f3A2b1C9d0E ",
	"broken links": "https://acme.example/reset/8f3A2b1C9d0E8f3A2b1C9d0E8f3A2b1C9d0E8f3A2b1C9d0E\n9d0E\n",
	"long link":    "://a/b?c=",
	"percent":      "%25",
	"brackets":     "<https://a/\n",
	"other digits": "٤٨٢٩١٣ code ",
	"accents":      "é\u0301",
	"one word":     "a1",
	"masked":       HiddenCode,
}

// Half a MiB takes a part of a second; work that grew with the square of the length would
// take minutes.
func TestCostIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("half a MiB of each takes its time; FuzzMask has short ones of them")
	}
	for name, unit := range hostile {
		s := strings.Repeat(unit, 512<<10/len(unit))
		begin := time.Now()
		Find("Your security code 482913", s).Mask(s)
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, unit := range hostile {
		s := strings.Repeat(unit, 1<<20/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Find("Your security code 482913", s).Mask(s)
			}
		})
	}
}

func FuzzMask(f *testing.F) {
	for _, m := range readMails(f, "codes.txt") {
		f.Add(m.subject, m.text, m.text)
	}
	for name, unit := range hostile {
		f.Add(name, strings.Repeat(unit, 20), unit)
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
