package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestWhatReadCutsIsReachedByWhatItSays goes on as each answer says, to the end of messages of
// which two fit into one. One that fills an answer comes alone.
func TestWhatReadCutsIsReachedByWhatItSays(t *testing.T) {
	throughBothDoors(t, func(d *door) {
		long := d.file("long.txt", strings.Repeat("lines and words\n", 6400))
		var want, ids []string
		for i := range 12 {
			subject := string(rune('a' + i))
			d.send("p:a", "p:b", subject, "--body-file", long)
			want = append(want, subject)
		}
		ids = append(ids, d.send("p:a", "p:c", "root", "--body-file", d.file("quotes.txt", strings.Repeat("\"", 118<<10))).id())
		for range 3 {
			ids = append(ids, d.send("p:a", "p:c", "reply", "--reply-to", ids[0], "--body-file", long).id())
		}
		for _, read := range [][]string{{"p:b", "--all", "--peek", "--limit", "50"}, {"p:b", "--limit", "50"}, {"p:c", "--thread", ids[2]}} {
			var got []string
			args := append([]string{"read"}, read...)
			for args != nil && len(got) < 20 {
				data, note, _ := d.run(args...)
				var page []letter
				if err := json.Unmarshal(data, &page); err != nil || len(page) == 0 {
					t.Fatalf("%q: %s, %v", args, note, err)
				}
				for _, m := range page {
					got = append(got, m["subject"].(string))
				}
				args = nil
				if on := regexp.MustCompile(`'(?:postern )?agent (.*)'`).FindStringSubmatch(note); on != nil {
					args = strings.Fields(on[1])
				}
			}
			if read[0] == "p:c" {
				want = []string{"root", "reply", "reply", "reply"}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%q: %q", read, got)
			}
		}
		d.fails(2, "read", "p:b", "--after", ids[0])
	})
}
