package clientconfig

import (
	"path/filepath"
	"strings"
)

// Entry describes how a client starts this program. It holds no secret, because a
// client's configuration must not have one: a variable says where the key is.
type Entry struct {
	Command string     // the program's path
	Args    []string   // the first is serve or demo, by which the entry is recognized as ours
	Env     []Variable // nil without variables
}

// Variable returns the value of a variable; empty without it and for a nil entry.
func (e *Entry) Variable(name string) string {
	if e == nil {
		return ""
	}
	for _, v := range e.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// Variable is an environment variable that a client sets for the server, in the
// order of writing. Its name has only letters, digits and _, and is in an entry only
// once.
type Variable struct{ Name, Value string }

// oursVariable reports whether Put sets a variable and removes it again; other
// variables, added by a person, stay.
func oursVariable(name string) bool { return strings.HasPrefix(name, "POSTERN_") }

// ourCommand reports whether a command starts this program, wherever it was
// installed at the time.
func ourCommand(command string, args, variables []string) bool {
	base := filepath.Base(strings.ReplaceAll(command, `\`, "/"))
	named := strings.TrimSuffix(base, ".exe") == "postern"
	for _, v := range variables {
		named = named || oursVariable(v)
	}
	return named && len(args) > 0 && (args[0] == "serve" || args[0] == "demo")
}
