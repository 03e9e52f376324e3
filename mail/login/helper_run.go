package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/postern-mail/postern/internal/child"
	"github.com/postern-mail/postern/mail"
)

const maxHelperOutput = 64 << 10 // bytes; no password is longer

// helperFailure is why a helper gave nothing. started says that the program ran,
// so that a person may have been asked.
type helperFailure struct {
	err     *mail.Error
	started bool
}

func (f *helperFailure) Error() string { return f.err.Error() }

// runHelper runs a helper: the program argv[0], an absolute path or found in PATH,
// with the other arguments as they are, never through a shell. It reads nothing,
// has no terminal, and is started in the root directory, so that nothing depends
// on where this process was started. The secret is the first line it prints. What
// it prints to standard error is dropped, since that can hold the secret too.
// Beyond maxHelperOutput bytes, or when ctx ends, it is killed with what it
// started. The error is a *helperFailure.
func runHelper(ctx context.Context, account string, argv, environ []string) (mail.Secret, error) {
	fail := func(started bool, kind mail.Kind, advice mail.Advice, format string, v ...any) (mail.Secret, error) {
		return mail.Secret{}, &helperFailure{credentialError(account, kind, fmt.Sprintf(format, v...), advice, nil), started}
	}
	const check = mail.AdviceCheckHelper
	program, err := findHelper(argv[0])
	if err != nil {
		return fail(false, mail.KindConfig, mail.AdviceHelperPath,
			"The account's helper program is not there or cannot be started.")
	}
	out, err := child.Run(ctx, child.Program{Args: append([]string{program}, argv[1:]...), Env: environ, Dir: string(filepath.Separator),
		MaxOutput: maxHelperOutput, Trusted: true})
	defer func() { clear(out) }()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, child.ErrStart):
		return fail(false, mail.KindConfig, check, "The account's helper program cannot be started.")
	case errors.Is(err, child.ErrOutput):
		return fail(true, mail.KindConfig, check, "The account's helper prints more than a password.")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fail(true, mail.KindTimeout, mail.AdviceHelperSooner, "The account's helper did not finish within %d s.", int(HelperTime.Seconds()))
	case ctx.Err() != nil:
		return fail(true, mail.KindConnection, mail.AdviceTryAgain, "The account's helper was ended.")
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return fail(true, mail.KindAuth, check, "The account's helper failed (status %d).", exit.ExitCode())
	case err != nil:
		return fail(true, mail.KindAuth, check, "The account's helper did not end properly.")
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	if len(line) == 0 {
		return fail(true, mail.KindConfig, check, "The account's helper printed no password on its first line.")
	}
	return mail.NewSecret(line), nil
}

// findHelper returns the absolute path of a program. It never looks in the current
// directory, or in one that PATH names relative to it: choosing the directory would choose
// the program.
func findHelper(name string) (string, error) {
	if !mail.IsProgramName(name) {
		return "", exec.ErrNotFound
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		return "", exec.ErrDot
	}
	return path, nil
}

// helperEnviron leaves out variables that a helper must not see: our own settings, keys
// among them, and the passwords of other accounts.
func helperEnviron(environ []string) []string {
	return child.Without(environ, "POSTERN_", mail.EnvironmentPrefix)
}
