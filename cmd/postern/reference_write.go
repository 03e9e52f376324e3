package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/postern-mail/postern/discovery"
)

// writeMarkdown writes the page docs/commands.md.
func writeMarkdown(w io.Writer, r *discovery.Registry) error {
	var b bytes.Buffer
	shared := commonArguments(r)
	b.WriteString("# Commands\n\nWritten by `postern reference`; `postern help` says the same of each command.\n\nEvery command takes these options too:\n\n")
	markdownArguments(&b, shared)
	for _, c := range r.Commands() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.", c.Path, markdown(c.Summary))
		if c.Details != "" {
			b.WriteString(" " + markdown(c.Details))
		}
		fmt.Fprintf(&b, "\n\n```\n%s\n```\n\nEffect: %s, %s.", c.Usage(), c.Effect, effects[c.Effect])
		if len(c.Aliases) > 0 {
			fmt.Fprintf(&b, " Also answers to `%s`.", strings.Join(c.Aliases, "`, `"))
		}
		b.WriteString("\n")
		if arguments := ownArguments(c, shared); len(arguments) > 0 {
			b.WriteString("\n")
			markdownArguments(&b, arguments)
		}
		b.WriteString("\n```console\n")
		for _, e := range c.Examples {
			fmt.Fprintf(&b, "postern> %s\n", e)
		}
		b.WriteString("```\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func markdownArguments(b *bytes.Buffer, arguments []*discovery.Argument) {
	b.WriteString("| argument | what it is | bounds |\n| --- | --- | --- |\n")
	for _, a := range arguments {
		d := describe(a)
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", d.label, markdown(d.meaning), markdown(d.bounds))
	}
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`")

func markdown(s string) string { return markdownEscapes.Replace(s) }

// writeManual writes postern(1) with the man macros, which groff and mandoc read.
func writeManual(w io.Writer, r *discovery.Registry) error {
	var b bytes.Buffer
	b.WriteString(".TH POSTERN 1 \"\" \"Postern\" \"User Commands\"\n" +
		".SH NAME\npostern \\- the door between a person's mail and agents\n" +
		".SH SYNOPSIS\n.B postern\n.I VERB\n[\n.I arguments\n]\n.br\n.B postern\n.I COMMAND\n[\n.I arguments\n]\n" +
		".SH VERBS\n.nf\n")
	for _, part := range usage {
		for _, row := range part.Rows {
			fmt.Fprintf(&b, "%s\n", manual(fmt.Sprintf("%-30s %s", row[0], row[1])))
		}
	}
	b.WriteString(".fi\n")
	shared := commonArguments(r)
	b.WriteString(".SH COMMON OPTIONS\nEvery command takes these.\n")
	manualArguments(&b, shared)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range r.Commands() {
		fmt.Fprintf(&b, ".SS %s\n%s.", manual(c.Path), manual(c.Summary))
		if c.Details != "" {
			b.WriteString("\n" + manual(c.Details))
		}
		fmt.Fprintf(&b, "\n.PP\nEffect: %s, %s.\n", c.Effect, manual(effects[c.Effect]))
		manualArguments(&b, ownArguments(c, shared))
		b.WriteString(".PP\n.nf\n")
		for _, e := range c.Examples {
			b.WriteString("\\fBpostern " + manual(e) + "\\fR\n")
		}
		b.WriteString(".fi\n")
	}
	b.WriteString(".SH EXIT STATUS\n" +
		"0 success, 2 usage, 3 configuration, 4 login, 5 not found, 6 permission or approval, 7 rate limit, 8 connection or time\\-out (also where a check of doctor or mail verify failed; 4 where only logins did), 9 conflict, 1 the rest.\n" +
		".SH ENVIRONMENT\n")
	for _, v := range variables {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", manual(v.name), manual(v.meaning))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func manualArguments(b *bytes.Buffer, arguments []*discovery.Argument) {
	for _, a := range arguments {
		d := describe(a)
		fmt.Fprintf(b, ".TP\n.B %s\n%s", manual(d.label), manual(d.meaning))
		if d.bounds != "" {
			b.WriteString(" (" + manual(d.bounds) + ")")
		}
		b.WriteString("\n")
	}
}

var manualEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "…", "...", "\n", "\n\\&")

// manual escapes what roff does not read as text, also at the beginning of a line.
func manual(s string) string { return `\&` + manualEscapes.Replace(s) }

// variables are the environment variables.
var variables = []struct{ name, meaning string }{
	{"POSTERN_DB", "The vault's file, or the address of its database: postgres://…"},
	{"POSTERN_KEY, POSTERN_KEY_FILE, POSTERN_KEY_COMMAND", "The agent's key: its value, a file, or a program that prints it."},
	{"POSTERN_ADMIN_KEY, POSTERN_ADMIN_KEY_FILE, POSTERN_ADMIN_KEY_COMMAND", "The administrator's key, likewise."},
	{"POSTERN_POLICY_PIN", "The fingerprint of the key that signs the rules; a vault whose rules another key signed is refused."},
	{"POSTERN_ATTACHMENTS", "The directory that attachments are saved below and files are sent from."},
	{"POSTERN_EXTENSIONS", "The directory of extensions; else extensions beside the vault."},
	{"POSTERN_HISTORY", "The file that keeps the history of the prompt, or off."},
	{"POSTERN_AGENT_IDENTITY", "Whom this process is in the agent mailbox."},
	{"AGENT_MAIL_DB", "A vault of its own for the agent mailbox."},
	{"MAIL_IMAP_<ACCOUNT>_HOST, _PORT, _SECURE, _USER, _PASS", "An account of this process alone."},
	{"MAIL_IMAP_WRITE_ENABLED", "Lets mailboxes of such accounts be changed."},
	{"VISUAL, EDITOR, PAGER", "The programs for letters and for long texts."},
	{"NO_COLOR", "Set to anything: no emphasis on a terminal."},
	{"ACCESSIBLE", "Set to 1: questions line by line."},
}
