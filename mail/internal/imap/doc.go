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
// The package knows nothing of accounts, policies or MIME.
package imap
