// Package commands holds the commands, one file each: its spec, its argument
// struct, its result struct and its function, so that one search finds all four.
//
// A command reaches mail through the narrow interfaces of Deps, never through a
// connection: what it is lent has been through the account's policy. All lists the
// commands. What they share is in internal/argument and internal/answer, where errors
// become public codes.
package commands
