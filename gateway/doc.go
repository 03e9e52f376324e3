// Package gateway says what happens to one command.
//
// Gateway.Do takes a principal and a command string through the same steps
// whoever calls, an MCP client, a person at a prompt or a test:
//
//	Tokenize -> Registry.Resolve -> Authorize -> Bind -> Run -> envelope -> audit
//
// A client may send many commands without waiting: ServeStdio answers them as they
// finish, but what they do and show is as if each had waited for the one before
// (Order).
//
// A command may need a person's word. Where the MCP client can ask its person, it
// does, whichever protocol it speaks; the question costs no other command anything
// (WithQuestions, Resume).
//
// The package is usable without mail: give it a discovery.Registry and it is an
// ACLI server (002). It never runs a shell, never lets a panic out, and decides
// nothing that a command itself must decide, such as which messages are visible.
package gateway
