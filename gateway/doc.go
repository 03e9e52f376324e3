// Package gateway takes one command from request to answer.
//
// Gateway.Do takes a Request through the same steps for every caller, an MCP client
// (package mcpserve), a person at a prompt or a test:
//
//	Request
//	  │  tokenize      a command string into arguments; Request.Tokens are used as they are
//	  │  peek          the effect and the deadline, before anything else is known
//	  │  turn          its place in the order of its connection (Order); tokens that
//	  │                are wrong or name no command do not wait
//	  │  settings      what the administrator set; the rate; whether the caller's scope holds
//	  │  plan          resolve, authorize, bind, project: nothing of the command's own runs
//	  │                before it is known that the caller may run it
//	  │  run           the command's function, which may ask a person (Request.CanAsk)
//	  │  encode        the result as JSON, made smaller until it fits
//	  ▼  audit         one entry, whatever the outcome
//	Answer             the envelope, and the receipts to run once it has arrived
//
// Explain makes the same plan and goes no further. A panic in any step is an
// EXECUTION_ERROR with an audit entry.
//
// The package is usable without mail: give it a discovery.Registry and it is an
// ACLI server (002). It never runs a shell, and decides nothing that a command itself
// must decide, such as which messages are visible. It keeps nothing in contexts.
package gateway
