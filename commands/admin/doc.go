// Package admin holds the commands that set Postern up and look after it, one file each:
// accounts, lists, settings, grants, the vault, the audit log and the stop, and what shows
// how all of that stands, doctor and policy show. No message is read or sent here; approving
// one stands with the outbox, in commands.
package admin
