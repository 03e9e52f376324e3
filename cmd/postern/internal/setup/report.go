package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/vault"
)

// report prints the result: the vault, its keys, the rules in plain words, and
// how to go on.
func (s *setup) report(m *made) error {
	var b strings.Builder
	fmt.Fprintf(&b, "policy fingerprint   %s\n", m.Fingerprint)
	s.tellMade(&b, m)
	if len(m.accounts) == 0 {
		fmt.Fprintf(&b, "\nNext, on a terminal:\n    postern init\nOr, where %s is set:\n    postern init NAME --email ADDRESS --password-from stdin\n", vault.AdminKeyVar)
		return Show(s.Stdout, b.String())
	}
	b.WriteString("\n")
	entry, err := s.ClientEntry(m.Fingerprint, profileFor(m.accounts))
	if s.tellConnect(&b, m, err); err == nil {
		fmt.Fprintf(&b, " For any other, paste this into its configuration:\n\n%s", entry)
	}
	b.WriteString("\n")
	s.tellNext(&b, m)
	return Show(s.Stdout, b.String())
}

// finish prints the result, connects the client that was chosen, and says how to go on.
func (w *wizard) finish(m *made) error {
	var b strings.Builder
	w.tellMade(&b, m)
	w.ask.Say(strings.TrimSpace(b.String()))
	b.Reset()
	if !w.connect(m) {
		_, failed := w.ClientEntry(m.Fingerprint, profileFor(m.accounts))
		if w.tellConnect(&b, m, failed); failed == nil {
			b.WriteString(" For any other, this prints what to paste:\n    postern install cursor " + profileOption(m.accounts) + " --print\n")
		}
		b.WriteString("\n")
	}
	w.tellNext(&b, m)
	return Show(w.Stdout, b.String())
}

// askConnect asks which client to connect, with what was chosen for the accounts.
func (w *wizard) askConnect(ctx context.Context) error {
	clients := w.Clients()
	help := "It gets " + Offers(profileFor(append(slices.Clip(w.accounts), mail.Account{Mode: w.draft.mode}))) + "."
	var found, others []choice
	for _, c := range clients {
		if c.Found {
			found = append(found, choice{c.Name, c.Title})
		} else {
			others = append(others, choice{c.Name, c.Title + ", which was not found here"})
		}
	}
	name, err := w.ask.Choose(ctx, "Connect a client?", help, slices.Concat(found, []choice{{"", "None now"}}, others))
	w.draft.client = Client{}
	if i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name }); i >= 0 {
		w.draft.client = clients[i]
	}
	return err
}

// connect connects the client that was chosen, and reports whether there is one.
func (w *wizard) connect(m *made) bool {
	if w.draft.client.Name == "" {
		return false
	}
	err := w.Connect(w.draft.client.Name, m.Fingerprint, profileFor(m.accounts))
	if err == nil {
		fmt.Fprintln(w.Stdout)
		return true
	}
	text := sentence(err) + "."
	if f, ok := errors.AsType[*discovery.Fault](err); ok {
		text = f.Message + " " + f.Hint
	}
	w.ask.Say(text)
	return false
}

// Offers says in words what a client gets with a profile, which is full or read-only.
func Offers(profile string) string {
	if profile == "full" {
		return "every command, and your rules decide what each may do"
	}
	return "only the commands that read"
}

// tellMade tells of the vault, the keys and the accounts.
func (s *setup) tellMade(b *strings.Builder, m *made) {
	state := "made"
	if !m.Created {
		state = "there already, unchanged"
		if s.Account != nil {
			state = "there already"
		}
	}
	fmt.Fprintf(b, "vault                %s (%s)\n", m.Path, state)
	for i := range m.keys {
		k := &m.keys[i]
		label := map[string]string{"admin": "administrator's key", "agent": "agent's key"}[k.role]
		where := k.file
		switch k.place {
		case ShownOnce:
			where = k.secret.Reveal() + "\n                     It is shown this once and kept nowhere: put it into a password manager now."
		case Sealed:
			where += ", sealed with your passphrase"
		case InKeyring:
			where = "in the system keyring; " + k.file + " names it"
		}
		fmt.Fprintf(b, "%-19s  %s\n", label, where)
	}
	for i := range m.accounts {
		fmt.Fprintf(b, "\n%s\n", accountInWords(&m.accounts[i]))
	}
	if m.fallback != "" {
		fmt.Fprintf(b, "\nA command that names no account means %s: 'config set default_account' changes that.\n", m.fallback)
	}
}

// tellConnect says how a client is connected with what was chosen, or why there is no entry
// for one.
func (s *setup) tellConnect(b *strings.Builder, m *made, failed error) {
	if failed != nil {
		fmt.Fprintf(b, "To connect a client: %s.\n", sentence(failed))
		return
	}
	var names []string
	for _, c := range s.Clients() {
		names = append(names, c.Name)
	}
	fmt.Fprintf(b, "To connect a client, which then gets %s:\n    postern install %s %s\nThe clients are %s.", Offers(profileFor(m.accounts)), names[0], profileOption(m.accounts), strings.Join(names, ", "))
}

// profileOption is how 'postern install' is told the profile.
func profileOption(accounts []mail.Account) string {
	if profile := profileFor(accounts); profile != "read-only" {
		return "--profile " + profile
	}
	return "--read-only"
}

