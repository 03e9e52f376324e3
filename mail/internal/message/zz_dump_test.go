package message

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestZZDump(t *testing.T) {
	filepath.WalkDir("../../testdata/real-emails", func(p string, d fs.DirEntry, err error) error {
		if d.IsDir() || !strings.HasSuffix(p, ".eml") {
			return nil
		}
		b, _ := os.ReadFile(p)
		e := Parse(b)
		fmt.Printf("=== %s\n", strings.TrimPrefix(p, "../../testdata/real-emails/"))
		var dump func(p *Part, ind string)
		dump = func(p *Part, ind string) {
			fmt.Printf("%s[%s] %s enc=%q disp=%q name=%q size=%d cid=%q cs=%q\n", ind, p.ID, p.MediaType(), p.Encoding, p.Disposition, p.Filename, p.Size, p.ContentID, p.Param("charset"))
			for _, c := range p.Children {
				dump(c, ind+"  ")
			}
		}
		dump(e.Root, "  ")
		for _, a := range Attachments(e.Root) {
			fmt.Printf("  ATT %s %s %q inc=%v\n", a.ID, a.MediaType(), a.Filename, a.Incidental())
		}
		s, cut := Text(e.Root, e.Raw, 700)
		fmt.Printf("  TEXT cut=%v\n%s\n", cut, s)
		return nil
	})
}
