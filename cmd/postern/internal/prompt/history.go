package prompt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/discovery"
)

// HistoryVar names the file that keeps the history of the prompt; "off" keeps
// nothing.
const HistoryVar = "POSTERN_HISTORY"

// Bounds of the history.
const (
	maxHistory     = 1000 // lines
	maxHistoryLine = 2000 // bytes; longer lines are not kept
)

// history is the lines typed at the prompt, whole those of this session. The zero history keeps
// nothing for later ones.
type history struct {
	lines []string
	file  string
	last  string // that was kept
}

// historyFile is where the history is kept; empty for nowhere.
func historyFile(getenv func(string) string) string {
	if name := getenv(HistoryVar); name != "" {
		if name == "off" {
			return ""
		}
		return name
	}
	dir := stateDir(getenv)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "history")
}

// stateDir is where the prompt keeps files of its own; empty where the system has no place
// for them.
func stateDir(getenv func(string) string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	dir := filepath.Join(home, ".local", "state")
	switch state := getenv("XDG_STATE_HOME"); {
	case runtime.GOOS == "windows":
		dir = getenv("LocalAppData")
	case runtime.GOOS == "darwin":
		dir = filepath.Join(home, "Library", "Application Support")
	case filepath.IsAbs(state):
		dir = state
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "postern")
}

// openHistory reads the history. It reports a failure, and keeps nothing then: a prompt
// works without.
func openHistory(getenv func(string) string, stderr io.Writer) *history {
	name := historyFile(getenv)
	if name == "" {
		return &history{}
	}
	h, err := readHistory(name)
	if err != nil {
		fmt.Fprintf(stderr, "postern: the history cannot be kept: %v\n", err)
		return &history{}
	}
	return h
}

func readHistory(name string) (*history, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	// The lines show recipients and searches, so nobody else may read the file.
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &history{file: name}, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	h := &history{file: name}
	for l := range strings.SplitSeq(string(text), "\n") {
		if l != "" && len(l) <= maxHistoryLine && screen.Visible(l) == l {
			h.lines, h.last = append(h.lines, l), l
		}
	}
	if len(h.lines) > maxHistory {
		h.lines = h.lines[len(h.lines)-maxHistory/2:]
		return h, os.WriteFile(name, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
	}
	return h, nil
}

// add adds a line, of which a part is kept; empty for none. Several prompts may write the same file;
// each line is one write.
func (h *history) add(line, kept string) {
	h.lines = append(h.lines, line)
	if h.file == "" || kept == "" || len(kept) > maxHistoryLine || kept == h.last {
		return
	}
	h.last = kept
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // it is a convenience
	}
	_, _ = f.WriteString(kept + "\n")
	_ = f.Close()
}

// remembered is the part of a line that may be kept, by the rule of the audit log: a
// command without its sensitive values. Their options are left out with them, or a line
// called up again would have "[redacted]" sent. A line that is not a command, or cannot be
// read, may be a password in the wrong place: ok is false.
func (d *Door) remembered(line string) (string, bool) {
	tokens, found, err := d.resolve(line)
	if screen.Visible(line) == line && len(tokens) > 0 && slices.Contains(Words(), tokens[0]) {
		return line, true
	}
	if err != nil || screen.Visible(line) != line {
		return "", false
	}
	if found.Command == nil {
		return line, true
	}
	kept := slices.Clone(found.Path)
	left := false
	for _, t := range found.Command.Redact(found.Rest) {
		switch {
		case strings.HasSuffix(t, "="+discovery.Redacted):
		case t == discovery.Redacted:
			if n := len(kept) - 1; strings.HasPrefix(kept[n], "-") && kept[n] != "--" && kept[n] != "-" {
				kept = kept[:n]
			}
		case strings.Contains(t, discovery.Redacted):
		default:
			kept = append(kept, t)
			continue
		}
		left = true
	}
	if !left {
		return strings.TrimSpace(line), true
	}
	return discovery.JoinCommand(kept), true
}
