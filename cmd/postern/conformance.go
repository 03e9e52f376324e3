package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/conformance"
)

// Exit statuses of conformance, beside 0.
const (
	exitFindings   = 1
	exitUsage      = 2
	exitNotStarted = 3
)

// conformance judges an ACLI server, ours or another's. No vault and no key are
// needed.
func (p *process) conformance(ctx context.Context, args []string) error {
	f := p.flags("conformance", "[flags] -- COMMAND [ARGS…]  |  [flags] --url URL")
	address := f.String("url", "", "judge the server at this address (streamable HTTP) instead of a program")
	token := f.String("token-from", "", "send a bearer token with --url: env:NAME or file:PATH")
	level, category, suite := "full", "", "acli"
	choose(f, &level, "level", "ask the cases of this level and those below: minimal, standard or full", "minimal", "standard", "full")
	choose(f, &category, "category", "ask only this category: parser, security, discovery or response", "parser", "security", "discovery", "response")
	choose(f, &suite, "suite", "ask this suite: acli, mail or all", "acli", "mail", "all")
	asJSON := f.Bool("json", false, "write the report as JSON")
	junit := f.String("junit", "", "write the report as JUnit XML to this file, too")
	list := f.Bool("list", false, "list the cases and stop")
	strict := f.Bool("strict", false, "count advice as failure")
	baseline := f.String("baseline", "", "file of known failures: a JSON object of case ids and reasons")
	var o conformance.Options
	one := func(s string) []string { return []string{s} }
	f.BoolVar(&o.AllowEffects, "allow-effects", false, "also run commands that are not known to be harmless: only on a server where nothing can be lost")
	f.BoolVar(&o.Exhaustive, "exhaustive", false, "test an argument that several commands share with each of them")
	f.DurationVar(&o.StepTimeout, "step-timeout", 10*time.Second, "time for each answer")
	f.StringVar(&o.Tool, "tool", "cli", "name of the tool that takes commands, where it is another than the specification's")
	limit := f.Duration("timeout", 15*time.Minute, "time for the whole run")
	repeated(f, &o.Harmless, "harmless", "path of a command that changes nothing, * for any characters; may be repeated", one)
	repeated(f, &o.Never, "never", "path of a command that is not to be run in any case; may be repeated", one)
	repeated(f, &o.IDs, "case", "ask only this case, * for any characters; may be repeated", one)
	if err := parse(f, args, 0, 1000); err != nil {
		return err
	}
	usage := func(format string, args ...any) error {
		fmt.Fprintf(p.stderr, "postern: "+format+"\n", args...)
		return exitStatus(exitUsage)
	}
	o.Level, o.Category, o.Suite = conformance.Level(titled(level)), conformance.Category(titled(category)), suite
	switch {
	case o.StepTimeout <= 0 || *limit <= 0:
		return usage("a time must be longer than zero")
	}
	if *baseline != "" {
		b, err := house.ReadSmallFile(*baseline)
		if err != nil {
			return usage("the baseline cannot be read: %v", err)
		}
		if o.Baseline, err = conformance.ReadBaseline(b); err != nil {
			return usage("%v", err)
		}
	}
	cases, err := o.Select()
	if err != nil {
		return usage("%v", err)
	}
	if len(cases) == 0 {
		return usage("no case is chosen; --list shows them")
	}
	if *list {
		return p.listCases(cases, *asJSON)
	}
	target, err := p.conformanceTarget(ctx, *address, *token, f.Args())
	if err != nil {
		return usage("%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	report, err := conformance.Run(ctx, target, &o)
	switch {
	case errors.Is(err, conformance.ErrNotStarted):
		fmt.Fprintf(p.stderr, "postern: %v\n", err)
		return exitStatus(exitNotStarted)
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(p.stderr, "postern: the run was stopped after %s; --timeout gives it more\n", *limit)
	case err != nil:
		return err
	}
	if *junit != "" {
		var b bytes.Buffer
		if err := conformance.WriteJUnit(&b, report, *strict); err != nil {
			return err
		}
		if err := os.WriteFile(*junit, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if *asJSON {
		if err := p.printJSON(report); err != nil {
			return err
		}
	} else if err := conformance.WriteTable(p.stdout, report, *strict); err != nil {
		return err
	}
	if err != nil || !report.OK(*strict) {
		return exitStatus(exitFindings)
	}
	return nil
}

// titled writes a word of the command line as the cases have it.
func titled(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
}

func (p *process) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (p *process) listCases(cases []*conformance.Case, asJSON bool) error {
	if asJSON {
		return p.printJSON(cases)
	}
	for _, c := range cases {
		each := ""
		if c.For != nil {
			each = "  (each " + c.For.Each + ")"
		}
		if _, err := fmt.Fprintf(p.stdout, "%-34s %-6s %-9s %-10s %-7s %s%s\n", c.ID, c.Clause, c.Level, c.Category, c.Strength, c.Title, each); err != nil {
			return err
		}
	}
	return nil
}

// conformanceTarget is the server that the command line names.
func (p *process) conformanceTarget(ctx context.Context, address, token string, command []string) (conformance.Target, error) {
	switch {
	case address == "" && len(command) == 0:
		return nil, errors.New("no server is named: give its command after --, or --url URL")
	case address != "" && len(command) > 0:
		return nil, errors.New("both a URL and a command are given: give one")
	case address == "" && token != "":
		return nil, errors.New("--token-from needs --url: a program finds its secrets itself")
	case address == "":
		return &conformance.Command{Args: command, Env: p.environ, Stderr: p.stderr}, nil
	}
	h := &conformance.HTTP{URL: address}
	if token != "" {
		if kind, name, _ := strings.Cut(token, ":"); name == "" || kind != "env" && kind != "file" {
			return nil, errors.New("--token-from is env:NAME or file:PATH")
		}
		secret, err := p.readSecret(ctx, nil, token)
		if err != nil {
			return nil, fmt.Errorf("the token cannot be read: %w", err)
		}
		if h.Token = strings.TrimSpace(secret.Reveal()); h.Token == "" {
			return nil, errors.New("the token is empty")
		}
	}
	return h, h.Check()
}
