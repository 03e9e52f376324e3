// Package message reads a mail message that may be hostile: its MIME tree, and its
// text as a person would see it. Package rfc5322 reads a header block alone. Start
// with Parse; Text, SanitizeHTML and PartText then return the text, and Thread
// groups messages into conversations.
//
// Every function is pure: it does no I/O (but Events and PartText ask the system's time
// zone database for the zones that a calendar names), keeps no state, takes any bytes
// without panicking, and costs time linear in its input, up to the bounds each file
// names. A malformed message is read as a person's mail program would show it.
//
// Functions are safe for concurrent use, and values are safe for concurrent
// reading. The package knows nothing of accounts, servers or policy.
package message
