package visible

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

// A bomb causes much work and is cheap to send. It has front once and then repeats unit as often
// as it fits.
type bomb struct{ Name, Front, Unit string }

// numbered replaces each {n} in a text by how many there were before.
func numbered(s string) string {
	var b strings.Builder
	for i, piece := range strings.Split(s, "{n}") {
		if i > 0 {
			b.WriteString(strconv.Itoa(i - 1))
		}
		b.WriteString(piece)
	}
	return b.String()
}

// repetition is the i-th of a unit, where {i} is i, {j} the number after it and {x} a colour.
func repetition(unit string, i int) string {
	if !strings.Contains(unit, "{") {
		return unit
	}
	unit = strings.ReplaceAll(strings.ReplaceAll(unit, "{i}", strconv.Itoa(i)), "{j}", strconv.Itoa(i+1))
	return strings.ReplaceAll(unit, "{x}", fmt.Sprintf("#%06x", i))
}

func (c bomb) make(size int) string {
	var b strings.Builder
	b.WriteString(numbered(c.Front))
	for i := 0; b.Len() < size; i++ {
		b.WriteString(repetition(c.Unit, i))
	}
	return b.String()
}

// bombSize is the length of a short bomb in bytes.
const bombSize = 6000

// The cost of a document is proportional to its length. Allocated bytes stand for work:
// they can be counted, and every fault of this kind in an HTML parser shows in them or
// hangs this test. What is made of a document is bounded by the caller, not by its length.
func TestCostIsLinear(t *testing.T) {
	for _, way := range []struct {
		name string
		most uint64 // bytes of memory for one of HTML
		make func(t *testing.T, doc string)
	}{
		{"Text", 1000, func(t *testing.T, doc string) {
			if n := len([]rune(Text(doc, 500))); n > 500 {
				t.Errorf("%d runes, more than were asked for", n)
			}
		}},
		{"Sanitize", 3000, func(t *testing.T, doc string) {
			got, _, _ := Sanitize(nil, doc, 20_000)
			checkSafe(t, got, 20_000)
		}},
	} {
		for _, tc := range testmain.Table[bomb](t, "testdata/bombs.txt") {
			t.Run(way.name+" of "+tc.Name, func(t *testing.T) {
				cost := func(size int) uint64 {
					doc := tc.make(size)
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					way.make(t, doc)
					runtime.ReadMemStats(&after)
					return (after.TotalAlloc - before.TotalAlloc) / uint64(len(doc))
				}
				short, long := cost(bombSize), cost(4*bombSize)
				if long > way.most || long > 2*short+50 {
					t.Errorf("a byte costs %d in a short document and %d in one four times as long", short, long)
				}
			})
		}
	}
}
