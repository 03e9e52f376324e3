package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

// tryUntilItWorks logs in, and has the person correct the failures.
func (w *wizard) tryUntilItWorks(ctx context.Context) error {
	for {
		w.compose()
		w.ask.Say("Logging in to the servers. No message is read or sent.")
		_, checks, err := w.try(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var text []string
		if err != nil {
			var f *discovery.Fault
			if !errors.As(err, &f) {
				return err
			}
			text = append(text, f.Message+hintInWords(f.Hint))
		}
		bad := 0
		for _, c := range checks {
			mark := "works:   "
			if !c.OK {
				mark, bad = "FAILED:  ", bad+1
			}
			service, detail := strings.TrimPrefix(c.Name, w.draft.name+" "), plain.Line(c.Detail)
			if !c.OK && c.Code != discovery.ConnectionFailed { // whose detail says why, and what can be changed is asked next
				detail += hintInWords(c.Hint)
			}
			text = append(text, mark+service+": "+detail)
		}
		w.ask.Say(strings.Join(text, "\n"))
		if err == nil && bad == 0 {
			return nil
		}
		if err := w.mend(ctx, checks); err != nil {
			return err
		}
	}
}

// server is the server of the account for a service, which is smtp or that of the mailbox.
func (w *wizard) server(service string) mail.Endpoint {
	if service == "smtp" {
		return w.draft.smtp
	}
	return w.draft.incoming
}

// mend asks what to change after a failed try.
func (w *wizard) mend(ctx context.Context, checks []admin.Check) error {
	d := &w.draft
	login, certificate, onlySMTP := len(checks) == 0, "", len(checks) > 1
	for _, c := range checks {
		if c.OK {
			continue
		}
		login = login || c.Code == discovery.AuthFailed
		if certificate == "" && strings.Contains(c.Detail, "certificate") {
			certificate = strings.TrimPrefix(c.Name, d.name+" ")
		}
		onlySMTP = onlySMTP && strings.HasSuffix(c.Name, " smtp")
	}
	var choices []choice
	for _, o := range []struct {
		offered bool
		choice
	}{
		{certificate != "" && w.server(certificate).Loopback(), choice{"pin", "Look at the certificate, to trust that one: the server is on this machine"}},
		{certificate != "", choice{"ca", "Give the file of an authority to trust, for a server with its own"}},
		{login && d.auth == mail.AuthPassword, choice{"password", "Type the password again"}},
		{certificate == "" && !(login && d.auth == mail.AuthPassword), choice{"again", "Try again"}},
		{login, choice{"username", "Change the login name"}},
		{onlySMTP, choice{"unsent", "Go on without a server to send with"}},
		{true, choice{"servers", "Change the servers"}},
		{true, choice{"stop", "Stop; nothing is stored"}},
	} {
		if o.offered {
			choices = append(choices, o.choice)
		}
	}
	for {
		shown, before := w.ask.Shown(), w.draft
		what, err := w.ask.Choose(ctx, "What now?", "", choices)
		if err != nil {
			return err
		}
		if err = w.mendBy(ctx, what, certificate); !errors.Is(err, errBack) {
			return err
		}
		if w.draft = before; what != "pin" { // which says why
			w.ask.TakeBack(shown)
		}
	}
}

// mendBy does what was chosen. certificate is the service whose certificate was not accepted.
func (w *wizard) mendBy(ctx context.Context, what, certificate string) error {
	d := &w.draft
	switch what {
	case "pin":
		return w.pin(ctx, certificate)
	case "ca":
		_, err := w.ask.Text(ctx, textQuestion{Title: "File of certificates (PEM)", Check: func(s string) (err error) {
			d.caFile, err = w.certificates(s)
			return err
		}})
		return err
	case "password":
		return w.askPassword(ctx)
	case "username":
		d.typing = true
		return w.askUsername(ctx)
	case "unsent":
		d.smtp = mail.Endpoint{}
	case "servers":
		w.typed.incoming, w.typed.smtp, d.typing = d.incoming, d.smtp, true
		d.incoming, d.smtp, d.caFile = mail.Endpoint{}, mail.Endpoint{}, ""
		return w.walk(ctx, append(w.serverSteps(), step{do: w.askUsername}), true)
	case "stop":
		return errStopped
	}
	return nil
}

// certificates returns the absolute path of a file of certificates, whose name a person typed.
func (w *wizard) certificates(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home := w.Getenv("HOME")
		if runtime.GOOS == "windows" {
			home = w.Getenv("USERPROFILE")
		}
		name = filepath.Join(home, rest)
	}
	switch info, err := os.Stat(name); {
	case err != nil:
		return "", errors.New("there is no such file")
	case !info.Mode().IsRegular() || info.Size() > 1<<20:
		return "", errors.New("that is no file of certificates")
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		return "", errors.New("the file cannot be read")
	}
	if err := (&mail.Account{CAPEM: pem}).CheckCA(); err != nil {
		return "", errors.New("there is no certificate in it, which begins with -----BEGIN CERTIFICATE-----")
	}
	return filepath.Abs(name)
}

// unreachedTime bounds the look at the certificate of a server.
const unreachedTime = 10 * time.Second

// hintInWords is a hint behind a sentence, where it names no option of a command: here
// questions are asked instead.
func hintInWords(hint string) string {
	if hint == "" || strings.Contains(hint, "--") {
		return ""
	}
	return " " + hint
}
