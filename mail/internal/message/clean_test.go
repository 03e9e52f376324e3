package message

import "testing"

func TestCleanRemovesWhatNobodySees(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                    "plain\ttext\n",
		"a\x00b\x07c\x1b[31md\x7fe":        "abc[31mde",
		"a\u0085b\u009bc":                  "abc",
		"a\r\nb\rc\u2028d\u2029e":          "a\nb\nc\nd\ne",
		"user\u202etxt.exe\u202c":          "usertxt.exe",
		"\u2066a\u2069\u061cb\u200e\u200f": "ab",
		"i\u200bg\u200cn\u200do\u2060re":   "ignore",
		"so\u00adft\ufeff":                 "soft",
		"x\U000e0041\U000e0042\U000e007fy": "xy",
		"x\U000e0100y\U000e01efz":          "xyz",
		"a\ufff9b\ufffac\ufffbd":           "abcd",
		"a\u3164b\u115fc\uffa0d\u034f":     "abcd",
		"a\ufe0fb\ufe00c":                  "abc",
		"bad \xff\xfe\xfd bytes \xc3":      "bad \ufffd bytes \ufffd",
		"kept \ufffd":                      "kept \ufffd",
		"Grüße, 你好, мир, e\u0301":          "Grüße, 你好, мир, e\u0301",
		"❤\ufe0f ok":                       "❤\ufe0f ok",
		"❤\ufe0f\ufe0f\ufe0f":              "❤\ufe0f",
		"👩\u200d💻 👩\u200dx \u200d💻":        "👩\u200d💻 👩x 💻",
		"👩\u200d\u200d\u200b💻":             "👩💻",
		"👁\ufe0f\u200d🗨\ufe0f":             "👁\ufe0f\u200d🗨\ufe0f",
		"👍🏽 1\ufe0f\u20e3 1\ufe0f2":        "👍🏽 1\ufe0f\u20e3 12",
		"می\u200cخواهم":                    "می\u200cخواهم",
		"می\u200c\u200cخ\u200c!":           "می\u200cخ!",
	} {
		got := Clean(in)
		if got != want {
			t.Errorf("Clean(%+q) = %+q, want %+q", in, got, want)
		}
		if again := Clean(got); again != got {
			t.Errorf("Clean(%+q) = %+q, cleaned again %+q", in, got, again)
		}
	}
}

func TestCleanLineStandsOnOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		" \t\r\n ":                "",
		"a \r\n\t b":              "a b",
		"  a   b\u00a0":           "a b",
		"a\u2028b\u200b \u200b c": "a b c",
		"\u3000a\n\u3000b":        "a \u3000b",
	} {
		if got := CleanLine(in); got != want || CleanLine(got) != got {
			t.Errorf("CleanLine(%+q) = %+q, want %+q", in, got, want)
		}
	}
}
