package quoted

import (
	"slices"
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
	for _, words := range slices.Concat(originalWords, forwardWords) {
		if words != strings.ToLower(words) {
			t.Errorf("%q is not in lower case", words)
		}
	}
}
