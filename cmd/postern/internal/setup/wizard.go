package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
)

// wizard asks a person for the values of the options, and then does the same as with
// options.
type wizard struct {
	*setup
	ask   asker
	draft draft
	typed struct { // before it was to be changed
		email          string
		incoming, smtp mail.Endpoint
	}
	chain    *keyChain
	accounts []mail.Account // those that there are already
}

// draft is the account as far as known; see compose.
type draft struct {
	name, email string
	found       *autoconfig.Settings
	protocol    mail.Protocol
	incoming    mail.Endpoint
	smtp        mail.Endpoint
	typing      bool // the person types the servers that are missing, and the login name
	username    string
	auth        mail.Auth
	caFile      string
	oauth       mail.OAuth
	hasSecret   bool // of the OAuth client
	mode        mail.Mode
	displayName string
	client      Client // to connect; the zero Client for none
}

// errEnough says that the person wants nothing made.
var errEnough = errors.New("the person wants nothing made")

func (w *wizard) run(ctx context.Context) (err error) {
	defer func() {
		if errors.Is(err, context.Canceled) {
			w.ask.Say("Nothing was stored.")
		}
	}()
	err = w.walk(ctx, slices.Concat([]step{{do: w.begin}, {do: w.askAddress}, {do: w.askServers}}, w.serverSteps(), []step{{do: w.askUsername}, {do: w.askLogin}, {do: w.tryUntilItWorks, trial: true}, {do: w.askName},
		{do: w.askMode}, {do: w.askRecipients}, {do: w.askKnown}, {do: w.askDisplayName}, {do: w.askSenders}, {do: w.askKeys}, {do: w.askConnect}, {do: w.askAll}}), false)
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	w.compose()
	if there, err := w.exists(ctx); err != nil {
		return err
	} else if !there {
		if err := w.makeKeys(w.chain); err != nil {
			return err
		}
	}
	m, err := w.commit(ctx, w.chain)
	if err != nil {
		return err
	}
	return w.finish(m)
}

// step is one or more questions, or none.
type step struct {
	do    func(context.Context) error
	trial bool // nothing to come back to
}

// walk takes the steps in order. Where the person wants the question before, it begins a step
// in the middle of its questions again, else the last one before that asked something, with
// everything as it was then. Steps within a step have one before their first.
func (w *wizard) walk(ctx context.Context, steps []step, within bool) error {
	type place struct {
		step    int
		shown   int
		draft   draft
		options Options
	}
	var answered []place
	for i := 0; i < len(steps); {
		here, asked := place{i, w.ask.Shown(), w.draft, w.Options}, w.ask.Answered()
		err := steps[i].do(ctx)
		asked = w.ask.Answered() - asked
		switch {
		case errors.Is(err, errBack):
			n := len(answered) - 1
			if asked == 0 && n < 0 && within {
				return errBack
			}
			if asked == 0 && n >= 0 {
				here, answered = answered[n], answered[:n]
			}
			w.ask.TakeBack(here.shown)
			if asked == 0 && here.step == i {
				w.ask.Say("This is the first question.")
			}
			here.draft.caFile = w.draft.caFile // it stays right, and is tedious to find
			i, w.draft, w.Options = here.step, here.draft, here.options
			continue
		case err != nil:
			return err
		case steps[i].trial: // what was mended stays so
			login := &answered[len(answered)-1].draft
			login.incoming, login.smtp, login.username = w.draft.incoming, w.draft.smtp, w.draft.username
		case asked > 0:
			answered = append(answered, here)
		}
		i++
	}
	return nil
}

// begin looks for a vault, its keys and its accounts. The error is errEnough when the person
// does not want another account.
func (w *wizard) begin(ctx context.Context) error {
	found, err := w.Keys(ctx)
	if err != nil {
		return err
	}
	w.chain = &keyChain{Keys: found}
	there, err := w.exists(ctx)
	if err != nil {
		return err
	}
	way := "Nothing is stored before the last question. " + w.ask.WayBack() + " goes to the question before, Ctrl-C ends."
	if !there {
		w.ask.Say("This sets up Postern: a vault for your mail account, and rules for the agents that may use it. " + way)
		return nil
	}
	typed := w.chain.Admin.IsZero()
	if typed {
		w.ask.Say("There is a vault already: " + vault.Described(w.Path))
	}
	for {
		if typed {
			if w.chain.Admin, err = w.ask.Secret(ctx, "Administrator's key of the vault", "It is needed to add an account."); err != nil {
				return err
			}
		}
		w.accounts, err = w.existing(ctx, w.chain)
		if err == nil {
			break
		}
		if !typed || !errors.Is(err, vault.ErrWrongKey) {
			return err
		}
		w.ask.Say("That is not the key of this vault.")
	}
	text := "There is a vault already: " + vault.Described(w.Path)
	for i := range w.accounts {
		text += "\n\n" + accountInWords(&w.accounts[i])
	}
	w.ask.Say(text + "\n\n" + way)
	title := "Add another account?"
	if len(w.accounts) == 0 {
		title = "Add an account?"
	}
	yes, err := w.ask.Confirm(ctx, title, len(w.accounts) == 0)
	if err == nil && !yes {
		w.ask.Say("Nothing was changed.")
		return errEnough
	}
	return err
}

// askAll asks whether to store it all.
func (w *wizard) askAll(ctx context.Context) error {
	title := "Add the account " + w.draft.name
	if client := w.draft.client.Title; client != "" {
		title += " and connect " + client
	}
	if c := w.draft.client; c.Rules != "" {
		w.ask.Say("Rules that deny the tools of " + c.Title + " the vault and the keys are added to " + c.Rules + ".")
	}
	yes, err := w.ask.Confirm(ctx, title+"?", true)
	if err == nil && !yes {
		w.ask.Say("Nothing was stored.")
		return errEnough
	}
	return err
}

