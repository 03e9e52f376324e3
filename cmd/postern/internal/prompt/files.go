package prompt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
)

// shown are the kinds of files that a viewer shows and does not run. A file of another kind is
// saved, and its person decides.
var shown = []string{".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".txt", ".ics", ".docx", ".xlsx", ".pptx", ".mp3", ".mp4"}

// save keeps the attachments of a message, or one of them, in a directory of the person's.
func (c *conversation) save(ctx context.Context, args []string) {
	place := ""
	if n := len(args) - 1; n > 0 && !isPart(args[n]) {
		place, args = args[n], args[:n]
	}
	if len(args) > 2 {
		c.status = discovery.ValidationError.ExitStatus()
		c.tell("save ID [PART] [PLACE]: the parts of a message are numbers, as " + c.typedAs("read") + " shows them.")
		return
	}
	dir, err := saveDir(place)
	if err != nil {
		c.status = discovery.ValidationError.ExitStatus()
		c.tell("Nothing was saved: " + err.Error() + ".")
		return
	}
	c.eachPart(ctx, args, func(name string, content []byte) bool {
		file, err := writeNew(dir, name, content)
		if err != nil {
			c.status = discovery.ExecutionError.ExitStatus()
			c.tell("Nothing was saved: " + err.Error() + ".")
			return false
		}
		c.tell(fmt.Sprintf("Saved %s (%s):", name, counted(len(content), "byte")))
		fmt.Fprintln(c.Stdout, "  "+file)
		return true
	})
}

// isPart reports whether a word is the number of a part of a message.
func isPart(s string) bool { return s != "" && strings.Trim(s, "0123456789.") == "" && s[0] != '.' }

// saveDir is where files are saved: the place that is named, else the directory for downloads,
// else where Postern was started.
func saveDir(place string) (string, error) {
	home, err := os.UserHomeDir()
	if downloads := filepath.Join(home, "Downloads"); place == "" && err == nil {
		if info, err := os.Stat(downloads); err == nil && info.IsDir() {
			return downloads, nil
		}
	}
	if place == "~" && err == nil {
		place = home
	}
	if place = atHome(place); place == "" {
		place = "."
	}
	dir, err := filepath.Abs(place)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%q is no directory", place)
	}
	return dir, nil
}

// eachPart gets the attachments of a message, or the one that is named, until do says no.
func (c *conversation) eachPart(ctx context.Context, args []string, do func(name string, content []byte) bool) {
	m, _, ok := c.message(ctx, args[0], "100")
	if !ok {
		return
	}
	list := m.Attachments
	if len(args) > 1 {
		list = slices.DeleteFunc(list, func(a commands.AttachmentEntry) bool { return a.PartID != args[1] })
	}
	if len(list) == 0 {
		c.status = discovery.NotFound.ExitStatus()
		none := "The message has no attachment."
		if len(args) > 1 {
			none = "The message has no such attachment: " + c.typedAs("read") + " lists them."
		}
		c.tell(none)
		return
	}
	for _, a := range list {
		part, ok := resultOf[*commands.MailAttachmentResult](ctx, c, command("mail", "attachment", "--max-bytes", "67108864", "--part", a.PartID, m.ID))
		if !ok || !do(fileName(part.Filename, a.PartID), part.Content) {
			return
		}
	}
	c.status = 0
}

// fileName makes a name that is safe on every system of the one that the sender gave.
func fileName(given, part string) string {
	given = given[strings.LastIndexAny(given, `/\`)+1:]
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune(" ._-+()", r) {
			return r
		}
		return '_'
	}, given)
	ext := filepath.Ext(name)
	if len(ext) > 20 {
		ext = ""
	}
	for stem := []rune(strings.TrimSuffix(name, ext)); len(name) > 200; name = string(stem) + ext { // bytes, as file systems count
		stem = stem[:len(stem)-1]
	}
	// A name that begins with a dot is not listed, one with a dash is an option to many programs.
	if name = strings.TrimRight(strings.TrimLeft(name, ".- "), ". "); name == "" {
		return "attachment-" + strings.ReplaceAll(part, ".", "-")
	}
	switch stem, _, _ := strings.Cut(strings.ToUpper(name), "."); {
	case slices.Contains([]string{"CON", "PRN", "AUX", "NUL"}, stem), len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")):
		name = "_" + name // devices, on Windows
	}
	return name
}

// writeNew writes a file that was not there, with a number in its name where one was.
func writeNew(dir, name string, content []byte) (file string, err error) {
	ext := filepath.Ext(name)
	for n := 1; n < 1000; n++ {
		file = filepath.Join(dir, name)
		if n > 1 {
			file = filepath.Join(dir, strings.TrimSuffix(name, ext)+" ("+strconv.Itoa(n)+")"+ext)
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", errors.Join(err, os.Remove(file))
		}
		return file, nil
	}
	return "", fmt.Errorf("there are too many files called %q", name)
}

// opens shows an attachment with the program that the system has for it. The file is removed
// at the end of the sitting.
func (c *conversation) opens(ctx context.Context, args []string) {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	n := 0
	c.eachPart(ctx, args, func(name string, content []byte) bool {
		if n++; n > 1 {
			c.tell("It has more attachments: " + c.typedAs("open ID PART") + " shows another one.")
			return false
		}
		if !slices.Contains(shown, strings.ToLower(filepath.Ext(name))) {
			c.status = discovery.ValidationError.ExitStatus()
			c.tell(name + " is of a kind that is not opened from here: it could do more than show something. " + c.typedAs("save") + " keeps it.")
			return false
		}
		if c.temporary == "" {
			dir, err := os.MkdirTemp("", "postern-open-")
			if err != nil {
				c.tell("It cannot be opened: " + err.Error() + ".")
				return false
			}
			c.temporary = dir
		}
		file, err := writeNew(c.temporary, name, content)
		if err == nil {
			cmd := exec.Command(opener[0], append(opener[1:], file)...)
			err = cmd.Start()
			go func() { _ = cmd.Wait() }()
		}
		if err != nil {
			c.status = discovery.ExecutionError.ExitStatus()
			c.tell("It cannot be opened: " + err.Error() + ". " + c.typedAs("save") + " keeps it.")
			return false
		}
		c.tell("Opened " + name + ".")
		return true
	})
}

// forget removes what was kept for the time of the sitting.
func (c *conversation) forget() {
	if c.temporary != "" {
		_ = os.RemoveAll(c.temporary)
	}
}
