package quoted

import (
	"slices"
	"strings"
	"testing"
)

// Texts are compared with these words in lower case.
func TestWordsAreInLowerCase(t *testing.T) {
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
