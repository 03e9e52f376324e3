package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/agentmail"
)

// What read cuts is reached by what it says: the test goes on as each answer tells, to the end of
// messages of which two fit into one. One that fills an answer comes alone.
func TestWhatReadCutsIsReachedByWhatItSays(t *testing.T) {
	dir := t.TempDir()
	h := houseOf(t, newProcess(t, "POSTERN_ATTACHMENTS="+dir), newVault(t))
	for door, run := range map[string]func(args []string) (data []byte, said string){
		"process": func(args []string) ([]byte, string) {
			_, stdout, stderr := inThisProcess(t, []string{agentDBVar + "=" + filepath.Join(dir, "mail.db"), "HOME=" + dir, "XDG_CONFIG_HOME=" + dir}, args)
			return stdout, string(stderr)
		},
		"gateway": func(args []string) ([]byte, string) {
			a := h.Gateway.Do(t.Context(), gateway.Request{Principal: h.Principal, Tokens: args})
			a.Delivered()
			return a.Data, string(a.JSON)
		},
	} {
		t.Run(door, func(t *testing.T) {
			send := func(to, subject, name, content string, more ...string) string {
				path := writeFile(t, filepath.Join(dir, name), content)
				if door == "gateway" {
					path = name
				}
				data, said := run(append([]string{"agent", "send", "--from", "p:a", "--to", to, "--subject", subject, "--body-file", path}, more...))
				var m agentmail.Message
				if err := json.Unmarshal(data, &m); err != nil {
					t.Fatal(said)
				}
				return m.ID
			}
			long, want := strings.Repeat("lines and words\n", 6400), ""
			for i := range 12 {
				subject := string(rune('a' + i))
				send("p:b", subject, "long.txt", long)
				want += " " + subject
			}
			root := send("p:c", "root", "quotes.txt", strings.Repeat("\"", 118<<10))
			var last string
			for range 3 {
				last = send("p:c", "reply", "long.txt", long, "--reply-to", root)
			}
			for read, want := range map[string]string{"p:b --all --peek --limit 50": want, "p:b --limit 50": want, "p:c --thread " + last: " root reply reply reply"} {
				got := ""
				for args := "read " + read; args != "" && len(got) < 100; {
					data, said := run(append([]string{"agent"}, strings.Fields(args)...))
					var page []agentmail.Message
					if err := json.Unmarshal(data, &page); err != nil || len(page) == 0 {
						t.Fatalf("%q: %v %.200s", args, err, said)
					}
					for _, m := range page {
						got += " " + m.Subject
					}
					args = ""
					if on := regexp.MustCompile(`'(?:postern )?agent (read [^']*)'`).FindStringSubmatch(said); on != nil {
						args = on[1]
					}
				}
				if got != want {
					t.Errorf("%q: %q", read, got)
				}
			}
			if data, said := run([]string{"agent", "read", "p:b", "--after", root}); len(data) > 0 && door == "process" || !strings.Contains(said, "--after") {
				t.Errorf("--after without what it goes on in: %s", said)
			}
		})
	}
}
