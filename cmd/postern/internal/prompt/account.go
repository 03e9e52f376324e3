package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
)

// asked are the options that 'account edit' asks about where it has none: what a person
// changes after 'init', in their own words.
var asked = []struct {
	option, question string
	of               func(*admin.AccountDetail) string // what the account has
}{
	{"display-name", "Your name, as others see it", func(a *admin.AccountDetail) string { return a.DisplayName }},
	{"mode", "What may agents do?", func(a *admin.AccountDetail) string { return string(a.Mode) }},
	{"destroy", "May messages be deleted for good?", func(a *admin.AccountDetail) string { return a.Destroy }},
	{"codes", "What becomes of one-time codes?", func(a *admin.AccountDetail) string { return string(a.Codes) }},
}

func (c *conversation) removeAccount(ctx context.Context, name string) {
	r, ok := resultOf[admin.AccountShowResult](ctx, c, command("account", "show", name))
	if !ok {
		return
	}
	c.tell(fmt.Sprintf("Postern would forget the account %s (%s), its password and its rules. The mailbox stays as it is.", r.Account.Name, r.Account.Email))
	if !yes(c.typed(ctx, "y forgets it, anything else keeps it: ")) {
		c.status = discovery.ApprovalRequired.ExitStatus()
		c.tell("Nothing was changed.")
		return
	}
	c.show(c.do(ctx, command("account", "remove", name)))
}

func (c *conversation) editAccount(ctx context.Context, edit *discovery.Command, name string) {
	r, ok := resultOf[admin.AccountShowResult](ctx, c, command("account", "show", name))
	if !ok {
		return
	}
	c.tell("Enter keeps what stands in brackets. " + c.typedAs("help account edit") + " lists what else can be changed; " + c.typedAs("allow in") + " and " + c.typedAs("allow out") + " say whose mail agents see and whom they may write to.")
	tokens := []string{"account", "edit", name}
	for _, q := range asked {
		o := option(edit, "--"+q.option)
		if o == nil {
			continue
		}
		fmt.Fprintln(c.Stdout)
		c.tell(q.question)
		if len(o.Enum) > 0 {
			c.tell(o.Description + ".")
		}
		for {
			answer, err := c.read(ctx, fmt.Sprintf("%s [%s]: ", q.option, q.of(&r.Account)))
			if err != nil {
				fmt.Fprintln(c.Stdout)
				c.status = discovery.ApprovalRequired.ExitStatus()
				c.tell("Nothing was changed.")
				return
			}
			if answer = strings.TrimSpace(answer); answer == "" {
				break
			}
			if i := slices.IndexFunc(o.Enum, func(e string) bool { return strings.EqualFold(e, answer) }); i >= 0 {
				answer = o.Enum[i]
			} else if len(o.Enum) > 0 {
				c.tell("One of " + strings.Join(o.Enum, ", ") + ".")
				continue
			}
			tokens = append(tokens, "--"+q.option+"="+answer)
			break
		}
	}
	if len(tokens) == 3 {
		c.status = 0
		c.tell("Nothing was changed.")
		return
	}
	c.show(c.do(ctx, command(tokens...)))
}

func yes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
