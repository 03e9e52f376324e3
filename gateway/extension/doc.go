// Package extension makes commands from programs that a person puts into a directory
// (002 section 9).
//
// Load reads the directory once. Each of its sub-directories is one extension: a
// manifest that says what the commands are called, take and do, and the program that
// does it. Load returns commands like any other, to be given to a
// discovery.Registry: they are bound, helped, described, authorized, limited, timed
// and audited by the code that does so for every command. Nothing of an extension
// runs before its command does.
//
// The program is started by its path, never through a shell. It reads one JSON
// object from standard input and prints one JSON value. It gets few variables of the
// environment, none of them ours, and limits; it is killed with its process group
// when its time is over.
//
// An extension is a program of the person who put it there, and has that person's
// rights: the package makes sure that it cannot be somebody else's, that it cannot
// harm the process that runs it by what it prints or how long it takes, and that it
// is handed no secret by accident. It is not a sandbox.
//
// The package knows nothing of mail.
package extension