// tellNext says what to do now.
func (s *setup) tellNext(b *strings.Builder, m *made) {
	form, kept := s.adminForm()
	how, asks := "", ""
	if !kept {
		how, asks = ", in a file that you alone may read", ", which asks for the key"
	}
	if runtime.GOOS == "windows" {
		form = "set " + strings.ReplaceAll(form, "'", "")
	} else {
		if width, _ := terminal.Size(s.Stdout); terminal.Is(s.Stdout) && len("    "+form+` \`) > width {
			name, value, _ := strings.Cut(form, "=")
			form = "key=" + value + "\n    " + name + "=$key"
		}
		form += " \\"
	}
	fmt.Fprintf(b, "To see or change accounts and rules, give the administrator's key to that command only%s, such as:\n    %s\n    postern account show %s\n\n", how, form, m.accounts[0].Name)
	b.WriteString("ask your agent       what came today?\nlook yourself        postern repl\n")
	if slices.ContainsFunc(m.accounts, func(a mail.Account) bool { return rights(&a).MaySend() && rights(&a).NeedsApproval() }) {
		b.WriteString("decide what leaves   postern approve" + asks + "\n")
	}
	b.WriteString("add an account       postern init\n")
}

// adminForm returns how to give a command the administrator's key; kept is false where no file
// has it. The key itself is never on a command line, of which a shell keeps a history.
func (s *setup) adminForm() (form string, kept bool) {
	for _, form := range []string{"_FILE", "_COMMAND"} {
		if v := s.Getenv(vault.AdminKeyVar + form); v != "" {
			return vault.AdminKeyVar + form + "=" + shellWord(v), true
		}
	}
	if _, err := os.Stat(s.AdminKeyFile); err == nil {
		file := shellWord(s.AdminKeyFile)
		if below, ok := strings.CutPrefix(file, s.Getenv("HOME")+"/"); ok && below != file[1:] {
			file = "~/" + below // which fits more windows
		}
		return vault.AdminKeyVar + "_FILE=" + file, true
	}
	return vault.AdminKeyVar + "_FILE=FILE", false
}

// shellWord quotes a word for a shell where it needs that.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+:@%,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// profileFor returns the profile that a client is offered by default: full only
// where a rule allows changes.
func profileFor(accounts []mail.Account) string {
	for _, a := range accounts {
		if rights(&a).MayFile() {
			return "full"
		}
	}
	return "read-only"
}

// rights is the account's policy; one that cannot be made allows nothing.
func rights(a *mail.Account) *mail.Policy {
	p, _ := mail.CompilePolicy(a)
	return p
}

// accountInWords says what an account may be used for.
func accountInWords(a *mail.Account) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Account %s (%s)\n", a.Name, plain.Line(a.Email))
	visible := "every message in every folder"
	if a.AllowIn.Enabled {
		visible = "only messages from " + listed(slices.Concat(a.AllowIn.Entries, a.AllowIn.Verified)) + "; all others are hidden from them"
	}
	if a.SubjectPattern != "" {
		visible += ", where the subject matches " + a.SubjectPattern
	}
	fmt.Fprintf(&b, "  Agents see      %s.\n", visible)
	changes := "nothing: they cannot flag, move or delete anything"
	switch p := rights(a); {
	case p.MayDestroy() && p.DestroyNeedsApproval():
		changes = "flags and folders of what they see, and may delete it for good after you approved that"
	case p.MayDestroy():
		changes = "flags and folders of what they see, and may delete it for good"
	case p.MayFile():
		changes = "flags and folders of what they see, and may put it into the trash"
	}
	fmt.Fprintf(&b, "  They change     %s.\n", changes)
	fmt.Fprintf(&b, "  They write to   %s.\n", recipients(a))
	fmt.Fprintf(&b, "  The password    %s; agents never see it.", map[mail.Auth]string{
		mail.AuthPassword: "is sealed in the vault", mail.AuthKeyring: "is in the system keyring",
		mail.AuthHelper: "comes from a program each time", mail.AuthOAuth2: "is not needed: the vault holds the consent you gave"}[a.Auth])
	return b.String()
}

func recipients(a *mail.Account) string {
	p := rights(a)
	switch {
	case !p.MayFile():
		return "nobody: the account is read-only"
	case !p.MaySend():
		return "nobody: they write drafts, and you send them"
	case a.SMTP.IsZero():
		return "nobody: the account has no server to send with"
	case a.AllowOut.Enabled && len(a.AllowOut.Entries) == 0:
		return "nobody, until you allow somebody with 'allow out add'"
	}
	whom := "everybody"
	if a.AllowOut.Enabled {
		whom = listed(a.AllowOut.Entries)
	}
	switch {
	case p.RepliesUnasked():
		if known := slices.DeleteFunc(slices.Concat(a.AllowIn.Entries, a.AllowIn.Verified), func(e string) bool { return e == "*" }); len(known) > 0 {
			whom += ", after you approved it; some answers to " + listed(known) + " go unasked"
		} else {
			whom += ", each message after you approved it, until 'allow in add' names whom they may answer unasked"
		}
	case p.NeedsApproval():
		whom += ", each message after you approved it"
	}
	return whom
}

func listed(entries []string) string {
	if len(entries) == 0 {
		return "nobody"
	}
	words := make([]string, len(entries))
	for i, e := range entries {
		switch {
		case e == "*":
			return "everybody"
		case strings.HasPrefix(e, "@"):
			words[i] = "anybody at " + e[1:]
		default:
			words[i] = e
		}
	}
	return strings.Join(words, ", ")
}

// serversOf names the servers that were found.
func serversOf(f *autoconfig.Settings) string {
	var names []string
	for _, e := range []struct {
		what string
		mail.Endpoint
	}{{strings.ToUpper(string(f.Protocol)), f.Incoming}, {"SMTP", f.SMTP}} {
		if !e.IsZero() {
			protection := map[mail.Security]string{mail.TLS: "TLS", mail.StartTLS: "STARTTLS", mail.Plaintext: "unprotected"}[e.Security]
			names = append(names, fmt.Sprintf("%s %s (%s)", e.what, e.Address(), protection))
		}
	}
	return strings.Join(names, ", ")
}
