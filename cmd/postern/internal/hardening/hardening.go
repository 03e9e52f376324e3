// Package hardening keeps the secrets of this process from other processes of the same
// user and from its children. It does so while the program's packages are initialized,
// long before main, so that every verb has it: no core file, on Linux no reading by other
// processes of the same user, and no keys or passwords in the environment.
//
// The system lets others look at a process until its first instructions have run, and the
// administrator of the machine at all times. Only Linux lets a process forbid being read.
package hardening

import (
	"os"
	"strings"
)

var secrets = hide()

// Secrets returns the variables of the environment that held a secret when the process
// was started, NAME=value. The environment has them no more.
func Secrets() []string { return append([]string(nil), secrets...) }

// Getenv is os.Getenv for every variable, those of Secrets among them.
func Getenv(name string) string {
	for _, v := range secrets {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return os.Getenv(name)
}

func hide() (taken []string) {
	forbid()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); secret(name) {
			taken = append(taken, v)
			_ = os.Unsetenv(name)
		}
	}
	if len(taken) > 0 {
		overwrite()
	}
	return taken
}

// secret reports whether the variable holds a key or a password. Those that only name a
// place where one is found stay: a _FILE and a _COMMAND are no secret.
func secret(name string) bool {
	return name == "POSTERN_KEY" || name == "POSTERN_ADMIN_KEY" || strings.HasPrefix(name, "MAIL_IMAP_") && strings.HasSuffix(name, "_PASS")
}
