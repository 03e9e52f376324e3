// Package outbox sends mail: it composes, waits for a person where the account's mode
// says so, delivers, and files the copy in Sent. Every message passes the outbound
// policy when it is submitted and once more right before the wire; the table in
// state.go says what is recorded before and after, so that no message leaves twice by
// itself. What becomes of an entry, or would of a request, is one value: Decision.
package outbox
