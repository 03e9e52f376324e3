package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

// askRules asks what agents may do. The proposals allow the least.
func (w *wizard) askRules(ctx context.Context) error {
	d := &w.draft
	choices := []choice{{"read", "Read, and nothing else"}}
	if d.protocol == mail.IMAP {
		choices = append(choices, choice{"change", "Read, flag, file, put into the trash, write drafts; send nothing"})
	}
	if !d.smtp.IsZero() {
		choices = append(choices, choice{"approve", "All that, and send what you have approved, message by message"},
			choice{"reply", "All that, and answer people whom you name without asking each time"}, choice{"send", "All that, and send to whom you allow"})
	}
	may, err := w.ask.Choose(ctx, "What may agents do with this account?", "You can change it later with 'account edit', which also allows deleting for good.", choices)
	if err != nil {
		return err
	}
	d.mode = map[string]mail.Mode{"read": mail.ReadOnly, "change": mail.Draft, "approve": mail.Approve, "reply": mail.Reply, "send": mail.ReadWrite}[may]
	if d.mode == mail.Approve || d.mode == mail.Reply || d.mode == mail.ReadWrite {
		help := "Addresses and @domains, separated by commas; * is everybody. Empty: nobody yet."
		switch d.mode {
		case mail.Approve:
			help = "Addresses and @domains, separated by commas. Empty: everybody, since you see each message first."
		case mail.Reply:
			help = "Addresses and @domains, separated by commas. Empty: everybody, since you see first what is no answer to people you know."
		}
		list, err := w.ask.Text(ctx, textQuestion{Title: "To whom may they write?", Optional: true, Check: entries, Help: help})
		if err != nil {
			return err
		}
		w.AllowOut = SplitList(list)
		if d.mode == mail.Reply {
			if list, err = w.ask.Text(ctx, textQuestion{Title: "Whom may they answer without asking you?", Optional: true, Check: entries,
				Help: "Addresses and @domains, separated by commas. Five plain answers an hour, and only to\nmail that your provider has verified. Empty: nobody yet."}); err != nil {
				return err
			}
			w.Known = SplitList(list)
		}
		if d.displayName, err = w.ask.Text(ctx, textQuestion{Title: "Your name, as recipients see it", Optional: true, Check: func(s string) error {
			if len([]rune(s)) > 200 {
				return errors.New("it is longer than 200 characters")
			}
			return nil
		}}); err != nil {
			return err
		}
	}
	list, err := w.ask.Text(ctx, textQuestion{Title: "Whose mail may they see?", Optional: true, Check: entries,
		Help: "Addresses and @domains, separated by commas. Empty: everybody's."})
	w.AllowIn = SplitList(list)
	return err
}

// entries checks entries of an allow-list.
func entries(line string) error {
	for _, e := range SplitList(line) {
		if _, err := mail.ValidateEntry(e); err != nil {
			return fmt.Errorf("%s cannot be used: %w", plain.Line(e), err)
		}
	}
	return nil
}

// askKeys asks where to keep the new keys.
func (w *wizard) askKeys(ctx context.Context, chain *keyChain) error {
	if there, err := w.exists(); err != nil || there {
		return err
	}
	if !chain.Admin.IsZero() && !chain.Agent.IsZero() {
		return nil
	}
	keyring := w.keyringWorks(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	agent := InFile
	var choices []choice
	if keyring {
		agent = InKeyring
		choices = append(choices, choice{string(InKeyring), "Both in the system keyring"})
	}
	if chain.Admin.IsZero() {
		choices = append(choices, choice{string(Sealed), "The administrator's behind a passphrase; the agent's in the " + string(agent)})
	}
	choices = append(choices, choice{string(InFile), "Both in files that only you can read"},
		choice{string(ShownOnce), "Show me the administrator's key once; the agent's in the " + string(agent)})
	where, err := w.ask.Choose(ctx, "Where are the keys kept?", "The agent's key opens the vault to work with mail, the administrator's to change\n"+
		"accounts and rules. Programs that run as you, and so agents that run programs, can\n"+
		"read what only you can read; a passphrase they do not know.", choices)
	if err != nil {
		return err
	}
	w.AdminKey, w.AgentKey = KeyPlace(where), KeyPlace(where)
	if where == string(ShownOnce) || where == string(Sealed) {
		w.AgentKey = agent
	}
	if where == string(Sealed) {
		if err := w.askPassphrase(ctx); err != nil {
			return err
		}
	}
	return w.makeKeys(chain)
}
