package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/vault/agentmail"
)

func TestAC01To04Describe(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		whole := d.ok(nil, "describe")
		want := []string{"name", "description", "usage", "storage", "agent_identity", "content_routing", "invariants", "commands"}
		if got := keys(d, whole); !slices.Equal(got, want) {
			d.Errorf("AC1: keys %q", got)
		}
		if d.bare {
			for _, args := range [][]string{nil, {"--help"}, {"-h"}} {
				if !bytes.Equal(d.ok(nil, args...), whole) {
					d.Errorf("AC2: %q differs from describe", args)
				}
			}
		}
		var doc struct {
			Commands map[string]json.RawMessage `json:"commands"`
		}
		d.ok(&doc, "describe")
		if len(doc.Commands) != 6 {
			d.Errorf("AC3: %d commands", len(doc.Commands))
		}
		for name := range doc.Commands {
			var one map[string]any
			d.ok(&one, "describe", name)
			var all any
			if err := json.Unmarshal(doc.Commands[name], &all); err != nil || len(one) != 1 || !reflect.DeepEqual(one[name], all) {
				d.Errorf("AC3: describe %s: %v, %v", name, one, err)
			}
		}
		d.fails(2, "describe", "nope")
		d.send("p:a", "p:b", "x")
		if !bytes.Equal(d.ok(nil, "describe"), whole) {
			d.Error("AC4: describe differs once there is a file")
		}
	})
}

func TestAC04DescribeMakesNoFile(t *testing.T) {
	d := processDoor(t)
	d.ok(nil, "describe")
	d.fails(2, "send", "--from", "nobody")
	d.fails(2, "nope")
	dir := d.file("probe", "")
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "new")); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
}

