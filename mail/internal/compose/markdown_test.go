package compose

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/markdown"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/servertest"
)

// markdownVocabulary holds what Markdown acts on, beside what a text may have.
var markdownVocabulary = append([]string{"# ", "**", "*", "`", "```", "\n\n", "- ", "1. ", "[a](https://example.org)", "![b](http://example.org/b.png)", "<b>", "<!--", "|a|b|\n|-|-|\n", "&#x202e;", "&lt;", "\u2028", "javascript:"}, bodyVocabulary...)

// TestPythonReadsWhatWasWritten builds messages with and without Markdown. Python reads what
// was written, finds no defect, the same text, files and fields with Markdown, and HTML that
// was made of exactly the text that it read.
func TestPythonReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	all := samples()
	maps.Copy(all, oddities(t))
	r := rand.New(rand.NewPCG(11, 23))
	var plain, marked []*Message
	var built []*Built
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		plain = append(plain, all[name])
	}
	random := 80
	if testing.Short() {
		random = 8 // Python takes milliseconds for each
	}
	for range random {
		m := sample()
		m.Body, m.Quoted = text(r, markdownVocabulary, 60), text(r, markdownVocabulary, 30)
		plain = append(plain, m)
	}
	var wires [][]byte
	for _, m := range plain {
		with := *m
		with.Markdown = true
		marked = append(marked, &with)
		for _, one := range []*Message{m, &with} {
			b, err := Build(one)
			must(t, err)
			checkLines(t, one, b)
			built, wires = append(built, b), append(wires, b.Wire)
		}
	}
	read := servertest.ReadAllPython(t, wires)
	for i, m := range marked {
		without, with := read[2*i], read[2*i+1]
		if i < len(names) {
			t.Run(names[i], func(t *testing.T) { checkPython(t, plain[i], built[2*i], without) })
		}
		utf8 := slices.ContainsFunc(slices.Concat([]Address{m.From}, m.To, m.CC), func(a Address) bool { return !isASCII(a.Addr) })
		if len(with.Defects) > 0 && !utf8 {
			t.Errorf("defects %q", with.Defects)
		}
		if with.Body != without.Body || with.Shown != without.Shown || with.Subject != without.Subject || len(with.Files) != len(without.Files) {
			t.Errorf("with HTML %+v\nwithout %+v", with, without)
		}
		for j, f := range with.Files {
			if f != without.Files[j] {
				t.Errorf("file %+v, without HTML %+v", f, without.Files[j])
			}
		}
		if _, ok := markdown.Made(with.Body, with.HTML); !ok || without.HTML != "" {
			t.Errorf("the HTML\n%s\nwas not made of %q", with.HTML, with.Body)
		}
		if own := strings.TrimRight(m.Body, "\r\n"); m.Quoted != "" && (strings.Count(with.HTML, "<div") != 1 || own != "" && !strings.Contains(with.Body, "\n\n")) {
			t.Errorf("the quote is not apart in\n%s\n%s", with.Body, with.HTML)
		}
		e := message.Parse(wires[2*i+1])
		alternative := e.Root
		if len(m.Attachments) > 0 {
			alternative = e.Root.Children[0]
		}
		if alternative.Subtype != "alternative" || len(alternative.Children) != 2 || alternative.Children[0].Subtype != "plain" || alternative.Children[1].Subtype != "html" {
			t.Errorf("the parts are not a text and its HTML:\n%s", wires[2*i+1])
		}
		again, err := Build(m)
		must(t, err)
		if !bytes.Equal(again.Wire, wires[2*i+1]) {
			t.Error("the same message gave other bytes")
		}
	}
}

// A text that Markdown refuses is refused, and not sent without HTML.
func TestMarkdownRefused(t *testing.T) {
	m := sample()
	m.Markdown, m.Body = true, strings.Repeat("> ", 1000)
	if _, err := Build(m); err == nil || err.Error() != "Body: its Markdown has over 64 levels" {
		t.Errorf("%v", err)
	}
}
