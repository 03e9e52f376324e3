package discovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
)

func TestPeekSaysWhatCanBeToldBeforeBinding(t *testing.T) {
	usual := 30 * time.Second
	for line, want := range map[string]discovery.Outlook{
		"a":                         {Timeout: usual},
		"a --timeout 7":             {Timeout: 7 * time.Second},
		"--timeout=300 a":           {Timeout: 300 * time.Second},
		"a --timeout 0":             {Timeout: usual, Wrong: true}, // as binding will say
		"a --timeout soon":          {Timeout: usual, Wrong: true},
		"a -- --timeout 7":          {Timeout: usual, Wrong: true}, // a name that is too long
		"a --count 99":              {Timeout: usual, Wrong: true}, // too many
		"a --count 1":               {Timeout: usual},
		"a --timeout 7 --timeout 8": {Timeout: 7 * time.Second, Wrong: true},
		"a --timeout":               {Timeout: usual, Wrong: true},
		"a --tiemout 7":             {Timeout: usual, Wrong: true},
		"--count 1":                 {Timeout: usual, Wrong: true}, // the positional is missing
		"a --help":                  {Timeout: usual, Help: true},
		"--help":                    {Timeout: usual, Help: true},
		"a -- --help":               {Timeout: usual},
	} {
		if got := thing().Peek(strings.Fields(line)); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
		if _, err := thing().Bind(strings.Fields(line), nil); (err != nil) != want.Wrong {
			t.Errorf("%s: binding says %v", line, err)
		}
	}
}
