package discovery

// Question is what a command's function returns as its error when a person has to
// decide before it goes on. Everything that must not be lost is stored by then: the
// function may never hear of it again. Where a person can be asked, the same
// command string is run again with what they said as Call.Reply, perhaps in another
// process, more than once, or never.
type Question struct {
	// Text is what the person is shown, in plain lines. The function makes sure that nothing
	// an agent wrote can pass for a part of the question.
	Text string

	// State is what the function needs to find the matter again. It comes back
	// authentic and only with the same principal and command string, but a client can
	// read it, so it holds nothing secret.
	State string

	// Otherwise is the answer where nobody can be asked. Never nil.
	Otherwise *Fault
}

// Error returns the message of the answer where nobody can be asked.
func (q *Question) Error() string { return q.Otherwise.Message }

// Verdict is what a person said to a Question. The zero Verdict means that there was no answer.
type Verdict uint8

// The verdicts.
const (
	Unanswered Verdict = iota // nobody answered, or the question was dismissed
	Accepted
	Declined
)

// Reply is the outcome of a Question.
type Reply struct {
	State   string // of the Question
	Verdict Verdict
	By      string // who answered, as far as that can be known, for records
}
