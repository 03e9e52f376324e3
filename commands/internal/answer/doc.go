// Package answer holds what the answers of all commands are made of: how far an
// operation got and what comes next, the compact form of a list, times, addresses and
// counts in words, and the public codes and hints of errors.
//
// It knows no command: what a command answers stands with the command. FaultsWhere is the
// one place where errors become public.
package answer
