package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
)

// wizard asks a person for the values of the options, and then does the same as with
// options.
type wizard struct {
	*setup
	ask   asker
	draft draft
	typed struct{ incoming, smtp mail.Endpoint } // the servers before they were to be changed
}

// draft is the account as far as known; see compose.
type draft struct {
	name, email string
	found       *autoconfig.Settings
	protocol    mail.Protocol
	incoming    mail.Endpoint
	smtp        mail.Endpoint
	username    string
	auth        mail.Auth
	caFile      string
	oauth       mail.OAuth
	hasSecret   bool // of the OAuth client
	mode        mail.Mode
	displayName string
}

func (w *wizard) run(ctx context.Context) error {
	chain, accounts, err := w.begin(ctx)
	if err != nil || chain == nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		w.askAddress,
		w.askServers,
		func(ctx context.Context) error { return w.askName(ctx, accounts) },
		w.askLogin,
		w.tryUntilItWorks,
		w.askRules,
		func(ctx context.Context) error { return w.askKeys(ctx, chain) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	w.compose()
	question := "Add the account " + w.draft.name + "?"
	if there, _ := w.exists(); !there {
		question = "Make the vault " + w.Path + " and add the account " + w.draft.name + "?"
	}
	if yes, err := w.ask.Confirm(ctx, question, true); err != nil || !yes {
		if err == nil {
			w.ask.Say("Nothing was stored.")
		}
		return err
	}
	m, err := w.commit(ctx, chain)
	if err != nil {
		return err
	}
	return w.report(m)
}

// begin looks for a vault, its keys and its accounts. The chain is nil when the person
// does not want another account.
func (w *wizard) begin(ctx context.Context) (*keyChain, []mail.Account, error) {
	found, err := w.Keys(ctx)
	if err != nil {
		return nil, nil, err
	}
	chain := &keyChain{Keys: found}
	there, err := w.exists()
	if err != nil {
		return nil, nil, err
	}
	if !there {
		w.ask.Say("This sets up Postern: a vault for your mail account, and rules for the agents that may use it.\nNothing is stored before the last question. Ctrl-C ends at any point.")
		return chain, nil, nil
	}
	if chain.Admin.IsZero() {
		w.ask.Say("There is a vault already: " + w.Path)
		if chain.Admin, err = w.ask.Secret(ctx, "Administrator's key of the vault", "It is needed to add an account."); err != nil {
			return nil, nil, err
		}
	}
	accounts, err := w.accounts(ctx, chain)
	if err != nil {
		return nil, nil, err
	}
	text := "There is a vault already: " + w.Path
	for i := range accounts {
		text += "\n\n" + accountInWords(&accounts[i])
	}
	w.ask.Say(text)
	title := "Add another account?"
	if len(accounts) == 0 {
		title = "Add an account?"
	}
	yes, err := w.ask.Confirm(ctx, title, len(accounts) == 0)
	if err != nil {
		return nil, nil, err
	}
	if !yes {
		w.ask.Say("Nothing was changed.")
		return nil, nil, nil
	}
	return chain, accounts, nil
}

func (w *wizard) askAddress(ctx context.Context) error {
	email, err := w.ask.Text(ctx, textQuestion{Title: "Mail address", Help: "The address whose mail agents are to work with.", Check: func(s string) error {
		_, _, err := autoconfig.Split(s)
		return err
	}})
	if err != nil {
		return err
	}
	w.draft.email, w.draft.username, w.draft.mode = email, email, mail.ReadOnly
	w.draft.protocol, w.draft.auth = mail.IMAP, mail.AuthPassword
	_, domain, _ := autoconfig.Split(email)
	if mail.ProviderOf(domain) == nil {
		w.ask.Say("Looking for the servers of " + domain + ". Nothing but the domain is asked for.")
	}
	w.draft.found, err = w.Finder.Find(ctx, email)
	return err
}

// askServers shows the servers that were found, and asks for the others.
func (w *wizard) askServers(ctx context.Context) error {
	d, found := &w.draft, w.draft.found
	if p := found.Provider; p != nil {
		if len(p.Auth) == 0 {
			return &discovery.Fault{Code: discovery.ConfigError, Message: p.Note, Hint: "Use an account of another provider."}
		}
		w.ask.Say(p.Name + ". " + p.Note)
	}
	if found.Incoming.IsZero() && found.SMTP.IsZero() {
		w.ask.Say("No servers were found for this address. Your provider's help pages name them.")
		return w.typeServers(ctx)
	}
	text := "Found by " + plain.Line(strings.Join(found.Sources, " and ")) + ":\n  " + serversOf(found)
	if found.Username != d.email {
		text += "\n  login name " + plain.Line(found.Username)
	}
	if len(found.Foreign) > 0 {
		text += "\n\nServers outside your address's own domain: " + strings.Join(found.Foreign, ", ") + ".\nUse them only if you know that your mail is there: your password goes to them."
	}
	w.ask.Say(text)
	if found.Provider == nil || len(found.Foreign) > 0 {
		yes, err := w.ask.Confirm(ctx, "Use these servers?", len(found.Foreign) == 0)
		if err != nil {
			return err
		}
		if !yes {
			d.found = &autoconfig.Settings{Username: d.email}
			return w.typeServers(ctx)
		}
	}
	d.incoming, d.smtp, d.username = found.Incoming, found.SMTP, found.Username
	if found.Protocol != "" {
		d.protocol = found.Protocol
	}
	if !found.Complete() {
		w.ask.Say("That is not all: please fill in the rest.")
		return w.typeServers(ctx)
	}
	return nil
}

// typeServers asks for the missing servers.
func (w *wizard) typeServers(ctx context.Context) (err error) {
	d := &w.draft
	typed := w.typed // the failure is mostly a slip in the earlier input
	if d.incoming.IsZero() {
		kind, err := w.ask.Choose(ctx, "How is the mail read?", "", []choice{{string(mail.IMAP), "IMAP, with folders and search"}, {string(mail.POP3), "POP3, the inbox only"}})
		if err != nil {
			return err
		}
		d.protocol = mail.Protocol(kind)
		if d.incoming, err = w.typeServer(ctx, kind, "", typed.incoming, false); err != nil {
			return err
		}
	}
	if d.smtp.IsZero() {
		if d.smtp, err = w.typeServer(ctx, "smtp", "It sends mail. Leave it empty if nothing is ever to be sent.", typed.smtp, true); err != nil {
			return err
		}
	}
	d.username, err = w.ask.Text(ctx, textQuestion{Title: "Login name", Proposed: d.username})
	return err
}

// typeServer asks for the server of a service, which is imap, pop3 or smtp. before is the
// earlier answer.
func (w *wizard) typeServer(ctx context.Context, service, help string, before mail.Endpoint, optional bool) (e mail.Endpoint, err error) {
	proposed := before.Host
	if optional {
		proposed = "" // an empty answer is allowed here; with a proposal it would mean that
	}
	e.Host, err = w.ask.Text(ctx, textQuestion{Title: strings.ToUpper(service) + " server", Help: help, Proposed: proposed, Optional: optional, Check: func(s string) error {
		if len(s) > 253 || strings.ContainsAny(s, " /@:") {
			return errors.New("that is not a host name, such as imap.example.org")
		}
		return nil
	}})
	if err != nil || e.Host == "" {
		return mail.Endpoint{}, err
	}
	security, err := w.ask.Choose(ctx, "How is the connection protected?", "", []choice{{string(mail.TLS), "TLS from the beginning"}, {string(mail.StartTLS), "STARTTLS"}})
	if err != nil {
		return mail.Endpoint{}, err
	}
	e.Security = mail.Security(security)
	usual := mail.DefaultPort(service, e.Security)
	if e.Host == before.Host && e.Security == before.Security && before.Port != 0 {
		usual = before.Port
	}
	_, err = w.ask.Text(ctx, textQuestion{Title: "Port", Proposed: fmt.Sprint(usual), Check: func(s string) error {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return errors.New("a port is a number from 1 to 65535")
		}
		e.Port = uint16(n)
		return nil
	}})
	return e, err
}

