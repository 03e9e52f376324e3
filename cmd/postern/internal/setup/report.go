package setup

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/vault"
)

// report prints the result: the vault, its keys, the rules in plain words, and
// how to go on.
func (s *setup) report(m *made) error {
	var b strings.Builder
	state := "made"
	if !m.Created {
		state = "there already, unchanged"
		if s.Account != nil {
			state = "there already"
		}
	}
	fmt.Fprintf(&b, "vault               %s (%s)\npolicy fingerprint  %s\n", m.Path, state, m.Fingerprint)
	for i := range m.keys {
		k := &m.keys[i]
		label := map[string]string{"admin": "administrator's key", "agent": "agent's key"}[k.role]
		where := "in " + k.file
		switch k.place {
		case ShownOnce:
			where = k.secret.Reveal() + "\n                    It is shown this once and kept nowhere: put it into a password manager now."
		case Sealed:
			where += ", sealed with your passphrase"
		case InKeyring:
			where = "in the system keyring; " + k.file + " names it"
		}
		fmt.Fprintf(&b, "%-19s %s\n", label, where)
	}
	if len(m.accounts) == 0 {
		fmt.Fprintf(&b, "\nNext: postern init, on a terminal; or, where %s is set:\n  postern init NAME --email ADDRESS --password-from stdin\n", vault.AdminKeyVar)
	}
	for i := range m.accounts {
		fmt.Fprintf(&b, "\n%s\n", accountInWords(&m.accounts[i]))
	}
	if len(m.accounts) > 0 {
		s.tellHow(&b, m)
	}
	_, err := io.WriteString(s.Stdout, b.String())
	return err
}

// tellHow says how the administrator changes rules and how a client is connected.
func (s *setup) tellHow(b *strings.Builder, m *made) {
	form, command := s.adminForm(), "postern account show "+m.accounts[0].Name
	if runtime.GOOS == "windows" {
		form = "set " + strings.ReplaceAll(form, "'", "") + "\n "
	}
	fmt.Fprintf(b, "\nTo see or change accounts and rules, give the administrator's key to that command only, such as:\n  %s %s\n", form, command)
	profile, option := profileFor(m.accounts), ""
	if profile != "read-only" {
		option = " --profile " + profile
	}
	entry, err := s.ClientEntry(m.Fingerprint, profile)
	if err != nil {
		fmt.Fprintf(b, "\nTo connect a client: %s.\n", sentence(err))
		return
	}
	fmt.Fprintf(b, "\nTo connect a client: postern install claude-code%s (or claude-desktop, cursor, vscode, codex)\nOr paste this into its configuration:\n\n%s\n", option, entry)
}

// adminForm returns how to give a command the administrator's key.
func (s *setup) adminForm() string {
	for _, form := range []string{"_FILE", "_COMMAND"} {
		if v := s.Getenv(vault.AdminKeyVar + form); v != "" {
			return vault.AdminKeyVar + form + "=" + shellWord(v)
		}
	}
	if _, err := os.Stat(s.AdminKeyFile); err == nil {
		return vault.AdminKeyVar + "_FILE=" + shellWord(s.AdminKeyFile)
	}
	return vault.AdminKeyVar + "=..."
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
		whom += ", after you approved it; some answers to people on the inbound list go unasked"
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
