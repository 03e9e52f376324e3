// Package commands holds the commands, one file each: its spec, its argument
// struct, its result struct and its function, so that one search finds all four.
//
// A command reaches mail through the narrow interfaces of Deps, never through a
// connection: what it is lent has been through the account's policy. The commands on mail
// and the outbox are here; admin has those that set Postern up, agents those of the agent
// mailbox. All lists them all. What they share is in internal/argument and internal/answer,
// where errors become public codes.
package commands