func (w *wizard) askAddress(ctx context.Context) error {
	email, err := w.ask.Text(ctx, textQuestion{Title: "Mail address", Help: "The address whose mail agents are to work with.", Proposed: w.typed.email, Check: func(s string) error {
		_, err := outbox.ParseAddress(s) // as 'account add' does
		return err
	}})
	if err != nil {
		return err
	}
	w.typed.email = email
	address, _ := outbox.ParseAddress(email)
	email = address.Addr
	w.draft = draft{name: w.freeName(), email: email, username: email, mode: mail.ReadOnly, protocol: mail.IMAP, auth: mail.AuthPassword}
	if _, domain, ok := autoconfig.Split(email); ok && mail.ProviderOf(domain) == nil {
		w.ask.Say("Looking for the servers of " + domain + ". Nothing but the domain is asked for.")
	}
	w.draft.found, err = w.Finder.Find(ctx, email)
	return err
}

// taken reports whether there is an account of that name.
func (w *wizard) taken(name string) bool {
	return slices.ContainsFunc(w.accounts, func(a mail.Account) bool { return a.Name == name })
}

// freeName is the name that is proposed. Beside other accounts one named default would become
// what commands mean that name none.
func (w *wizard) freeName() (name string) {
	if len(w.accounts) == 0 {
		return "default"
	}
	for n := len(w.accounts) + 1; name == "" || w.taken(name); n++ {
		name = fmt.Sprintf("account%d", n)
	}
	return name
}

func (w *wizard) askName(ctx context.Context) (err error) {
	help := "It is what commands call it."
	if len(w.accounts) == 0 {
		help += " A command that names none means 'default'."
	}
	w.draft.name, err = w.ask.Text(ctx, textQuestion{Title: "Name of the account", Help: help, Proposed: w.draft.name, Check: func(s string) error {
		switch {
		case !mail.ValidAccountName(s):
			return errors.New("a name has 1 to 64 letters, digits, - and _")
		case w.taken(s):
			return errors.New("there is an account of that name already")
		}
		return nil
	}})
	return err
}

// askLogin asks for the login method, where there is a choice, and its values.
func (w *wizard) askLogin(ctx context.Context) error {
	d := &w.draft
	provider := d.found.Provider
	if provider == nil || provider.OAuth == "" {
		return w.askPassword(ctx)
	}
	labels := map[mail.Auth]string{mail.AuthPassword: "App password, the simplest", mail.AuthOAuth2: "OAuth 2.0, with a client that you registered"}
	var choices []choice
	for _, a := range provider.Auth {
		choices = append(choices, choice{string(a), labels[a]})
	}
	chosen := choices[0].Value
	if len(choices) > 1 {
		var err error
		if chosen, err = w.ask.Choose(ctx, "How does Postern log in?", "", choices); err != nil {
			return err
		}
	}
	if d.auth = mail.Auth(chosen); d.auth == mail.AuthOAuth2 {
		return w.askClient(ctx, provider)
	}
	return w.askPassword(ctx)
}

func (w *wizard) askPassword(ctx context.Context) error {
	title, help := "Password", ""
	if p := w.draft.found.Provider; p != nil && p.AppPassword {
		title, help = "App password", "The password you log in to the provider's pages with does not work here. Get one at "+p.HelpURL
	}
	return w.hold(ctx, title, help)
}

// hold asks for a secret and holds it as if read from standard input.
func (w *wizard) hold(ctx context.Context, title, help string) error {
	s, err := w.ask.Secret(ctx, title, help)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.secrets["stdin"]
	old.Wipe()
	w.secrets["stdin"] = s
	return nil
}

// askClient asks for the OAuth 2.0 client.
func (w *wizard) askClient(ctx context.Context, p *mail.Provider) (err error) {
	d := &w.draft
	service := mail.OAuthServiceNamed(p.OAuth)
	d.oauth.Provider = service.Name
	if d.oauth.ClientID, err = w.ask.Text(ctx, textQuestion{Title: "Client id", Help: "Of the desktop client that you registered with the provider. See " + p.HelpURL, Check: oneWord}); err != nil {
		return err
	}
	if d.hasSecret, err = w.ask.Confirm(ctx, "Has the client a secret, too?", service.HasSecret); err != nil {
		return err
	}
	if d.hasSecret {
		if err := w.hold(ctx, "Client secret", ""); err != nil {
			return err
		}
	}
	if service.DeviceURL != "" {
		how, err := w.ask.Choose(ctx, "Where do you agree to the access?", "", []choice{{"browser", "In a browser on this machine"}, {"device", "On another device, by a code"}})
		if err != nil {
			return err
		}
		w.Device = how == "device"
	}
	return nil
}

// compose puts the draft into the options of account add.
func (w *wizard) compose() {
	d := &w.draft
	w.Account = []string{d.name}
	w.addEndpoint(string(d.protocol), d.incoming)
	w.addEndpoint("smtp", d.smtp)
	for _, o := range [][2]string{{"--email", d.email}, {"--username", d.username}, {"--protocol", string(d.protocol)}, {"--auth", string(d.auth)}, {"--mode", string(d.mode)},
		{"--ca-file", d.caFile}, {"--oauth-provider", d.oauth.Provider}, {"--oauth-client-id", d.oauth.ClientID}, {"--display-name", d.displayName}} {
		if o[1] != "" {
			w.add(o[0], o[1])
		}
	}
	w.addSentCopy(d.found, d.smtp)
	switch {
	case d.auth == mail.AuthPassword:
		w.add("--password-from", "stdin")
	case d.hasSecret:
		w.add("--oauth-client-secret-from", "stdin")
	}
}
