package message

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBaseSubject(t *testing.T) {
	for _, tc := range []struct {
		subject, base string
		reply         bool
	}{
		{"", "", false},
		{"Lunch", "Lunch", false},
		{"  Lunch \t on\r\n Monday ", "Lunch on Monday", false},
		{"Re: Lunch", "Lunch", true},
		{"RE:Lunch", "Lunch", true},
		{"re : Lunch", "Lunch", true},
		{"Re: Re: AW: Lunch", "Lunch", true},
		{"Re[2]: Lunch", "Lunch", true},
		{"Re^3: Lunch", "Lunch", true},
		{"Re*4: Lunch", "Lunch", true},
		{"Re (5): Lunch", "Lunch", true},
		{"Re：Lunch", "Lunch", true},
		{"ＲＥ：Lunch", "Lunch", true},
		{"AW: Essen", "Essen", true},
		{"Antwort: Essen", "Essen", true},
		{"WG: Essen", "Essen", true},
		{"Sv: Lunch", "Lunch", true},
		{"VS: Lounas", "Lounas", true},
		{"TR : Repas", "Repas", true},
		{"RÉF: Repas", "Repas", true},
		{"RIF: Pranzo", "Pranzo", true},
		{"R: Pranzo", "Pranzo", true},
		{"I: Pranzo", "Pranzo", true},
		{"RV: Comida", "Comida", true},
		{"Res: Almoço", "Almoço", true},
		{"ENC: Almoço", "Almoço", true},
		{"Odp: Obiad", "Obiad", true},
		{"PD: Obiad", "Obiad", true},
		{"Ynt: Yemek", "Yemek", true},
		{"İLT: Yemek", "Yemek", true},
		{"Doorst: Lunch", "Lunch", true},
		{"VL: Lounas", "Lounas", true},
		{"Ответ: Обед", "Обед", true},
		{"На: Обед", "Обед", true},
		{"HA: Обед", "Обед", true},
		{"回复：午饭", "午饭", true},
		{"答复: 午饭", "午饭", true},
		{"转发: 午饭", "午饭", true},
		{"返信: 昼食", "昼食", true},
		{"회신: 점심", "점심", true},
		{"Fwd: Re: [list] Lunch (fwd)", "Lunch", true},
		{"Lunch (FWD) (fwd)", "Lunch", true},
		{"[Fwd: Lunch]", "Lunch", true},
		{"[fwd: Re: [list] Lunch]", "Lunch", true},
		{"[list] Lunch", "Lunch", false},
		{"[list] Re: Lunch", "Lunch", true},
		{"Re: [list] Re: [list] Lunch", "Lunch", true},
		{"Re [list]: Lunch", "Lunch", true},
		{"[list]", "[list]", false},
		{"[a] [b]", "[b]", false},
		{"Re: [list]", "[list]", true},
		{"Re:", "", true},
		{"Re: Fwd:", "", true},
		{"(fwd)", "", true},
		{"Report: Lunch", "Report: Lunch", false},
		{"Reservation: 12", "Reservation: 12", false},
		{"R2: D2", "R2: D2", false},
		{"Re Lunch", "Re Lunch", false},
		{"12:30 Lunch", "12:30 Lunch", false},
		{": Lunch", ": Lunch", false},
		{"[unclosed Lunch", "[unclosed Lunch", false},
		{"Lunch [Monday]", "Lunch [Monday]", false},
		{"R\u200Be: Lunch", "Lunch", true},
	} {
		if base, reply := BaseSubject(tc.subject); base != tc.base || reply != tc.reply {
			t.Errorf("BaseSubject(%q) = %q, %v, want %q, %v", tc.subject, base, reply, tc.base, tc.reply)
		}
	}
}

func TestSubjectKey(t *testing.T) {
	for _, same := range [][]string{
		{"Lunch", "LUNCH", "Re: lunch", "[x] Fwd:  Lunch", "Ｌｕｎｃｈ"},
		{"Straße", "STRASSE", "AW: strasse"},
		{"", "Re:", " ", "Fwd: (fwd)"},
		{"café", "cafe\u0301", "Re: CAFÉ"},
	} {
		for _, s := range same[1:] {
			if SubjectKey(s) != SubjectKey(same[0]) {
				t.Errorf("%q and %q differ: %q, %q", same[0], s, SubjectKey(same[0]), SubjectKey(s))
			}
		}
	}
	if SubjectKey("Lunch") == SubjectKey("Lunch today") || SubjectKey("") != "" {
		t.Error("different subjects are the same")
	}
}

func TestIsForward(t *testing.T) {
	for s, want := range map[string]bool{
		"Fwd: a": true, "FW: a": true, "WG: a": true, "[x] Fwd: a": true, "[Fwd: a]": true, "a (fwd)": true, "Fwd: Re: a": true, "转发：a": true,
		"": false, "a": false, "Re: a": false, "Re: Fwd: a": false, "Re: a (fwd)": false, "Forward: a": false,
	} {
		if IsForward(s) != want {
			t.Errorf("IsForward(%q) = %v", s, !want)
		}
	}
}

func FuzzBaseSubject(f *testing.F) {
	for _, s := range []string{"Re: [a] Fwd: b (fwd)", "[fwd: Re[2]: x]", "回复：[x] y", strings.Repeat("[a]", 50), "\xff: Re^3:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		base, _ := BaseSubject(s)
		if again, reply := BaseSubject(base); again != base || reply {
			t.Errorf("base %q of %q has base %q, %v", base, s, again, reply)
		}
		if CleanLine(base) != base || !utf8.ValidString(base) {
			t.Errorf("base %q is not one clean line", base)
		}
		if _, reply := BaseSubject("Re: " + s); !reply {
			t.Errorf("an answer to %q is none", s)
		}
		if len(s) < 1000 {
			if SubjectKey("Re: "+s) != SubjectKey(s) {
				t.Errorf("the answer to %q is about %q, not %q", s, SubjectKey("Re: "+s), SubjectKey(s))
			}
			if k := SubjectKey(s); SubjectKey(strings.ToUpper(base)) != k && !hasOddCase(base) {
				t.Errorf("the case of %q counts", base)
			}
		}
	})
}

// hasOddCase reports whether there is anything but ASCII, of which some letters
// have more than two forms.
func hasOddCase(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