func TestAC05To13Send(t *testing.T) {
	t.Parallel()
	uuid4 := regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z`)
	throughBothDoors(t, func(d *door) {
		raw := d.ok(nil, "send", "--from", "p:a", "--to", "p:b", "--subject", "")
		if got := keys(d, raw); !slices.Equal(got, []string{"id", "sender", "recipient", "subject", "type", "created", "ttl_hours"}) {
			d.Errorf("AC5: keys %q", got)
		}
		m := d.send("p:a", "p:b", "one")
		created, err := time.Parse(time.RFC3339Nano, m["created"].(string))
		if m["type"] != "direct" || m["ttl_hours"] != 24.0 || m["sender"] != "p:a" || m["recipient"] != "p:b" {
			d.Errorf("AC5: %v", m)
		}
		if !uuid4.MatchString(m.id()) || err != nil || time.Since(created) > time.Hour || regexp.MustCompile(`(Z|[+-]\d\d:\d\d)\z`).FindString(m["created"].(string)) == "" {
			d.Errorf("AC45: %v, %v", m, err)
		}
		if all := d.send("p:a", "*", "two"); all["type"] != "broadcast" || all["recipient"] != "*" {
			d.Errorf("AC6: %v", all)
		}
		d.send("p:a", "p:b", "three", "--refs", ` [ "a" , "b" ] `)
		reply := d.send("p:a", "p:b", "four", "--reply-to", strings.ToUpper(m.id()))
		d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--reply-to", "not-a-uuid") // AC9
		d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--reply-to", m.id()+"\n")

		body := "é\r\nsecond\r\n\ttabbed \u200d\u2028<&>\n"
		d.send("p:a", "p:b", "five", "--body-file", d.file("body.md", body))
		d.send("p:a", "p:b", "six", "--body=--dashed")
		d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body", "x", "--body-file", d.file("b.md", "x")) // AC11
		missing := d.file("gone", "x") + "-not"
		d.fails(5, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", missing) // AC12
		if d.bare {
			d.fails(5, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", "/no/such/path")
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", filepath.Dir(missing))
		} else {
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", "/etc/hostname")
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", "../x")
			d.fails(1, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", ".")
		}
		d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", d.file("latin1", "caf\xe9"))                  // AC13
		d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", d.file("long", strings.Repeat("x", 1<<17+1))) // our bound

		list := d.reads(" one two three four five six", "p:b")
		if list[1]["body"] != "" || list[1]["refs"] != nil || list[1]["reply_to"] != nil || list[1]["acked_at"] != nil || list[1]["ttl_hours"] != 24.0 {
			d.Errorf("AC46: %v", list[1])
		}
		if list[3]["refs"] != `["a","b"]` {
			d.Errorf("AC7: %v", list[3])
		}
		if list[4]["reply_to"] != m.id() || list[4].id() != reply.id() {
			d.Errorf("AC8: %v", list[4])
		}
		if list[5]["body"] != body || list[6]["body"] != "--dashed" {
			d.Errorf("AC10: %q, %q", list[5]["body"], list[6]["body"])
		}
	})
}

func TestAC14To19Read(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		d.send("p:a", "p:b", "a1")
		d.send("p:b", "p:a", "b1")
		d.send("p:b", "*", "own")
		d.send("p:c", "*", "c-all")
		d.send("p:c", "p:b", "c1")
		d.send("p:b", "p:b", "self")
		d.send("p:a", "p:b", "a2")
		d.reads("a1 c-all c1 a2", "p:b", "--no-mark-read") // AC14, AC16
		d.reads("a1 c-all c1 a2", "p:b", "--peek")
		d.reads("c-all c1", "p:b", "--peek", "--from", "p:c") // AC18
		d.reads("a1 c-all", "p:b", "--limit", "2")            // AC19
		d.reads("a2", "p:b", "--from", "p:a")
		d.reads("c1", "p:b")
		d.reads("", "p:b")                        // AC15
		d.reads("a1 c-all c1 a2", "p:b", "--all") // AC17
		d.reads("b1 own c-all", "p:a")            // a broadcast is everyone's
		d.reads("", "p:c", "--from", "p:a")       // p:a sent it nothing
		d.reads("own", "p:c")                     // nor does it see its own
		if out := d.ok(nil, "read", "p:b"); strings.TrimSpace(string(out)) != "[]" {
			d.Errorf("an empty inbox is %q", out)
		}
		for _, limit := range []string{"0", "-1", "x", "1.5", "1e3"} {
			d.fails(2, "read", "p:b", "--limit", limit)
		}
		for _, args := range [][]string{{"read"}, {"read", "p:b", "p:c"}, {"read", "p:b", "--lim", "3"}, {"read", "p:b", "--al"}, {"read", "p:b", "--limit", "1", "--limit", "2"}} {
			d.fails(2, args...)
		}
	})
}

func TestAC20To22ThreadsAndWhatReadingMarks(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		root := d.send("p:a", "p:b", "root")
		left := d.send("p:b", "p:a", "left", "--reply-to", root.id())
		right := d.send("p:c", "*", "right", "--reply-to", root.id())
		leaf := d.send("p:a", "p:b", "leaf", "--reply-to", left.id())
		d.send("p:a", "p:b", "other")
		for _, id := range []string{root.id(), strings.ToUpper(leaf.id()), right.id()} {
			for _, m := range d.reads("root left right leaf", "p:b", "--thread", id) { // AC20
				if m["read_at"] != nil || m["ttl_hours"] != 24.0 {
					d.Errorf("AC20, AC46: %v", m)
				}
			}
		}
		d.fails(2, "read", "p:b", "--thread", "not-a-uuid") // AC21
		d.fails(2, "read", "p:b", "--thread", "")
		d.fails(5, "read", "p:b", "--thread", nobody)
		d.fails(2, "read", "p:b", "--thread", root.id(), "--wait", "1s")

		d.reads("root right leaf other", "p:b") // AC20: still unread
		for _, m := range d.reads("root right leaf other", "p:b", "--all") {
			if m["read_at"] == nil || m["ttl_hours"] != 24.0 {
				d.Errorf("AC22, AC46: %v", m)
			}
		}
		d.reads("left right", "p:a")
		for _, m := range d.read("p:d", "--all") { // the broadcast was read by others only
			if m["read_at"] != nil {
				d.Errorf("AC22: %v", m)
			}
		}
		// A thread shows when a recipient read a message, and when p:d read a broadcast.
		for _, m := range d.reads("root left right leaf", "p:d", "--thread", root.id()) {
			if m["read_at"] == nil {
				d.Errorf("AC22: %v", m)
			}
		}
		for _, m := range d.reads("root left right leaf", "p:e", "--thread", root.id()) {
			if (m["read_at"] == nil) != (m["subject"] == "right") {
				d.Errorf("AC22: %v", m)
			}
		}
	})
}

func TestAC23And24Fields(t *testing.T) {
	throughBothDoors(t, func(d *door) {
		raw := d.ok(nil, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body", "text", "--fields", "type,id")
		var m letter
		if err := json.Unmarshal(raw, &m); err != nil || !slices.Equal(keys(d, raw), []string{"type", "id"}) {
			d.Fatalf("send: %s, %v", raw, err)
		}
		if got := keys(d, d.ok(nil, "ack", "p:b", m.id(), "--fields", "acked_at,agent")); !slices.Equal(got, []string{"acked_at", "agent"}) {
			d.Errorf("ack: %q", got)
		}
		var list []json.RawMessage
		d.ok(&list, "read", "p:b", "--fields", "subject,id,sender")
		if len(list) != 1 || !slices.Equal(keys(d, list[0]), []string{"subject", "id", "sender"}) {
			d.Errorf("AC23: %s", list)
		}
		d.reads("", "p:b") // it was marked all the same
		failure := d.fails(2, "read", "p:b", "--fields", "id,nope,nada")
		for _, want := range []string{"nope", "nada", "id", "sender", "recipient", "subject", "body", "refs", "reply_to", "type", "ttl_hours", "created", "read_at", "acked_at"} {
			if !strings.Contains(failure, want) {
				d.Errorf("AC24: %q does not name %s", failure, want)
			}
		}
		d.fails(2, "read", "p:b", "--fields", "")
		var all []json.RawMessage
		d.ok(&all, "read", "p:b", "--all")
		want := []string{"id", "sender", "recipient", "subject", "body", "refs", "reply_to", "type", "ttl_hours", "created", "read_at", "acked_at"}
		if got := keys(d, all[0]); !slices.Equal(got, want) {
			d.Errorf("read has the keys %q", got)
		}
	})
}

func TestAC25To28Ack(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		direct, everyone := d.send("p:a", "p:b", "direct"), d.send("p:a", "*", "all")
		raw := d.ok(nil, "ack", "p:b", strings.ToUpper(direct.id()))
		var m letter
		if err := json.Unmarshal(raw, &m); err != nil || !slices.Equal(keys(d, raw), []string{"message_id", "agent", "acked_at"}) ||
			m["message_id"] != direct.id() || m["agent"] != "p:b" {
			d.Errorf("AC25: %s", raw)
		}
		d.ok(nil, "ack", "p:c", everyone.id())
		for agent, acked := range map[string][]string{"p:b": {"direct"}, "p:c": {"all"}, "p:d": nil} {
			for _, m := range d.read(agent, "--all", "--peek") {
				if got := m["acked_at"] != nil; got != slices.Contains(acked, m["subject"].(string)) {
					d.Errorf("AC25, AC26: for %s %v", agent, m)
				}
				if m["read_at"] != nil {
					d.Errorf("an ack counts as a read: %v", m)
				}
			}
		}
		d.fails(2, "ack", "p:b", "not-a-uuid") // AC27
		d.fails(2, "ack", "p:b", direct.id()+"\n")
		d.fails(5, "ack", "p:b", nobody) // AC28
		d.fails(2, "ack", "p:b")
		if got := d.status("--agent", "p:b"); got["p:b"] != [2]int{2, 1} {
			d.Errorf("AC27: %v", got)
		}
	})
}

func TestAC29To33Status(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		if out := d.ok(nil, "status"); strings.TrimSpace(string(out)) != "[]" {
			d.Errorf("without mail: %s", out)
		}
		m := d.send("p:a", "p:b", "x")
		d.send("p-q:a", "*", "y")
		d.send("p:b", "p:b", "self")
		d.ok(nil, "ack", "p:b", m.id())
		d.read("p:z") // reading makes nobody known
		want := map[string][2]int{"p:a": {1, 1}, "p:b": {2, 1}, "p-q:a": {0, 0}}
		if got := d.status(); !reflect.DeepEqual(got, want) {
			d.Errorf("AC29: %v", got)
		}
		d.read("p:b", "--limit", "1")
		if got := d.status("--agent", "p:b"); !reflect.DeepEqual(got, map[string][2]int{"p:b": {1, 1}}) {
			d.Errorf("AC30: %v", got)
		}
		if got := d.status("--project", "p"); len(got) != 2 || got["p:a"] != want["p:a"] {
			d.Errorf("AC31: %v", got)
		}
		if got := d.status("--agent", "p:nobody"); len(got) != 0 {
			d.Errorf("AC30: %v", got)
		}
		var list []json.RawMessage
		d.ok(&list, "status", "--fields", "unread,agent")
		if len(list) != 3 || !slices.Equal(keys(d, list[0]), []string{"unread", "agent"}) {
			d.Errorf("AC32: %s", list)
		}
		d.fails(2, "status", "--fields", "nope") // AC33
		d.fails(2, "status", "--agent", "*")
		d.fails(2, "status", "--project", "p:a")
	})
}

func TestAC34To36Cleanup(t *testing.T) {
	throughBothDoors(t, func(d *door) {
		for _, args := range [][]string{{"cleanup"}, {"cleanup", "--dry-run"}} {
			if out := strings.TrimSpace(string(d.ok(nil, args...))); out != "{\n  \"deleted_count\": 0\n}" {
				d.Errorf("AC36: %q", out)
			}
		}
		old := d.expired("p:a", "p:b", "old")
		d.expired("p:a", "*", "older")
		for range 2 {
			raw := d.ok(nil, "cleanup", "--dry-run")
			var dry struct {
				DryRun   bool `json:"dry_run"`
				Would    int  `json:"would_delete"`
				Messages []map[string]string
			}
			if err := json.Unmarshal(raw, &dry); err != nil || !slices.Equal(keys(d, raw), []string{"dry_run", "would_delete", "oldest", "newest", "messages"}) ||
				!dry.DryRun || dry.Would != 2 || len(dry.Messages) != 2 || !reflect.DeepEqual(dry.Messages[0], map[string]string{"id": old.ID, "sender": "p:a", "subject": "old"}) {
				d.Errorf("AC34: %s", raw)
			}
		}
		raw := d.ok(nil, "cleanup")
		var real map[string]any
		if err := json.Unmarshal(raw, &real); err != nil || !slices.Equal(keys(d, raw), []string{"deleted_count", "oldest_deleted", "newest_deleted"}) || real["deleted_count"] != 2.0 {
			d.Errorf("AC35: %s", raw)
		}
		d.send("p:a", "p:b", "new")
		d.ok(&real, "cleanup")
		d.reads("new", "p:b") // AC35: it deletes nothing younger
	})
}

func TestAC37And38TheFileIsMadeWhereItIsNamed(t *testing.T) {
	d := processDoor(t)
	d.send("p:a", "p:b", "x")
	dir := filepath.Dir(d.file("probe", ""))
	var names []string
	for _, sub := range []string{dir, filepath.Join(dir, "new")} {
		entries, err := os.ReadDir(sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
			if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
			}
		}
	}
	slices.Sort(names)
	// Nothing was made where the default would be, which is this directory too.
	if want := []string{"mail.db", "mail.db.admin.key", "mail.db.key", "mail.db.lock", "new", "probe"}; !slices.Equal(names, want) {
		t.Errorf("there are %q", names)
	}
	if got := d.open(time.Now); got.Admin() {
		t.Error("the process is an administrator")
	}
}

// TestAC38TheKeysOfTheEnvironmentAreUsedAndNoOthers fails closed.
func TestAC38TheKeysOfTheEnvironmentAreUsedAndNoOthers(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	d := processDoor(t, "POSTERN_KEY="+v.text[1], "POSTERN_ADMIN_KEY="+v.text[0])
	d.send("p:a", "p:b", "x")
	path := filepath.Join(filepath.Dir(d.file("probe", "")), "new", "mail.db")
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
		t.Errorf("beside the vault: %v, %v", entries, err)
	}
	run := func(env ...string) (string, int) {
		status, out, failure := inThisProcess(t, append(env, agentDBVar+"="+path), []string{"agent", "status"})
		return string(out) + string(failure), status
	}
	if out, status := run("POSTERN_KEY=" + v.text[1]); status != 0 {
		t.Errorf("with its key: %d: %s", status, out)
	}
	if out, status := run("POSTERN_KEY=" + v.text[0]); status != 3 {
		t.Errorf("with a wrong key: %d: %s", status, out)
	}
	if out, status := run(); status != 3 {
		t.Errorf("without a key: %d: %s", status, out)
	}
	writeFile(t, path+house.MailboxKey, v.text[1]+"\n")
	if out, status := run(); status != 0 {
		t.Errorf("with the key beside it: %d: %s", status, out)
	}
	if err := os.Chmod(path+house.MailboxKey, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, status := run(); status != 3 {
		t.Errorf("with a key that others can read: %d: %s", status, out)
	}
}

func TestAC39IdentitiesAreMatchedWhole(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		for _, bad := range []string{"", "a", "a:", ":b", "A:b", "a:B", "a:b:c", "-a:b", "a:-b", "a b:c", "a_b:c", "é:b", "proj:a\n", "\nproj:a", "*", "**"} {
			d.fails(2, "send", "--from="+bad, "--to", "p:b", "--subject", "x")
			if bad != "*" {
				d.fails(2, "send", "--from", "p:a", "--to="+bad, "--subject", "x")
			}
			if d.bare && len(bad) > 3 {
				continue // one process for each would only cost time
			}
			d.fails(2, "read", "--", bad)
			d.fails(2, "read", "p:a", "--from="+bad)
			d.fails(2, "ack", "--", bad, nobody)
			d.fails(2, "status", "--agent="+bad)
		}
		d.send("0-a:b-", "*", "x")
	})
}

func TestAC40ControlCharactersAreRefused(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		for _, c := range []string{"\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x1f"} {
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x"+c)
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body", c)
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", d.file("bad", "x"+c+"\n"))
		}
		d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--body-file", d.file("nul", "x\x00"))
		d.send("p:a", "p:b", "a\tb\r\nc", "--body", "a\tb\r\nc")
		if m := d.read("p:b"); len(m) != 1 || m[0]["subject"] != "a\tb\r\nc" || m[0]["body"] != "a\tb\r\nc" {
			d.Errorf("%v", m)
		}
	})
}

func TestAC41RefsAreAnArrayOfStrings(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		for _, bad := range []string{"", "{}", "[1]", "[null]", "null", `"a"`, `["a"`, `["a"]x`, `["a"] ["b"]`, `[["a"]]`, "a,b"} {
			d.fails(2, "send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--refs="+bad)
		}
		d.send("p:a", "p:b", "x", "--refs", "[]")
		d.send("p:a", "p:b", "y", "--refs", `["é<&>", "../x", "\u00e9"]`)
		if m := d.read("p:b"); len(m) != 2 || m[0]["refs"] != "[]" || m[1]["refs"] != `["é<&>","../x","é"]` {
			d.Errorf("%v", m)
		}
	})
}

func TestAC42And43TheBareProcessSpeaksJSONAlone(t *testing.T) {
	t.Parallel()
	d := doorOf(t, asProcess)
	raw := d.ok(nil, "send", "--from", "p:a", "--to", "p:b", "--subject", "é <&> \U0001f468\u200d\U0001f467 \u2028", "--body", "\u009b\u007f")
	if text := string(raw); !strings.Contains(text, "é <&> \U0001f468\u200d\U0001f467 \u2028") || !strings.HasPrefix(text, "{\n  \"id\": \"") || !strings.HasSuffix(text, "\n}\n") {
		t.Errorf("AC42: %q", text)
	}
	if text := string(d.ok(nil, "read", "p:b")); !strings.Contains(text, `\u009b\u007f`) || !strings.HasPrefix(text, "[\n  {\n    \"id\"") {
		t.Errorf("what steers a terminal is not escaped: %q", text)
	}
	for _, args := range [][]string{{"nope"}, {"send"}, {"send", "--nope"}, {"read", "p:b", "--limit"}, {"ack", "p:b", nobody}} {
		_, failure, status := d.run(args...) // the door checks the shape
		if failure == "" || status == 0 {
			t.Errorf("AC43: %q: %d %q", args, status, failure)
		}
	}
}

func TestAC44EveryUseRemovesWhatExpired(t *testing.T) {
	throughBothDoors(t, func(d *door) {
		for _, args := range [][]string{
			{"send", "--from", "p:x", "--to", "p:y", "--subject", "x"}, {"read", "p:b"}, {"status"},
		} {
			old := d.expired("p:a", "p:b", "old")
			d.ok(nil, args...)
			past := d.open(func() time.Time { return time.Now().Add(-agentmail.TTL) })
			if _, err := agentmail.New(past).Thread(d.Context(), agentmail.Thread{Agent: "p:a", ID: old.ID}); !errors.Is(err, agentmail.ErrNoMessage) {
				d.Errorf("%q left it: %v", args, err)
			}
		}
		d.reads("", "p:b", "--all")
	})
}
