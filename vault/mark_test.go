package vault

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// A process that begins on a machine that has seen more of the database does nothing after rows
// were put back with all that they are compared with, and a stop needs no row. The audit's check
// says so, too.
func TestAFreshProcessDoesNotBeginBehindWhatItsMachineSaw(t *testing.T) {
	t.Parallel()
	o := &Options{Marks: filepath.Join(t.TempDir(), "marks")}
	admin, agent, place, k := inDatabase(t, o)
	mustAdd(t, admin, "work")
	mustAddOutgoing(t, agent, outgoing(1, func(o *mail.Outgoing) { o.Key = "key" }), []byte("message"))
	before := readRecords(t, admin)
	must(t, leave(t, agent, "id-0001"))
	sent := readRecords(t, admin)
	recordNow(t, agent, 1)
	if _, _, err := agent.Stop(t.Context(), "agent"); err != nil {
		t.Fatal(err)
	}
	stopped := readRecords(t, admin)
	fresh := func() (list, write error) {
		v, err := Open(t.Context(), place, Keys{Agent: k.Agent}, o)
		if err != nil {
			return err, err
		}
		_, list = v.Accounts(t.Context())
		v, err = Open(t.Context(), place, Keys{Agent: k.Agent}, o)
		must(t, err)
		return list, v.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("x", []byte("x"), []byte("x")) })
	}
	for name, change := range map[string]func(records){
		"outbox, keys, sums and limits put back": func(r records) {
			r.putBack(before, func(bucket string) bool {
				return slices.Contains([]string{statePrefix + outboxEntries, statePrefix + outboxKeys, statePrefix + outboxSizes, bucketSums, bucketLimits}, bucket)
			})
		},
		"policy, sums and limits put back": func(r records) {
			r.putBack(sent, func(bucket string) bool {
				return slices.Contains([]string{bucketPolicy, bucketSums, bucketLimits}, bucket)
			})
		},
		"the stop taken away": func(r records) { delete(r, [2]string{bucketPolicy, string(stopKey)}) },
		"everything put back": func(r records) { r.putBack(sent, func(string) bool { return true }) },
	} {
		changed := records{}
		for at, value := range stopped {
			changed[at] = value
		}
		change(changed)
		changed.write(t, admin)
		if list, write := fresh(); list == nil || write == nil {
			t.Errorf("%s: a process reads: %v, and writes: %v", name, list, write)
		}
		if name != "everything put back" { // which is whole in itself
			if report, err := admin.VerifyAudit(t.Context()); err != nil || report.OK || report.Problem == "" {
				t.Errorf("%s: the check of the audit says %+v, %v", name, report, err)
			}
		}
	}
	stopped.write(t, admin)
	if list, write := fresh(); list != nil || write != nil {
		t.Errorf("as it was: %v, %v", list, write)
	}
	marks, err := filepath.Glob(filepath.Join(o.Marks, "*.mark"))
	if err != nil || len(marks) != 1 {
		t.Fatal(marks, err)
	}
	must(t, os.WriteFile(marks[0], []byte("0 00\n"), 0o600))
	if list, _ := fresh(); list == nil {
		t.Error("a mark that somebody wrote counts")
	}
	before.write(t, admin)
	must(t, os.Remove(marks[0])) // a backup that was restored on purpose
	if list, write := fresh(); list != nil || write != nil {
		t.Errorf("without a mark: %v, %v", list, write)
	}
}
