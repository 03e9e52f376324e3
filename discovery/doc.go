// Package discovery says what exists: the commands, their arguments and
// results, and everything that is generated from them.
//
// A command is one call of New with a Spec, an argument struct, a result type
// and a function. The argument struct is the only definition of the command's
// options: binding, bounds, help, inputSchema and completion all read it. The
// result type is the only definition of its answer: outputSchema, --fields and
// the list of untrusted fields read that.
//
// A Registry holds the commands, resolves a token list to one of them, and
// carries the reserved commands help, schema and version (002 section 6).
//
// The package knows nothing of mail, of MCP, of who is calling or of what a
// caller may do; the gateway tells it through Call what is visible.
package discovery
