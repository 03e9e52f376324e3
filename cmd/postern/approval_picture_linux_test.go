package main

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const approvalPicture = "../../docs/approval.svg"

// The picture of the README is what a terminal of 80 columns shows while the answer that
// waits in the demo is approved. Id and times, which differ each time, are those of one day.
func TestThePictureOfAnApprovalIsWhatATerminalShows(t *testing.T) {
	x := onTerminal(t, 80, 50, nil, "demo")
	x.sees(promptSign)
	x.types("approve\r")
	x.sees("q ends: ")
	x.types("y\r")
	x.sees("It was sent.", promptSign)
	x.types("quit\r")
	x.quits(0)
	out := strings.ReplaceAll(x.written(), "\r\n", "\n")
	_, shown, _ := strings.Cut(out, "\n1 of 1\n")
	shown, _, found := strings.Cut(shown, "It was sent.\n")
	if !found {
		t.Fatalf("%q", out)
	}
	shown = "postern> approve\n\n1 of 1\n" + shown + "It was sent.\n"
	for _, r := range []struct{ differs, is string }{
		{`[0-9a-z]{16} \(waiting\)`, "01m7c4ysvjr7jq38 (waiting)"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d`, "2026-11-18 09:42"},
		{`\d+ [A-Z][a-z]+ \d{4} at \d\d:\d\d`, "17 November 2026 at 16:05"},
	} {
		shown = regexp.MustCompile(r.differs).ReplaceAllString(shown, r.is)
	}
	picture, err := picture("Postern shows a waiting message whole and asks whether to send it", shown)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(approvalPicture, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old, err := os.ReadFile(approvalPicture); err != nil || string(old) != picture {
		t.Errorf("docs/approval.svg is not what a terminal shows (%v): run 'go test ./cmd/postern -run ThePictureOfAnApproval -update', and look at it. Now it is\n%s", err, shown)
	}
}

// picture draws what a terminal was sent as SVG: lines of text, some of it bold. Anything
// else that steers a terminal is an error.
func picture(title, sent string) (string, error) {
	const column, line, margin = 8.4, 19, 16
	bold := regexp.MustCompile("^\x1b\\[[01]?m")
	lines := strings.Split(strings.TrimRight(sent, "\n"), "\n")
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="#1f2328">
<title>%s</title>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="#fbfaf7" stroke="#d0d0c8"/>
`, int(80*column)+2*margin, len(lines)*line+2*margin, html.EscapeString(title), int(80*column)+2*margin-1, len(lines)*line+2*margin-1)
	for i, text := range lines {
		at, weight := 0, "normal"
		for text != "" {
			if m := bold.FindString(text); m != "" {
				if text, weight = text[len(m):], "normal"; m == "\x1b[1m" {
					weight = "bold"
				}
				continue
			}
			run, _, _ := strings.Cut(text, "\x1b")
			if run == "" || strings.ContainsFunc(run, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return "", fmt.Errorf("the picture cannot draw %q", text)
			}
			// Each run stands in its column, whatever the font's width.
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" font-weight=\"%s\" xml:space=\"preserve\">%s</text>\n", margin+column*float64(at), margin+i*line+14, weight, html.EscapeString(run))
			text, at = text[len(run):], at+utf8.RuneCountInString(run)
		}
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}
