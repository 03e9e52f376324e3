// Package compose writes outgoing messages. A message that Build returns is
// well formed for every reader, old and new, and says exactly what the caller
// gave; otherwise Build refuses it.
//
// Call ParseAddress for each address that a person or an agent gave, ReplySubject and
// ReplyReferences for an answer, then Build; Digest names the result together
// with its envelope, and AddBCC makes the copy for the sender's own folders.
//
// Header injection is impossible: a value with a line end or another control
// character is refused, and everything outside ASCII is encoded, but for
// addresses that exist in no other form. Every function is pure, does no I/O, and is
// safe for concurrent use. The package knows nothing of accounts, servers or
// policy.
package compose
