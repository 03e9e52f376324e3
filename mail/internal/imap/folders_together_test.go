package imap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// Several folders are opened, searched and read in one write, also without ESEARCH. What a
// server says of a message belongs to the folder that was open: the same UID is another
// message in the next one, and a change of flags in front of the data displaces it in the
// library.
func TestFoldersOfTheSameUIDsDoNotMix(t *testing.T) {
	for _, caps := range []string{"IMAP4rev1 SASL-IR AUTH=PLAIN", "IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH"} {
		cfg := serve(t, func(s *scripted.Conn) {
			s.Greet(caps)
			folder := ""
			for {
				tag, command := s.Expect()
				verb, rest, _ := strings.Cut(command, " ")
				switch sub, _, _ := strings.Cut(rest, " "); verb + " " + sub {
				case "UID SEARCH":
					answer := "* SEARCH 5\r\n"
					if strings.Contains(caps, "ESEARCH") {
						answer = "* ESEARCH (TAG \"" + tag + "\") UID ALL 5\r\n"
					}
					if folder == "B" {
						answer = ""
					}
					s.Send(answer + tag + " OK done\r\n")
				case "UID FETCH":
					s.Send(fmt.Sprintf("* 1 FETCH (UID 5 FLAGS (\\Seen))\r\n* 1 FETCH (UID 5 FLAGS () BODY[TEXT]<0> \"in %s\")\r\n%s OK done\r\n", folder, tag))
				default:
					if folder = strings.Trim(sub, `"`); folder == "Gone" {
						folder = ""
						s.Send(tag + " NO gone\r\n")
						continue
					}
					s.Send(strings.ReplaceAll(scripted.Selected, "TAG", tag))
				}
			}
		})
		using(t, cfg, func(s *Session) error {
			names := []string{"A", "B", "Gone", "C"}
			opening, search, fetch := make([]*Examining, 4), make([]*Searching, 4), make([]*Fetching, 4)
			text := Items{Sections: []Section{{Only: Text, Size: 10}}}
			s.Together(func() {
				for i, name := range names {
					opening[i], search[i] = s.Examine(name), s.Search(Criteria{})
				}
			})
			for i, name := range names {
				box, err := opening[i].Wait()
				found, searchErr := search[i].Wait()
				if wrong := name == "Gone"; (err != nil) != wrong || box.Name != name && !wrong || searchErr != nil ||
					found.Contains(5) != (name != "B") {
					t.Errorf("%s: %+v %v, %v %v", name, box, err, found, searchErr)
				}
			}
			if box, _ := s.Selected(); box.Name != "C" {
				t.Errorf("%q is open", box.Name)
			}
			s.Together(func() {
				for i, name := range names {
					opening[i], fetch[i] = s.Examine(name), s.Fetch(UIDs(5), text)
				}
			})
			for i, name := range names {
				_, err := opening[i].Wait()
				got, fetchErr := fetch[i].Wait()
				if name != "Gone" && (err != nil || texts(got) != "5:in "+name) || fetchErr != nil {
					t.Errorf("%s: %q %v %v", name, texts(got), err, fetchErr)
				}
			}
			return nil
		})
	}
}
