package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/cmd/postern/internal/setup"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault"
)

// approve walks through what waits for a person, with the administrator's key of the
// environment, of the keyring, of the file that init made, or typed. An agent can start it, but it
// asks on a terminal alone; who can type there and read that file is the administrator anyway.
func (p *process) approve(ctx context.Context, args []string) error {
	f := p.flags("approve", "[ID]\n\nShows each message and deletion that waits for you as it will happen, and asks. It finds the administrator's key by itself; the beginning of an ID is enough for one alone.\n")
	if err := parse(f, args, 0, 1); err != nil {
		return err
	}
	if !p.onTerminal() {
		return &discovery.Fault{Code: discovery.ApprovalRequired, Message: "'postern approve' shows what waits and asks, and there is no terminal here.",
			Hint: "Run it in a terminal, or look with 'postern outbox list --state waiting' and the administrator's key."}
	}
	if path, err := vault.DefaultPath(p.getenv); err == nil {
		if there, err := vault.Exists(ctx, path); err == nil && !there { // nor a key to ask for
			return faultOf(vault.ErrNoVault)
		}
	}
	id := f.Arg(0)
	if h, err := p.asAgent(gateway.FullProfile()); err == nil {
		o := p.promptOptions(h)
		o.Shell = true
		status, none := prompt.NothingWaits(ctx, o, id)
		if h.Close(); none { // nobody is asked for a key
			return statusError(status)
		}
	}
	o, end, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	defer end()
	o.Shell = true
	status, err := prompt.ApproveWaiting(ctx, o, id)
	if err == nil {
		err = statusError(status)
	}
	return err
}

// administrator opens the administrator's door until end, and says whose key that takes. It is
// for what shows a person on the terminal each thing and asks.
func (p *process) administrator(ctx context.Context) (o prompt.Options, end func(), err error) {
	s := p.system()
	open, whose := s.AdminOpener()
	if open == nil && p.asksHidden() { // init may have shown it once, and kept it nowhere
		typed, failed := terminal.ReadHidden(ctx, p.stdin, p.stderr, "The administrator's key: ")
		key := strings.TrimSpace(string(typed))
		if clear(typed); failed != nil && !errors.Is(failed, io.EOF) {
			return o, nil, failed
		}
		if key != "" {
			s.Getenv = func(name string) string {
				if name == vault.AdminKeyVar {
					return key
				}
				return p.getenv(name)
			}
			open, _ = s.AdminOpener()
			whose = "the one that you typed"
		}
	}
	if open == nil {
		return o, nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "The administrator's key was not found.",
			Hint: "Set POSTERN_ADMIN_KEY, POSTERN_ADMIN_KEY_FILE or POSTERN_ADMIN_KEY_COMMAND, as 'postern init' told, and run it again."}
	}
	h, err := p.house(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true}, Environment: true, Open: open})
	if err != nil {
		return o, nil, err
	}
	_ = setup.Show(p.stdout, fmt.Sprintf("You act as the administrator, whose key is %s.\n", whose))
	if _, err := open(ctx); err != nil { // a passphrase is asked for before a command has its time
		h.Close()
		if !errors.Is(err, context.Canceled) {
			err = faultOf(err)
		}
		return o, nil, err
	}
	return p.promptOptions(h), h.Close, nil
}
