// Package message reads a mail message that may be hostile: its MIME tree, and
// its text as a person would see it. A header block alone is for package rfc5322.
// Start with Parse; Text, SanitizeHTML and PartText then say what there is to read,
// and Thread which messages belong together.
//
// Every function is pure: it does no I/O (but Events and PartText ask the
// system's time zone database for the zones that a calendar names), keeps no
// state, takes any bytes without panicking, and costs time linear in its input, up to the
// bounds each file names. Where a message is malformed the package reads what a
// person's mail program would show.
//
// Functions are safe for concurrent use, and values are safe for concurrent
// reading. The package knows nothing of accounts, servers or policy.
package message
