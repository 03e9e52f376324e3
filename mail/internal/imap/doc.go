// Package imap is the wire between package mail and an IMAP server: it connects,
// logs in, and lends sessions to callbacks. Call NewPool and Pool.Lend; Dial is
// for a single connection that lives on its own.
//
// Nothing a server sends is trusted. A guard stands between TLS and the protocol
// library and bounds lines, literals, nesting, bytes and silence, so that a
// hostile server costs a deadline and a few megabytes. What leaves is read as
// well: a read-only session refuses every verb that could change a mailbox before
// a byte of it is written, because EXAMINE alone does not stop MOVE on every
// server.
//
// A new connection costs as few round trips as it can: the login leaves together
// with the first commands (see heldLogin), and what a lend asks for before it is
// answered rests on nothing the server said before it. What the protocol library
// could not parse is mended or left out before the library sees it (see mender), so
// that one broken message or folder costs itself alone.
//
// The package knows nothing of accounts, policies or MIME.
package imap
