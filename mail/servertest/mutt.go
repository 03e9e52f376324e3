package servertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// muttScript makes mutt write the one message of its mailbox, decoded as for the
// screen, to a file. The names are in the environment, where no quoting can go
// wrong. A paragraph of format=flowed becomes one line.
const muttScript = `set folder="$MUTT_BOX" copy=no nowait_key sleep_time=0 nomark_old quit=yes
set charset=utf-8 pipe_decode reflow_text reflow_wrap=0 nomarkers nosmart_wrap
push "<pipe-message>cat >\$MUTT_SHOWN<enter><exit>"
`

// Mutt returns a message as the mail reader mutt shows it to a person: the
// headers a person cares for, an empty line, and the text, all of it decoded and
// in UTF-8. Text that is format=flowed (RFC 3676) has its paragraphs put
// together, one to a line, with the quotes marked by "> ".
func Mutt(t testing.TB, raw []byte) string {
	t.Helper()
	Check(t, installed("mutt", "script", "stty"))
	dir := t.TempDir()
	rc, shown := filepath.Join(dir, "muttrc"), filepath.Join(dir, "shown")
	if err := os.WriteFile(rc, []byte(muttScript), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// It shows nothing without a terminal, which script(1) is for it.
	cmd := exec.CommandContext(ctx, "script", "-qec", `stty cols 1000 rows 50; exec mutt -n -F "$MUTT_RC" -R -f "$MUTT_BOX"`, "/dev/null")
	cmd.Env = []string{
		"MUTT_RC=" + rc, "MUTT_BOX=" + WriteMaildir(t, raw), "MUTT_SHOWN=" + shown,
		"HOME=" + dir, "TMPDIR=" + dir, "TERM=xterm", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "PATH=/usr/bin:/bin", "SHELL=/bin/sh",
	}
	screen, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("mutt: %v: %q", err, screen)
	}
	text, err := os.ReadFile(shown)
	if err != nil {
		t.Fatalf("mutt: %v: %q", err, screen)
	}
	return string(text)
}
