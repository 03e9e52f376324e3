package clientconfig

import (
	"path/filepath"
	"strings"
)

// Entry is how a client starts this program. It holds no secret, because a client's
// configuration must not have one: a variable says where the key is.
type Entry struct {
	Command string     // the program's path
	Args    []string   // the first is serve or demo, else nobody knows the entry again as ours
	Env     []Variable // nil: none
}

// Variable is one of the environment that a client adds for the server, in the order
// in which it is written. Its name has only letters, digits and _, and stands in an
// entry once.
type Variable struct{ Name, Value string }

// oursVariable reports whether Put sets a variable and takes it away again; others
// that a person added stay.
func oursVariable(name string) bool { return strings.HasPrefix(name, "POSTERN_") }

// ourCommand reports whether a client starts this program by it, wherever that was
// when it was installed.
func ourCommand(command string, args, variables []string) bool {
	base := filepath.Base(strings.ReplaceAll(command, `\`, "/"))
	named := strings.TrimSuffix(base, ".exe") == "postern"
	for _, v := range variables {
		named = named || oursVariable(v)
	}
	return named && len(args) > 0 && (args[0] == "serve" || args[0] == "demo")
}
