package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/discovery"
)

// letterDir makes a directory for a letter.
func letterDir(getenv func(string) string) (string, error) {
	all := stateDir(getenv)
	if all != "" {
		all = filepath.Join(all, "letters")
		if err := os.MkdirAll(all, 0o700); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(all, "letter-")
}

// kept is what its file does not say of a letter that is kept.
type kept struct {
	Fields, Command        []string
	Account, Quoted, Below string
	Why                    string
}

// keep lays a letter aside, for 'write again'.
func (l *letter) keep(dir, why string) error {
	text, err := json.Marshal(kept{l.fields, l.command, l.account, l.quoted, l.below, why})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, keptFile), text, 0o600)
	}
	return err
}

// again takes up a letter that was kept, or shows which there are, the newest first.
func (c *conversation) again(ctx context.Context, args []string) {
	var files []string
	if dir := stateDir(c.Getenv); dir != "" { // else they are where others can write, too
		files, _ = filepath.Glob(filepath.Join(dir, "letters", "letter-*", keptFile))
	}
	at := map[string]time.Time{}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			at[f] = info.ModTime()
		}
	}
	slices.SortStableFunc(files, func(a, b string) int { return at[b].Compare(at[a]) })
	n, err := 1, error(nil)
	if len(args) > 0 {
		n, err = strconv.Atoi(args[0])
	}
	switch {
	case len(files) == 0:
		c.status = discovery.NotFound.ExitStatus()
		c.tell("No letter is kept.")
	case len(args) > 1 || err != nil || n < 1 || n > len(files):
		c.status = discovery.NotFound.ExitStatus()
		c.tell(fmt.Sprintf("%s kept: %s takes up the newest.", counted(len(files), "letter"), c.typedAs("write again 1")))
	case len(args) == 0 && len(files) > 1:
		for i, f := range files {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(f), letterFile))
			line := fmt.Sprintf("%2d  %s  %s", i+1, at[f].Format("2006-01-02 15:04"), screen.Line(strings.TrimSpace(string(text))))
			fmt.Fprintln(c.Stdout, screen.Cut(line, c.look().Width))
		}
		c.tell(c.typedAs("write again 1") + " takes up the first of them.")
	default:
		c.takeUp(ctx, files[n-1])
	}
}

// takeUp goes on with a letter that was kept. Who removes the file says that they are at work
// on it: nobody else does.
func (c *conversation) takeUp(ctx context.Context, file string) {
	dir := filepath.Dir(file)
	var k kept
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	l := newLetter(k.Command, k.Fields...)
	l.account, l.quoted, l.below = k.Account, k.Quoted, k.Below
	if text, unread := os.ReadFile(filepath.Join(dir, letterFile)); unread != nil {
		err = unread
	} else if unread := l.parse(string(text)); unread != nil && c.editor() == "" {
		err = fmt.Errorf("%w: VISUAL or EDITOR names an editor that mends it", unread)
	}
	if err == nil && len(l.command) < 2 {
		err = errors.New("it does not say what to do with it")
	}
	if err == nil {
		err = os.Remove(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("somebody is at work on it, or has sent it")
	}
	if err != nil {
		c.status = discovery.ExecutionError.ExitStatus()
		c.tell("The letter cannot be taken up: " + err.Error() + ".")
		return
	}
	c.tell(k.Why)
	c.compose(ctx, l, dir)
}
