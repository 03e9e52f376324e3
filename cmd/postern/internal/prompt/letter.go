package prompt

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/discovery"
)

// letter is what a person writes: fields on top, an empty line, and the text.
type letter struct {
	fields []string // those it has, in order
	values map[string]string
	text   string

	command []string // what sends it, without what was written
	account string   // which it leaves from, where no field says that; empty for the usual one
	quoted  string   // the end of the text, as it began
	below   string   // what follows the text when it leaves, to be said
	named   bool     // the recipients were named with the word, and need not be asked for
}

func newLetter(command []string, fields ...string) *letter {
	return &letter{fields: fields, values: map[string]string{}, command: command}
}

// drafts reports whether the letter can be kept as a draft and not be sent.
func (l *letter) drafts() bool { return l.command[1] == "draft" }

// format is the letter as the editor gets it.
func (l *letter) format() string {
	var b strings.Builder
	for _, f := range l.fields {
		b.WriteString(strings.TrimRight(f+": "+screen.Line(l.values[f]), " ") + "\n")
	}
	return b.String() + "\n" + l.text
}

// parse reads what the editor left.
func (l *letter) parse(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("it is not in UTF-8; have the editor save it so")
	}
	s = strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r\n", "\n")
	values, last := map[string]string{}, ""
	for s != "" {
		var line string
		if line, s, _ = strings.Cut(s, "\n"); strings.TrimSpace(line) == "" {
			break
		}
		if last != "" && strings.TrimLeft(line, " \t") != line {
			values[last] += " " + strings.TrimSpace(line)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		i := l.field(name)
		if text := line + "\n" + s; i < 0 && last != "" && !strings.HasSuffix(values[last], ",") && l.isText(text) {
			s = text // it was typed where the empty line was
			break
		}
		if !ok || i < 0 {
			return fmt.Errorf("the line %q is none of %s, and text begins below an empty line", line, strings.Join(l.fields, ", "))
		}
		if last = l.fields[i]; values[last] != "" {
			value = values[last] + ", " + value
		}
		values[last] = strings.TrimSpace(value)
	}
	l.values, l.text = values, strings.Trim(s, "\n")
	return nil
}

// field is the place of a name among the fields; -1 for none.
func (l *letter) field(name string) int {
	return slices.IndexFunc(l.fields, func(f string) bool { return strings.EqualFold(f, strings.TrimSpace(name)) })
}

// likeField is how a field begins, also one that a letter has not, such as Bcc; firstWord may be
// one without its colon.
var (
	likeField = regexp.MustCompile(`^[\pL-]+[\s\pZ]*:`)
	firstWord = regexp.MustCompile(`^\pL+`)
)

// isText reports whether what follows the fields without an empty line is text. Where it may be a
// field that is mistyped, or was broken, such as what begins with an address, the person is to say.
func (l *letter) isText(s string) bool {
	first, _, _ := strings.Cut(s, "\n")
	name, _, colon := strings.Cut(first, ":")
	near := discovery.Nearest(strings.ReplaceAll(name, " ", ""), l.fields, 1)
	if likeField.MatchString(s) || strings.Contains(first, "@") || colon && len(near) > 0 || l.field(firstWord.FindString(s)) >= 0 {
		return false
	}
	for line := range strings.Lines(s) {
		name, _, field := strings.Cut(line, ":")
		if strings.TrimSpace(line) == "" {
			break
		}
		if field && l.field(name) >= 0 {
			return false
		}
	}
	return true
}

// addresses takes a field apart.
func addresses(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	parsed, err := (&mail.AddressParser{}).ParseList(value)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be read as addresses, such as ann@example.org: put a comma between them, and a name with a comma in double quotes", value)
	}
	var list []string
	for _, a := range parsed {
		if a.Name == "" {
			list = append(list, a.Address)
		} else {
			list = append(list, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name)+`" <`+a.Address+`>`)
		}
	}
	return list, nil
}

// tokens is the command that sends the letter. What does not fit into a command is staged;
// remove takes it away again.
func (l *letter) tokens(ctx context.Context, stage func(context.Context, string) (string, func(), error), extra ...string) (tokens []string, remove func(), err error) {
	var removes []func()
	remove = func() {
		for _, r := range removes {
			r()
		}
	}
	tokens = slices.Concat(l.command, extra)
	add := func(option string, list []string) {
		for i, s := range list {
			list[i] = strings.ReplaceAll(s, ",", `\,`)
		}
		if len(list) > 0 {
			tokens = append(tokens, option+strings.Join(list, ","))
		}
	}
	for _, f := range []string{"To", "Cc"} {
		list, err := addresses(l.values[f])
		if err != nil {
			return nil, remove, fmt.Errorf("%s: %w", f, err)
		}
		add("--"+strings.ToLower(f)+"=", list)
	}
	if s := l.values["Subject"]; s != "" {
		tokens = append(tokens, "--subject="+s)
	}
	files, err := fileNames(l.values["Attach"])
	for i, file := range files {
		var gone func()
		if files[i], gone, err = stage(ctx, atHome(file)); err != nil {
			break
		}
		removes = append(removes, gone)
	}
	if err != nil {
		return nil, remove, fmt.Errorf("attach: %w", err)
	}
	add("--attach=", files)
	return append(tokens, "--body="+l.text), remove, nil
}

// check says what is wrong with what was typed for a field.
func check(field, value string) error {
	switch field {
	case "To", "Cc":
		_, err := addresses(value)
		return err
	case "Attach":
		files, err := fileNames(value)
		for _, file := range files {
			if info, missing := os.Stat(atHome(file)); err == nil && (missing != nil || !info.Mode().IsRegular()) {
				err = fmt.Errorf("there is no file %q", file)
			}
		}
		return err
	}
	return nil
}

// fileNames takes apart names with commas between them; one with a comma stands in double quotes.
func fileNames(value string) (list []string, err error) {
	r := csv.NewReader(strings.NewReader(value))
	r.TrimLeadingSpace, r.LazyQuotes = true, true
	if list, err = r.Read(); errors.Is(err, io.EOF) {
		return nil, nil
	}
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" }), err
}

// atHome is a file name in which ~ stands for the home directory.
func atHome(file string) string {
	rest, ok := strings.CutPrefix(file, "~/")
	if home, err := os.UserHomeDir(); ok && err == nil {
		return filepath.Join(home, rest)
	}
	return file
}
