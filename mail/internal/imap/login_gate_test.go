package imap

import (
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// One login at a time until one worked, and one try more for each newer credential.
func TestLoginGate(t *testing.T) {
	newer, same := &wire.Error{Kind: wire.KindAuth, Again: true}, &wire.Error{Kind: wire.KindAuth}
	type step struct {
		do           string // begin, worked, unwatched; newer or same: refused with that error
		round        int    // of the login that was refused
		again, final bool
		shut         bool // afterwards
	}
	for name, steps := range map[string][]step{
		"one works":                  {{do: "begin", shut: true}, {do: "worked"}, {do: "begin"}, {do: "begin"}},
		"one is wrong":               {{do: "begin", shut: true}, {do: "same", final: true}, {do: "begin", shut: true}},
		"wrong after some worked":    {{do: "begin", shut: true}, {do: "worked"}, {do: "begin"}, {do: "same", final: true}, {do: "begin", shut: true}},
		"a newer one works":          {{do: "begin", shut: true}, {do: "newer", again: true}, {do: "begin", shut: true}, {do: "worked"}, {do: "begin"}, {do: "newer", round: 1, again: true}},
		"a newer one is wrong too":   {{do: "begin", shut: true}, {do: "newer", again: true}, {do: "begin", shut: true}, {do: "newer", round: 1, final: true}},
		"two of the old one":         {{do: "begin", shut: true}, {do: "worked"}, {do: "begin"}, {do: "begin"}, {do: "newer", again: true, shut: true}, {do: "newer", again: true}},
		"nobody tried the newer one": {{do: "begin", shut: true}, {do: "newer", again: true}, {do: "unwatched"}, {do: "begin", shut: true}, {do: "newer", round: 1, again: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var g loginGate
			for i, s := range steps {
				var again, final bool
				switch s.do {
				case "begin":
					g.begin()
				case "worked":
					g.end()
					g.worked()
				case "unwatched":
					g.unwatched()
				case "newer":
					g.end()
					again, final = g.refused(newer, s.round)
				case "same":
					g.end()
					again, final = g.refused(same, s.round)
				}
				if again != s.again || final != s.final || g.shut() != s.shut {
					t.Errorf("step %d, %s: again %v, final %v, shut %v", i+1, s.do, again, final, g.shut())
				}
			}
		})
	}
	g := loginGate{}
	_, _ = g.refused(newer, g.begin())
	if err := g.lostIn(1); err != nil {
		t.Errorf("the round is lost before anybody tried: %v", err)
	}
	_, _ = g.refused(newer, g.begin())
	if g.lostIn(0) != nil || g.lostIn(1) != error(newer) || g.lostIn(2) != nil {
		t.Errorf("lost in 0: %v, 1: %v, 2: %v", g.lostIn(0), g.lostIn(1), g.lostIn(2))
	}
}
