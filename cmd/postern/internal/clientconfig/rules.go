package clientconfig

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Guarded is what a client's own tools are to keep away from.
type Guarded struct {
	Program string   // the path of this program, which the tools are not to run
	Files   []string // absolute paths; longer names that begin with one are meant too, such as its backup's
	Dirs    []string // absolute paths, with everything below
}

// ruleFile is the JSON file of a client that has an array of deny rules in
// permissions.deny.
type ruleFile struct {
	location
	who   string // the part of the client that keeps to the rules
	only  bool   // only an existing file is changed: the client makes its own
	rules func(system string, g Guarded) []string
}

// permissions reads files of rules. Comments stay, whether the client documents them or not.
var permissions = jsonFormat{container: "permissions", comments: true}

var errRuleForm = errors.New("its permissions are in a form that is not changed here")

// RuleFile returns the file of the client's deny rules for all projects of the user, and
// the part of the client that keeps to them, such as "Claude Code". ok is false for a
// client without deny rules that can be written here.
func (c Client) RuleFile(getenv func(string) string) (file, who string, ok bool) {
	if c.deny == nil {
		return "", "", false
	}
	file, err := c.deny.userFile(runtime.GOOS, getenv)
	if err == nil && c.deny.only {
		_, err = os.Stat(file)
	}
	return file, c.deny.who, err == nil
}

// Rules returns the deny rules for what is guarded, in the client's form: none for a client
// without them, and none where a path has characters that a rule could read as a pattern.
func (c Client) Rules(g Guarded) []string {
	if c.deny == nil || len(g.Files) == 0 {
		return nil
	}
	return c.deny.rules(runtime.GOOS, g)
}

// PasteRules returns a file with only these rules in it, ending with a line end.
func PasteRules(rules []string) string {
	text, _ := setDenied(nil, nil, rules) // an empty text is always readable
	return string(text)
}

// Deny puts rules into the client's file of them at path, and takes former ones out that
// are not among them, unless the backup shows that they are the person's own. With no
// rules, a file in which nothing else was changed gets its original text, byte for byte,
// and is removed if Deny made it. changed is false where nothing was to do. The backup and
// the errors are those of Put.
func (c Client) Deny(path string, former, rules []string) (changed bool, err error) {
	f, err := read(path)
	if err != nil {
		return false, err
	}
	backup, backupErr := os.ReadFile(f.backup())
	own, there := denied(backup), denied(f.text)
	out := slices.DeleteFunc(slices.Clone(former), func(r string) bool { return slices.Contains(own, r) })
	after, err := setDenied(f.text, out, rules)
	if err != nil || bytes.Equal(after, f.text) {
		return false, err
	}
	if len(rules) == 0 && (backupErr == nil || errors.Is(backupErr, fs.ErrNotExist)) {
		if again, err := setDenied(backup, nil, former); err == nil && bytes.Equal(again, f.text) {
			after = backup // nil if Deny made the file
		}
	}
	first := !slices.ContainsFunc(former, func(r string) bool { return slices.Contains(there, r) })
	if err := f.replace(after, first); err != nil {
		return false, err
	}
	if backupErr == nil && len(rules) == 0 && bytes.Equal(after, backup) {
		_ = os.Remove(f.backup())
	}
	return true, nil
}

// denied returns the deny rules in a file; none if it cannot be read.
func denied(text []byte) (rules []string) {
	if d, err := permissions.read(text); err == nil {
		if list := member(member(&d.root, permissions.container), "deny"); list != nil {
			_ = decode(packed(list), &rules)
		}
	}
	return rules
}

// setDenied returns the text without the deny rules out and with the rules in.
func setDenied(text []byte, out, in []string) ([]byte, error) {
	if isBlank(text) {
		if len(in) == 0 {
			return text, nil
		}
		text = []byte("{}\n")
	}
	for {
		d, err := permissions.read(text)
		if err != nil {
			return nil, err
		}
		object := member(&d.root, permissions.container)
		list := member(object, "deny")
		switch {
		case object != nil && !isObject(object), list != nil && list.Value.Kind() != '[':
			return nil, errRuleForm
		case list != nil:
			d.setElements(list, out, in)
			return d.bytes(), nil
		case len(in) == 0:
			return text, nil
		case object == nil:
			d.add(&d.root, field{permissions.container, []field{{"deny", "[]"}}})
		default:
			d.add(object, field{"deny", "[]"})
		}
		text = d.bytes()
	}
}

