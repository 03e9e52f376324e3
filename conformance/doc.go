// Package conformance judges servers of ACLI, the protocol of one MCP tool "cli"
// that takes a command string. It knows nothing of the server it judges: its
// questions are the cases in cases/, which are data that a runner in any
// language can use (README.md defines their meaning, case.schema.json their
// form), and it judges only the messages on the wire.
//
// Load or Embedded give the cases, a Target reaches the server (Command, HTTP or
// Pipe), Run asks and returns a Report. A server that hangs, floods, crashes or
// talks nonsense costs a bounded time and memory and is a finding, not an error.
package conformance
