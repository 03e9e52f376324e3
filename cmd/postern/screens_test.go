package main

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// No view of any command breaks a word, cuts an id, a cause or a hint, or shows bytes: what a
// window of any width shows are the words of one without end. Only the names and subjects of a
// list may be cut, and what others wrote is broken where it is wider than the window.
func TestNoViewBreaksAWord(t *testing.T) {
	t.Parallel() // it waits for mail and for servers that are none
	h := demoHouse(t)
	id, shown := "", read(t, "testdata/shown.txt")
	ids := regexp.MustCompile(`"(?:outbox|plan)_id":"([a-z0-9]+)"|outbox as ([a-z0-9]+)`)
	look := func(line string) {
		line = strings.ReplaceAll(line, "{id}", id)
		a := h.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "admin", Admin: true}, Line: line, Full: true})
		if m := ids.FindStringSubmatch(string(a.JSON)); m != nil {
			id = m[1] + m[2]
		}
		wantWhole(t, line, a)
	}
	for line := range strings.Lines(shown) {
		if line[0] != '#' {
			look(strings.TrimSuffix(line, "\n"))
		}
	}
	for _, c := range h.Registry.Commands() {
		if !strings.Contains(shown, "\n"+c.Path) {
			t.Errorf("the test does not look at %s", c.Path)
		}
		look("help " + c.Path)
		look(c.Path + " --nope")
	}
	look("nonsense")
	for _, width := range []int{40, 80, 160} {
		look := screen.Look{Width: width}
		wantSameWords(t, "the program's page", width, look.Page(about, usage...), screen.Look{Width: 9999}.Page(about, usage...))
	}
}

// wantWhole draws an answer in windows of several widths.
func wantWhole(t *testing.T, line string, a gateway.Answer) {
	t.Helper()
	draw := func(width int, shell ...string) string {
		return screen.Look{Width: width, Zone: time.UTC, Quote: discovery.Quote, Shell: shell, ID: func(id string) string { return shortID(id, false) }}.Render(a)
	}
	wide, wideInShell := draw(9999), draw(9999, "mail", "outbox")
	data := a.Data
	if a.Data = nil; draw(9999) != wide && !fromJSON.MatchString(line) {
		t.Errorf("%s has no view of what it returns any more", line)
	}
	a.Data = data
	var bytes struct {
		Source  []byte `json:"raw_source_base64"`
		Content []byte `json:"content_base64"`
	}
	_ = json.Unmarshal(a.Data, &bytes) // another answer has none
	if b := base64.StdEncoding.EncodeToString(append(bytes.Source, bytes.Content...)); b != "" && strings.Contains(strings.ReplaceAll(wide, "\n", ""), b[:min(40, len(b))]) {
		t.Errorf("%s shows bytes:\n%s", line, wide)
	}
	for _, width := range []int{40, 80, 160} {
		wantSameWords(t, line, width, draw(width), wide)
		wantSameWords(t, line, width, draw(width, "mail", "outbox"), wideInShell)
	}
}

var (
	fromJSON  = regexp.MustCompile(`^(schema|mail code|vault rekey|account authorize|agent (send|status|read|ack|cleanup))`)
	firstCell = regexp.MustCompile(`(?m)^(?:[N ][* ][@ ] )?(\d+|[a-z0-9]{16}|\S+/\d+)  `)
	ofOthers  = regexp.MustCompile(`(?m)^ *(│|>|\|)( .*)?$|^─+$`)
	whole     = regexp.MustCompile(`(?m)^  postern( \S+)+$`)
	toCopy    = regexp.MustCompile(`^(  |Read one: |Save one: )(postern )?[a-z]+ `)
)

func wantSameWords(t *testing.T, line string, width int, shown, wide string) {
	t.Helper()
	list := strings.HasPrefix(line, "mail list") || strings.HasPrefix(line, "mail search") || strings.HasPrefix(line, "mail watch") || strings.HasPrefix(line, "mail thread") || strings.HasPrefix(line, "outbox list")
	has := func(s string) []string { return strings.Fields(ofOthers.ReplaceAllString(s, "")) }
	all, here := has(wide), has(shown)
	must := all
	if list {
		must = nil
		for _, m := range firstCell.FindAllStringSubmatch(wide, -1) {
			must = append(must, m[1])
		}
	}
	for _, w := range here {
		if !slices.Contains(all, w) && !(list && strings.HasSuffix(w, "…")) {
			t.Errorf("%s in %d columns breaks or cuts %q:\n%s", line, width, w, shown)
			break
		}
	}
	for _, w := range must {
		if !slices.Contains(here, w) {
			t.Errorf("%s in %d columns leaves out %q:\n%s", line, width, w, shown)
			break
		}
	}
	for _, l := range whole.FindAllString(wide, -1) {
		if !strings.Contains("\n"+shown, "\n"+l+"\n") {
			t.Errorf("%s in %d columns breaks the command %q:\n%s", line, width, l, shown)
		}
	}
	for l := range strings.Lines(shown) {
		if l = strings.TrimSuffix(l, "\n"); runewidth.StringWidth(l) > width && !toCopy.MatchString(l) && len(strings.Fields(l)) > 1 && len(screen.Words(l, width)) > 1 {
			t.Errorf("%s: wider than %d columns: %q", line, width, l)
		}
	}
}
