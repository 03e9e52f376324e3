package imap

import "github.com/postern-mail/postern/mail/internal/wire"

// loginGate decides when a pool may log in. Until a login has worked there is one at
// a time, because servers count wrong passwords. A refusal that a newer credential may
// cure begins a new round, in which there is one more try; a second refusal ends it
// for all callers that wait. The pool's lock guards it.
type loginGate struct {
	pending  int  // logins without an answer: being dialled, or held by the lend that sends them
	proven   bool // a login has worked: the next ones may happen side by side
	round    int  // counts the refusals that were worth another try
	renewing bool // no login has worked since the last of them

	lost    int         // the last round that ended with another refusal
	verdict *wire.Error // that refusal
}

// begin counts a login, and returns the round that it belongs to.
func (g *loginGate) begin() (round int) {
	g.pending++
	return g.round
}

// end takes back what begin counted: the login has an answer, or will have none.
func (g *loginGate) end() { g.pending-- }

// shut reports whether no other login may begin now.
func (g *loginGate) shut() bool { return !g.proven && g.pending > 0 }

// worked notes an accepted login.
func (g *loginGate) worked() { g.proven, g.renewing = true, false }

// refused notes a refused login, and reports whether it is worth another try, and else
// whether it is the answer for all callers that wait: each of them would only repeat it. A
// login that was under way when the round began does not count as a second refusal.
func (g *loginGate) refused(e *wire.Error, round int) (retry, final bool) {
	g.proven = false
	switch {
	case round < g.round:
		return e.Newer, false
	case e.Newer && !g.renewing:
		g.round++
		g.renewing = true
		return true, false
	}
	g.renewing, g.lost, g.verdict = false, g.round, e
	return false, true
}

// lostIn returns the refusal that ended a round, nil when it has not ended so; 0 is
// no round.
func (g *loginGate) lostIn(round int) error {
	if round > 0 && round <= g.lost {
		return g.verdict
	}
	return nil
}

// unwatched notes that no caller waits for a login any more: a round without callers is
// over.
func (g *loginGate) unwatched() {
	if g.pending == 0 {
		g.renewing = false
	}
}
