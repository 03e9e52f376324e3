// Package imap is the wire between package mailbox and an IMAP server: it connects,
// logs in, and lends sessions to callbacks. Call NewPool and Pool.Lend; Dial is
// for a single connection that lives on its own.
//
// # The way of the bytes
//
// Between the connection and go-imap's client, which the code calls "the
// library", stands the guard. To the library it is the net.Conn.
//
//	what leaves                                what comes
//
//	Session.Fetch, Search, …                   Fetching.Wait, Searching.Wait, …
//	  commands.go, search.go, fetch.go,          commands.go, search.go, fetch.go,
//	  change.go                                  change.go
//	        |                                          ^
//	go-imap's client: tags and encodes         go-imap's client: decodes
//	        |                                          ^
//	filter: is this verb granted?              mender: rewrites each response so that
//	  filter.go, grant.go                      the client can parse it, or drops it
//	        |                                    mend.go, mend_fetch.go; cursor*.go
//	        |                                    parse a response that is whole
//	        |                                          ^
//	guard: whole lines, in order, several      scanner: bounds lines, literals, strings
//	commands in one write                      and nesting while the bytes stream in
//	  guard.go                                   scan.go
//	        |                                          ^
//	        |                                  guard: bounds bytes, answers and silence
//	        |                                    guard.go
//	        v                                          |
//	      TLS and TCP (package wire)  <---->  the server
//
// The first breach of a bound closes the connection, and its reason is the error of
// every command that waits (guard.reason, Session.fail).
//
// Before a login, the greeting and STARTTLS are lines that a dialog (login.go) writes and
// reads through the guard, without the library. The login goes on beneath the library
// (login_pending.go), as an IDLE does (idle.go). A login of one message to a server with
// SASL-IR is held, and leaves in one write with the session's first commands.
//
// A session belongs to a Pool (pool.go, pool_dial.go), which lends it to one callback
// at a time and lets logins begin (login_gate.go).
//
// # What is promised
//
// No data from a server is trusted: a hostile one costs a deadline and a few megabytes.
// Outgoing commands are read as well: a read-only session refuses every verb that could
// change a mailbox before a byte of it is written, because EXAMINE alone does not stop MOVE
// on every server; a Grant adds verbs for one lend.
//
// One broken message or folder affects no other: data that the library could not parse is
// mended or left out. A new connection costs as few round trips as it can, and commands
// sent before the login is answered do not rely on anything that the server said before it.
//
// What goes in and comes out are values of this package: UIDSet, Criteria, Items, Fetched. No
// other package of the program knows the library.
//
// The package knows nothing of accounts or policies, and reads no text. A server's quirk is a case of
// mend.go or mend_fetch.go and a row of testdata/mend.txt. What the data that is then missing means
// is decided above: for a list in listing.run (mailbox/list.go), for a search in finding.fill
// (mailbox/search.go). Effects on a user are tested in mailbox/hostile_server_test.go.
package imap