func (w *wizard) askName(ctx context.Context, accounts []mail.Account) (err error) {
	there := func(name string) bool {
		return slices.ContainsFunc(accounts, func(a mail.Account) bool { return a.Name == name })
	}
	proposed := "default"
	for n := 2; there(proposed); n++ {
		proposed = fmt.Sprintf("account%d", n)
	}
	w.draft.name, err = w.ask.Text(ctx, textQuestion{Title: "Name of the account", Help: "It is what commands call it. 'default' is used when a command names none.", Proposed: proposed, Check: func(s string) error {
		switch {
		case !mail.ValidAccountName(s):
			return errors.New("a name has 1 to 64 letters, digits, - and _")
		case there(s):
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
	d.oauth.Provider = p.OAuth
	if d.oauth.ClientID, err = w.ask.Text(ctx, textQuestion{Title: "Client id", Help: "Of the desktop client that you registered with the provider. See " + p.HelpURL}); err != nil {
		return err
	}
	if d.hasSecret, err = w.ask.Confirm(ctx, "Has the client a secret, too?", p.OAuth == "google"); err != nil {
		return err
	}
	if d.hasSecret {
		if err := w.hold(ctx, "Client secret", ""); err != nil {
			return err
		}
	}
	if p.OAuth != "google" { // Google does not allow mail access by a device code
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
			text = append(text, f.Message, f.Hint)
		}
		bad := 0
		for _, c := range checks {
			mark := "works:  "
			if !c.OK {
				mark, bad = "FAILED: ", bad+1
			}
			text = append(text, mark+strings.TrimPrefix(c.Name, w.draft.name+" ")+". "+plain.Line(c.Detail))
			if !c.OK && c.Hint != "" {
				text = append(text, "        "+c.Hint)
			}
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

// mend asks what to change after a failed try.
func (w *wizard) mend(ctx context.Context, checks []check) error {
	d := &w.draft
	login, certificate, onlySMTP := len(checks) == 0, false, len(checks) > 1
	for _, c := range checks {
		if c.OK {
			continue
		}
		login = login || c.Code == discovery.AuthFailed
		certificate = certificate || strings.Contains(c.Detail, "certificate")
		onlySMTP = onlySMTP && strings.HasSuffix(c.Name, " smtp")
	}
	var choices []choice
	for _, o := range []struct {
		offered bool
		choice
	}{
		{certificate, choice{"ca", "Give the file of an authority to trust, for a server with its own"}},
		{login && d.auth == mail.AuthPassword, choice{"password", "Type the password again"}},
		{!certificate && !(login && d.auth == mail.AuthPassword), choice{"again", "Try again"}},
		{login, choice{"username", "Change the login name"}},
		{onlySMTP, choice{"unsent", "Go on without a server to send with"}},
		{true, choice{"servers", "Change the servers"}},
		{true, choice{"stop", "Stop; nothing is stored"}},
	} {
		if o.offered {
			choices = append(choices, o.choice)
		}
	}
	what, err := w.ask.Choose(ctx, "What now?", "", choices)
	if err != nil {
		return err
	}
	switch what {
	case "ca":
		d.caFile, err = w.ask.Text(ctx, textQuestion{Title: "File of certificates (PEM)", Check: func(s string) error {
			if _, err := os.Stat(s); err != nil {
				return errors.New("there is no such file")
			}
			return nil
		}})
		if err == nil {
			d.caFile, err = filepath.Abs(d.caFile)
		}
		return err
	case "password":
		return w.askPassword(ctx)
	case "username":
		d.username, err = w.ask.Text(ctx, textQuestion{Title: "Login name", Proposed: d.username})
		return err
	case "unsent":
		d.smtp = mail.Endpoint{}
	case "servers":
		w.typed.incoming, w.typed.smtp = d.incoming, d.smtp
		d.incoming, d.smtp, d.caFile = mail.Endpoint{}, mail.Endpoint{}, ""
		return w.typeServers(ctx)
	case "stop":
		w.ask.Say("Nothing was stored.")
		return errStopped
	}
	return nil
}
