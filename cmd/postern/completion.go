package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/clientconfig"
	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault"
)

// completeVerb is the hidden verb that the scripts of 'postern completion' call with
// the words of a command line, the last of which is being written and may be empty.
const completeVerb = "complete-words"

// The scripts know no command: each asks completeVerb.
var (
	//go:embed completion/postern.bash
	bashCompletion string
	//go:embed completion/postern.zsh
	zshCompletion string
	//go:embed completion/postern.fish
	fishCompletion string
)

var completionScripts = map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}

const completionSynopsis = `bash|zsh|fish

Prints what makes a shell complete this program's command lines with Tab. For bash in
~/.bashrc, for zsh in ~/.zshrc behind compinit, for fish in ~/.config/fish/config.fish:

  source <(postern completion bash)
  source <(postern completion zsh)
  postern completion fish | source
`

// completion prints a shell's script.
func (p *process) completion(_ context.Context, args []string) error {
	f := p.flags("completion", completionSynopsis)
	if err := parse(f, args, 1, 1); err != nil {
		return err
	}
	script, ok := completionScripts[f.Arg(0)]
	if !ok {
		return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("There is no completion for %q.", f.Arg(0)),
			Hint: "The shells are " + strings.Join(shells(), ", ") + "."}
	}
	_, err := io.WriteString(p.stdout, script)
	return err
}

func shells() []string { return slices.Sorted(maps.Keys(completionScripts)) }

var errVaultClosed = errors.New("completion opens no vault")

// completeWords prints one proposal a line. It opens no vault and fetches no key, since
// that may ask a person something: accounts, folders and ids are known at the prompt
// alone. An error is not reported: the line is still being written.
func (p *process) completeWords(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{""}
	}
	last := len(args) - 1
	for _, w := range p.wordsFor(ctx, args[:last], args[last]) {
		if strings.ContainsAny(w, "\n\r") {
			continue
		}
		if _, err := fmt.Fprintln(p.stdout, w); err != nil {
			return err
		}
	}
	return nil
}

// wordsFor proposes what the word behind others may become.
func (p *process) wordsFor(ctx context.Context, before []string, word string) []string {
	mute := &process{getenv: p.getenv, self: p.self, stdin: p.stdin, stdout: io.Discard, stderr: io.Discard, log: slog.New(slog.DiscardHandler)}
	h, err := mute.house(house.Plan{
		Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true}, // the person at the shell may have the key
		Open:       func(context.Context) (*vault.Vault, error) { return nil, errVaultClosed },
		Extensions: house.BesideVault,
	})
	if err != nil {
		return nil
	}
	defer h.Close()
	c := prompt.NewCompleter(commandDoor(h))
	verbs := mute.verbs()
	if len(before) == 0 {
		list := c.Words("")
		for verb := range verbs {
			if verb != completeVerb && !strings.Contains(verb, " ") && !slices.Contains(list, verb) {
				list = append(list, verb)
			}
		}
		slices.Sort(list)
		return prompt.StartingWith(word, append(list, "--help", "--version"))
	}
	run, rest := mute.verb(before)
	if run == nil || before[0] == "agent" { // whose words are commands
		list := c.Propose(ctx, before, word)
		for verb := range verbs {
			if second, ok := strings.CutPrefix(verb, strings.Join(before, " ")+" "); ok && strings.HasPrefix(second, word) {
				list = append(list, second)
			}
		}
		return list
	}
	// A verb that is asked for its flags makes them, and does nothing else.
	if err := run(ctx, []string{"-h"}); !errors.Is(err, flag.ErrHelp) || mute.flagged == nil {
		return nil
	}
	var list []string
	switch rest, open := behindFlags(mute.flagged, rest); {
	case open != nil:
		list = choices(open)
	case slices.Contains(rest, "--"): // another program's
	case len(rest) > 0 && before[0] == "init": // the account's name, then the options of account add
		return c.Propose(ctx, append([]string{"account", "add"}, rest...), word)
	case strings.HasPrefix(word, "-"):
		list = flagWords(mute.flagged, word)
	case len(rest) > 0:
	case before[0] == "install" || before[0] == "uninstall":
		list = clientconfig.Names()
	case before[0] == "completion":
		list = shells()
	default:
		list = flagWords(mute.flagged, word)
	}
	return prompt.StartingWith(word, list)
}

// behindFlags takes the flags and their values away from a verb's arguments, and tells
// which flag the last of them leaves without its value.
func behindFlags(f *flag.FlagSet, args []string) (rest []string, open *flag.Flag) {
	for i, a := range args {
		switch {
		case open != nil:
			open = nil
			continue
		case a == "--":
			return append(rest, args[i:]...), nil
		case len(rest) > 0 && f.Name() == "init", !strings.HasPrefix(a, "-"):
			rest = append(rest, a)
		case !strings.Contains(a, "="):
			if g := f.Lookup(strings.TrimLeft(a, "-")); g != nil && !isSwitch(g) {
				open = g
			}
		}
	}
	return rest, open
}

func isSwitch(g *flag.Flag) bool {
	b, ok := g.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func choices(g *flag.Flag) []string {
	if c, ok := g.Value.(*oneOf); ok {
		return c.words
	}
	return nil
}

// flagWords are the flags of a verb, or the values of the one that the word gives one.
func flagWords(f *flag.FlagSet, word string) (list []string) {
	if name, _, attached := strings.Cut(word, "="); attached {
		if g := f.Lookup(strings.TrimLeft(name, "-")); g != nil {
			for _, v := range choices(g) {
				list = append(list, name+"="+v)
			}
		}
		return list
	}
	f.VisitAll(func(g *flag.Flag) { list = append(list, "--"+g.Name) })
	return list
}
