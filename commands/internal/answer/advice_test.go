package answer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

var must = testmain.Must

// Every advice that mail can give has words, and words for nothing else are kept.
func TestEveryAdviceHasWords(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", "mail", "advice.go"), nil, 0)
	must(t, err)
	given := map[mail.Advice]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			given[mail.Advice(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))] = true
		}
		return true
	})
	for a := range given {
		if advices[a].words == "" {
			t.Errorf("the advice %s has no words", a)
		}
	}
	for a := range advices {
		if !given[a] {
			t.Errorf("the advice %s is never given", a)
		}
	}
}

// An untyped string would pass for an Advice: no sentence stands where one is expected.
func TestErrorsOfMailCarryNoSentenceAsAdvice(t *testing.T) {
	for _, dir := range []string{"", "login", "mailbox", "outbox"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "mail", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			must(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				name := ""
				switch f := call.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				at, takes := map[string]int{"Invalid": 1, "Conflict": 1, "Unsupported": 1, "invalid": 1, "cannot": 1, "notPOP3": 1, "credentialError": 3}[name]
				if _, literal := call.Args[min(at, len(call.Args)-1)].(*ast.BasicLit); takes && literal {
					t.Errorf("%s in mail/%s is given a string as its advice", name, dir)
				}
				return true
			})
		}
	}
}

func TestAHintSendsNobodyToACommandThatDoesNotExist(t *testing.T) {
	none := func(string) bool { return false }
	for a, as := range advices {
		e := &mail.Error{Account: "work", Detail: "m1", Advice: a}
		if as.needs != "" && strings.Contains(hint(e, none), "'"+as.needs) {
			t.Errorf("%s: %s", a, hint(e, none))
		}
		if h := FaultsWhere(none)(e).Hint; !strings.HasSuffix(h, ".") || strings.ContainsAny(h, "{}") {
			t.Errorf("%s: %s", a, h)
		}
	}
	e := &mail.Error{Account: "work", Advice: mail.AdviceVerify}
	if h := hint(e, none); h != "Check that the server can be reached." {
		t.Error(h)
	}
}

// TestAMissingNameIsAnsweredWithNearOnes, of folders at any level and of accounts.
func TestAMissingNameIsAnsweredWithNearOnes(t *testing.T) {
	known := []string{"INBOX", "Sent", "Archive", "Archive/2025/Invoices", "Projects/Été", "My list", "Spam.Old"}
	for missing, want := range map[string]string{
		"sent": "Did you mean Sent? ", "Inbx": "Did you mean INBOX? ", "invoices": "Did you mean Archive/2025/Invoices? ", "Invoice": "Did you mean Archive/2025/Invoices? ",
		"archive.2025.invoices": "Did you mean Archive/2025/Invoices? ", "Projects/Ete": "Did you mean 'Projects/Été'? ", "été": "Did you mean 'Projects/Été'? ", "my-list": "Did you mean 'My list'? ", "INBOX/Sent": "Did you mean Sent? ",
		"old": "Did you mean Spam.Old? ", "Arch": "Did you mean Archive or Archive/2025/Invoices? ", "nothing like it": "", "": "", "/": "",
	} {
		o := mail.Operation{Op: "mail list", Account: "work"}
		e := o.Failure(mail.KindNotFound, "examine", "There is no such folder.", mail.AdviceFolders)
		e.Missing, e.Known = missing, known
		if got := Faults(e).Hint; got != want+"Run 'mail folders' to list the folders." {
			t.Errorf("%q: %q", missing, got)
		}
	}
	for name, want := range map[string]string{"wrok": "Did you mean work? ", "WORK": "Did you mean work? ", "zzz": ""} {
		if got := Faults(&mail.NoAccount{Name: name, Known: []string{"home", "work"}}).Hint; got != want+"Run 'mail accounts' to list the accounts." {
			t.Errorf("%q: %q", name, got)
		}
	}
	if got := Faults(&mail.NoAccount{Name: "all", Known: []string{"home", "work"}}).Message; got != "This command works on one account, not on all." {
		t.Errorf("all: %q", got)
	}
}

func TestALostConnectionSaysWhenToTryAgain(t *testing.T) {
	o := mail.Operation{Op: "mail list", Account: "work"}
	for _, c := range []struct {
		kind      mail.Kind
		retryable bool
		wait      time.Duration
		want      string
	}{
		{mail.KindConnection, true, 40 * time.Second, "It is worth trying again in 40 s. "},
		{mail.KindConnection, true, 5100 * time.Millisecond, "It is worth trying again in 6 s. "},
		{mail.KindCertificate, false, 0, ""},
		{mail.KindTimeout, true, 0, ""},
	} {
		e := o.Failure(c.kind, "connect", "The mail server could not be reached.", mail.AdviceVerify)
		e.Retryable, e.Wait = c.retryable, c.wait
		if got := Faults(e).Hint; got != c.want+"Check that the server can be reached; 'mail verify' shows what works." {
			t.Errorf("%s: %q", c.kind, got)
		}
	}
}
