package mailbox

import "github.com/postern-mail/postern/mail/mailbox/internal/reading"

// Bound is what a number of a query may be. It is the only place that says so: options of
// commands take theirs from here.
type Bound struct {
	Min, Max int
	Default  int // what 0 stands for
}

// The bounds of the queries. What is outside is brought into them.
var (
	ListLimit       = Bound{1, 500, 50}   // messages of a page of List or Watch (000 section 7.3)
	SearchLimit     = Bound{1, 50, 20}    // messages of a page of Search (001 section 4)
	SnippetChars    = Bound{50, 500, 0}   // of the opening of a text; 0: there is none
	ThreadLimit     = Bound{1, 200, 200}  // messages of a Thread
	ThreadChars     = Bound{0, 20_000, 0} // of each text in a Thread; 0: there are none
	BodyChars       = Bound{100, reading.MaxBodyChars, 2000}
	AttachmentChars = Bound{100, 50_000, 10_000}
	FromChar        = Bound{1, reading.MaxFromChar, 0} // 0: from the beginning
	RawBytes        = Bound{1024, 1_000_000, 200_000}  // of a message's source (001 section 6)
)

// of brings a number into its bounds.
func (b Bound) of(n int) int {
	if n == 0 {
		return b.Default
	}
	return min(max(n, b.Min), b.Max)
}
