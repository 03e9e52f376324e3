package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
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
		{`back on [A-Z][a-z]+day`, "back on Thursday"},
	} {
		shown = regexp.MustCompile(r.differs).ReplaceAllString(shown, r.is)
	}
	d, err := newDisplay(80, strings.ReplaceAll(strings.TrimSuffix(shown, "\n"), "\n", "\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	picture := picture("Postern shows a waiting message whole and asks whether to send it", d.columns, d.lines)
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
