package quoted

import (
	"strings"
	"testing"
)

// No field of a header means two things, or a header could be counted twice.
func TestFieldNamesAreUnambiguous(t *testing.T) {
	for name := range fieldNames {
		if name != strings.ToLower(name) {
			t.Errorf("%q is not in lower case", name)
		}
	}
	for _, set := range []map[string]bool{originalWords, forwardWords} {
		for words := range set {
			if words != strings.ToLower(words) {
				t.Errorf("%q is not in lower case", words)
			}
		}
	}
}
