package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// accountsAtOnce bounds the accounts that one command works on at a time.
const accountsAtOnce = 50

// accounts resolves the option: the names, one at least, and whether they are all because
// it says so. An account named all stands against that. It notes the option for the audit
// entry.
func (d *Deps) accounts(ctx context.Context, call *discovery.Call, o argument.AccountsOption) (names []string, all bool, err error) {
	if o.OnAll() {
		accounts, err := d.Store.Accounts(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, a := range accounts {
			names = append(names, a.Name)
		}
		switch {
		case len(names) == 0:
			return nil, false, argument.ErrNoAccountYet
		case !slices.Contains(names, argument.AllAccounts):
			call.Account = argument.AllAccounts
			return names, true, nil
		}
	}
	name, err := d.account(ctx, call, argument.AccountOption(o))
	return []string{name}, false, err
}

// eachAccount runs do for every account, several at a time, and returns the results in the
// order of the names. An account that fails is an Issue that names it; when all fail, the
// error is that of the first. With several accounts do has a little less time than ctx, so
// that a server that does not answer costs nothing of the others.
func eachAccount[R any](ctx context.Context, names []string, do func(ctx context.Context, account string) (R, error)) (results []R, issues []answer.Issue, err error) {
	within := ctx
	if len(names) > 1 {
		var cancel context.CancelFunc
		within, cancel = mail.Sooner(ctx)
		defer cancel()
	}
	got, failed, panicked := make([]R, len(names)), make([]error, len(names)), make([]any, len(names))
	var running sync.WaitGroup
	places := make(chan struct{}, accountsAtOnce)
	for i, name := range names {
		running.Go(func() {
			places <- struct{}{}
			defer func() { panicked[i] = recover(); <-places }()
			got[i], failed[i] = do(within, name)
		})
	}
	running.Wait()
	for i, e := range failed {
		if panicked[i] != nil {
			panic(panicked[i]) // where the gateway expects it
		}
		if e == nil {
			results = append(results, got[i])
		} else {
			issues = append(issues, accountIssue(names[i], e))
		}
	}
	switch {
	case ctx.Err() != nil && (len(results) == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded)):
		return nil, nil, ctx.Err()
	case len(results) == 0:
		return nil, nil, failed[0]
	}
	return results, issues, nil
}

// accountIssue is the failure of one of several accounts.
func accountIssue(account string, err error) answer.Issue {
	i := answer.Issue{Code: discovery.ExecutionError, Stage: "account", Message: "It failed."}
	if f := answer.Faults(err); f != nil {
		i.Code, i.Message = f.Code, f.Message
	}
	var e *mail.Error
	if errors.As(err, &e) {
		i.Stage, i.Retryable = e.Stage, e.Retryable
	}
	i.Message = fmt.Sprintf("Account %s: %s", account, i.Message)
	return i
}
