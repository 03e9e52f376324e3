// Package gateway says what happens to one command.
//
// Gateway.Do takes a Request through the same steps whoever calls, an MCP client
// (package mcpserve), a person at a prompt or a test:
//
//	Request
//	  │  tokenize      a command string into arguments; Request.Tokens are used as they are
//	  │  peek          the effect and the deadline, before anything else is known
//	  │  turn          its place in the order of its connection (Order); what is no command,
//	  │                and what is wrong by its words alone, waits for nobody
//	  │  settings      what the administrator set; the rate; whether the caller's scope holds
//	  │  plan          resolve, authorize, bind, project: nothing of the command's own runs
//	  │                before it is known that the caller may run it
//	  │  run           the command's function, which may ask a person (Request.CanAsk)
//	  │  encode        the result as JSON, made smaller until it fits
//	  ▼  audit         one entry, whatever became of it
//	Answer             the envelope, and what to tell the command once that has arrived
//
// Explain makes the same plan and goes no further. A panic in any step is an
// EXECUTION_ERROR with an audit entry.
//
// The package is usable without mail: give it a discovery.Registry and it is an
// ACLI server (002). It never runs a shell, and decides nothing that a command itself
// must decide, such as which messages are visible. Contexts carry nothing of its own.
package gateway