// setElements takes texts out of an array and puts those in front of it that are missing.
// To leave the same white space and comments, it works on an object with these values.
func (d *document) setElements(list *hujson.Value, out, in []string) {
	a := list.Value.(*hujson.Array)
	o := &hujson.Object{AfterExtra: a.AfterExtra}
	for _, e := range a.Elements {
		o.Members = append(o.Members, hujson.ObjectMember{
			Name:  hujson.Value{BeforeExtra: e.BeforeExtra, Value: hujson.Literal(`""`)},
			Value: hujson.Value{Value: e.Value, AfterExtra: e.AfterExtra},
		})
	}
	index := func(rule string) int {
		return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return sameJSON(packed(&m.Value), []byte(quoteJSON(rule))) })
	}
	for _, rule := range out {
		if i := index(rule); i >= 0 && !slices.Contains(in, rule) {
			cut(o, i)
		}
	}
	for _, rule := range slices.Backward(in) { // each is added in front of the others
		if index(rule) < 0 {
			d.add(&hujson.Value{StartOffset: list.StartOffset, Value: o}, field{"", quoteJSON(rule)})
		}
	}
	a.Elements, a.AfterExtra = nil, o.AfterExtra
	for _, m := range o.Members {
		a.Elements = append(a.Elements, hujson.Value{BeforeExtra: m.Name.BeforeExtra, Value: m.Value.Value, AfterExtra: m.Value.AfterExtra})
	}
}

// literalPath is a path that means itself in a rule: no pattern, nothing to escape.
var literalPath = regexp.MustCompile(`\A(?:/[^/*?\[\]{}!#()\\[:cntrl:]]+)+\z`)

// rulePaths returns the paths of g as the patterns of rules, in the POSIX form, a drive
// as its letter; nil if one of them is no literalPath. A file has a rule for its own name
// besides the pattern, because a sandbox that takes rules over masks files by name.
func rulePaths(system string, g Guarded) (patterns []string) {
	for i, path := range append(slices.Clone(g.Files), g.Dirs...) {
		if system == "windows" {
			path = strings.ReplaceAll(path, `\`, "/")
			if len(path) > 1 && path[1] == ':' {
				path = "/" + strings.ToLower(path[:1]) + path[2:]
			}
		}
		if !literalPath.MatchString(path) {
			return nil
		}
		if i >= len(g.Files) {
			patterns = append(patterns, path+"/**")
			continue
		}
		patterns = append(patterns, path)
		if !slices.ContainsFunc(patterns, func(p string) bool { return strings.HasSuffix(p, "*") && strings.HasPrefix(path, p[:len(p)-1]) }) {
			patterns = append(patterns, path+"*")
		}
	}
	return patterns
}

// programNames are the words by which a shell starts this program.
func programNames(system string, g Guarded) []string {
	if system == "windows" {
		return []string{"postern", "postern.exe"}
	}
	if !literalPath.MatchString(g.Program) || strings.Contains(g.Program, " ") {
		return []string{"postern"}
	}
	return []string{"postern", g.Program}
}

// claudeRules are in the form of Claude Code: a path from the root begins with two
// slashes, and * in a command stands for any text.
func claudeRules(system string, g Guarded) (rules []string) {
	paths := rulePaths(system, g)
	if paths == nil {
		return nil
	}
	for _, path := range paths {
		rules = append(rules, "Read(/"+path+")")
	}
	shells := []string{"Bash"}
	if system == "windows" {
		shells = append(shells, "PowerShell")
	}
	for _, shell := range shells {
		for _, name := range programNames(system, g) {
			rules = append(rules, shell+"("+name+" *)")
		}
		rules = append(rules, shell+"(*POSTERN_ADMIN_KEY*)")
	}
	switch system { // the tools that print what a keyring holds
	case "darwin":
		rules = append(rules, "Bash(security *postern*)")
	case "linux":
		rules = append(rules, "Bash(secret-tool *postern*)")
	}
	return rules
}

// cursorRules are in the form of Cursor's command line: of a command, its first word. Its
// documentation does not say how a path on Windows is written.
func cursorRules(system string, g Guarded) (rules []string) {
	paths := rulePaths(system, g)
	if paths == nil || system == "windows" {
		return nil
	}
	for _, path := range paths {
		rules = append(rules, "Read("+path+")")
	}
	for _, name := range programNames(system, g) {
		rules = append(rules, "Shell("+name+")")
	}
	return rules
}
