package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

// askMode asks for the account's place on the ladder of modes.
func (w *wizard) askMode(ctx context.Context) error {
	d := &w.draft
	var choices []choice
	if !d.smtp.IsZero() {
		label := "Read, draft, and send what I approve; delete nothing for good"
		if d.protocol == mail.POP3 { // which has no folder for drafts
			label = "Read, and send what I approve; delete nothing for good"
		}
		choices = append(choices, choice{string(mail.Approve), label})
	}
	choices = append(choices, choice{string(mail.ReadOnly), "Only read"})
	if d.protocol == mail.IMAP {
		choices = append(choices, choice{string(mail.Draft), "Read, file and write drafts; send nothing"})
	}
	if !d.smtp.IsZero() {
		choices = append(choices, choice{string(mail.Reply), "Send what I approve, and answer people I name without asking me"},
			choice{string(mail.ReadWrite), "Send to those I allow, without asking me"})
	}
	mode, err := w.ask.Choose(ctx, "What may agents do with this account?", "Nothing of this deletes for good; 'postern account edit' changes it later.", choices)
	d.mode = mail.Mode(mode)
	return err
}

// sends reports whether agents may send at all.
func (w *wizard) sends() bool {
	return w.draft.mode == mail.Approve || w.draft.mode == mail.Reply || w.draft.mode == mail.ReadWrite
}

func (w *wizard) askRecipients(ctx context.Context) error {
	if !w.sends() {
		return nil
	}
	q := textQuestion{Title: "To whom may they write?", Proposed: "*", Check: entries,
		Help: "Addresses and @domains, separated by commas. * is everybody: you see each message before it leaves."}
	switch w.draft.mode {
	case mail.Reply:
		q.Help = "Addresses and @domains, separated by commas. * is everybody: you see first what is no answer to people you name."
	case mail.ReadWrite:
		q.Proposed, q.Empty = "", "nobody yet"
		q.Help = "Addresses and @domains, separated by commas; * is everybody. Empty: nobody yet."
	}
	list, err := w.ask.Text(ctx, q)
	w.AllowOut = SplitList(list)
	return err
}

// askKnown asks for the people that mode reply answers unasked.
func (w *wizard) askKnown(ctx context.Context) error {
	if w.draft.mode != mail.Reply {
		return nil
	}
	list, err := w.ask.Text(ctx, textQuestion{Title: "Whom may they answer without asking you?", Empty: "nobody yet", Check: entries,
		Help: "Addresses and @domains, separated by commas. Five plain answers an hour, and only to mail that your provider has verified. Empty: nobody yet."})
	w.Known = SplitList(list)
	return err
}

func (w *wizard) askDisplayName(ctx context.Context) (err error) {
	if !w.sends() {
		return nil
	}
	w.draft.displayName, err = w.ask.Text(ctx, textQuestion{Title: "Your name, as recipients see it", Help: "Empty: your address alone.", Empty: "your address alone", Check: func(s string) error {
		if len([]rune(s)) > 200 || strings.ContainsFunc(s, unicode.IsControl) {
			return errors.New("a name has at most 200 characters, all of which can be seen")
		}
		return nil
	}})
	return err
}

// askSenders asks for the inbound list, which hides others.
func (w *wizard) askSenders(ctx context.Context) error {
	list, err := w.ask.Text(ctx, textQuestion{Title: "Whose mail may they see?", Empty: "everybody's", Check: entries,
		Help: "Addresses and @domains, separated by commas; all else is hidden from them. Empty: everybody's."})
	w.AllowIn = SplitList(list)
	return err
}

// oneWord refuses white space and what cannot be seen.
func oneWord(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return errors.New("that is more than one word")
	}
	return nil
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
func (w *wizard) askKeys(ctx context.Context) error {
	chain := w.chain
	if there, err := w.exists(ctx); err != nil || there {
		return err
	}
	if !chain.Admin.IsZero() && !chain.Agent.IsZero() {
		return nil
	}
	keyring := w.keyringWorks(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	agent, in := InFile, "in a file"
	var choices []choice
	if keyring {
		agent, in = InKeyring, "in the keyring"
		choices = append(choices, choice{string(InKeyring), "Both in the system keyring"})
	}
	if chain.Admin.IsZero() {
		choices = append(choices, choice{string(Sealed), "The administrator's behind a passphrase; the agent's " + in})
	}
	choices = append(choices, choice{string(InFile), "Both in files that only you can read"},
		choice{string(ShownOnce), "Show me the administrator's key once; the agent's " + in})
	where, err := w.ask.Choose(ctx, "Where are the keys kept?", "The agent's key opens the vault to work with mail, the administrator's to change "+
		"accounts and rules, and to approve. An agent that can run programs can read every file that you "+
		"can read, but does not know a passphrase.", choices)
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
	return nil
}
