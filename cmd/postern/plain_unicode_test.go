package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

// FuzzPlainUnicode proves that writing characters in place of their escapes changes no
// value and leaves what steers a terminal escaped.
func FuzzPlainUnicode(f *testing.F) {
	for _, s := range []string{"", "é\u200d\u2028", `\u00e9`, `\\u00e9"`, "\U000e0041\u202e", "\x7f\u009b\u0000", "\ufffd\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		escaped := []byte{'"'}
		for _, r := range s {
			if r > 0xffff {
				escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				escaped = fmt.Appendf(escaped, `\u%04x`, r)
			}
		}
		escaped = append(escaped, '"')
		var want string
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]byte{plain, escaped} {
			var got string
			if err := json.Unmarshal(plainUnicode(in), &got); err != nil || got != want {
				t.Errorf("%q became %q: %v", in, plainUnicode(in), err)
			}
		}
		for _, r := range string(plainUnicode(escaped)) {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Errorf("%U stands in %q", r, plainUnicode(escaped))
			}
		}
	})
}
