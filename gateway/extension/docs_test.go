package extension

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
)

// TestTheDocumentationNamesEveryMember compares the manifest's types with the page.
func TestTheDocumentationNamesEveryMember(t *testing.T) {
	page, err := os.ReadFile("../../docs/extensions.md")
	must(t, err)
	n := 0
	for _, typ := range []reflect.Type{reflect.TypeFor[manifest](), reflect.TypeFor[argument](), reflect.TypeFor[discovery.Shape]()} {
		for _, f := range reflect.VisibleFields(typ) {
			if name := f.Tag.Get("json"); name != "" {
				n++
				if !strings.Contains(string(page), "`"+name+"`") {
					t.Errorf("docs/extensions.md does not name %s", name)
				}
			}
		}
	}
	for _, c := range codes {
		if !strings.Contains(string(page), "`"+string(c)+"`") {
			t.Errorf("docs/extensions.md does not name %s", c)
		}
	}
	for _, v := range passed {
		if !strings.Contains(string(page), "`"+v+"`") {
			t.Errorf("docs/extensions.md does not name %s", v)
		}
	}
	if n < 30 {
		t.Errorf("only %d members were looked for", n)
	}
}
