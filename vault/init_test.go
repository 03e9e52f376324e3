package vault

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

func TestInitMakesAPrivateFileInAPrivateDirectory(t *testing.T) {
	t.Parallel()
	vaulttest.OnlyFile(t, "a database has no file mode")
	path, k := filepath.Join(t.TempDir(), "a", "b", "postern.db"), newKeys(t)
	r, err := Init(t.Context(), path, k)
	if err != nil || !r.Created || r.Path == "" || r.Fingerprint == "" {
		t.Fatalf("Init = %+v, %v", r, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]os.FileMode{path: 0o600, path + ".lock": 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(p)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", p, info.Mode().Perm(), err, want)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v; want the vault and its lock", entries, err)
	}
}

func TestInitAgainVerifiesAndChangesNothing(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	before := snapshot(t, path)
	r, err := Init(t.Context(), path, k)
	if err != nil || r.Created || mustOpen(t, path, k, nil).Fingerprint() != r.Fingerprint {
		t.Fatalf("second Init = %+v, %v; want it to find the first", r, err)
	}
	empty := vaulttest.New(t)
	nothing := snapshot(t, empty)
	for name, c := range map[string]struct {
		keys Keys
		want error
	}{
		"none":          {Keys{}, ErrNoKey},
		"admin":         {Keys{Admin: k.Admin}, ErrNoKey},
		"agent":         {Keys{Agent: k.Agent}, ErrNoKey},
		"same":          {Keys{Admin: k.Admin, Agent: k.Admin}, ErrBadKey},
		"malformed":     {Keys{Admin: k.Admin, Agent: mail.NewSecret([]byte("short"))}, ErrBadKey},
		"another admin": {Keys{Admin: newKey(t), Agent: k.Agent}, ErrWrongKey},
		"another agent": {Keys{Admin: k.Admin, Agent: newKey(t)}, ErrWrongKey},
		"the other's":   {Keys{Admin: k.Agent, Agent: k.Admin}, ErrWrongKey},
	} {
		wantErr(t, second(Init(t.Context(), path, c.keys)), c.want, "%s", name)
		if c.want != ErrWrongKey {
			wantErr(t, second(Init(t.Context(), empty, c.keys)), c.want, "%s, where there is no vault", name)
		}
	}
	unchanged(t, path, before)
	unchanged(t, empty, nothing) // nor is there a directory
}

func TestInitsAtOnceMakeOneVault(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	path := vaulttest.New(t)
	var wg sync.WaitGroup
	results := make([]InitResult, 12)
	errs := make([]error, len(results))
	for i := range results {
		wg.Go(func() { results[i], errs[i] = Init(t.Context(), path, k) })
	}
	wg.Wait()
	made := 0
	for i, r := range results {
		if must(t, errs[i]); r.Fingerprint != results[0].Fingerprint {
			t.Error("two Inits saw different vaults")
		}
		if r.Created {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d Inits say they made the vault, want 1", made)
	}
}

func TestRolesFollowTheKeys(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	for name, c := range map[string]struct {
		keys    Keys
		asAgent bool
		admin   bool
		want    error
	}{
		"both":                {k, false, true, nil},
		"admin only":          {Keys{Admin: k.Admin}, false, true, nil},
		"agent only":          {Keys{Agent: k.Agent}, false, false, nil},
		"both as agent":       {k, true, false, nil},
		"admin only as agent": {Keys{Admin: k.Admin}, true, false, nil},
		// Neither slot falls back to the other.
		"agent key as admin":              {Keys{Admin: k.Agent}, false, false, ErrWrongKey},
		"admin key as agent":              {Keys{Agent: k.Admin}, false, false, ErrWrongKey},
		"wrong admin key with good agent": {Keys{Admin: newKey(t), Agent: k.Agent}, false, false, ErrWrongKey},
		"wrong agent key with good admin": {Keys{Admin: k.Admin, Agent: newKey(t)}, true, false, ErrWrongKey},
	} {
		v, err := Open(t.Context(), path, c.keys, &Options{AsAgent: c.asAgent})
		if wantErr(t, err, c.want, "%s", name); err == nil && v.Admin() != c.admin {
			t.Errorf("%s: Admin() = %v, want %v", name, v.Admin(), c.admin)
		}
	}
}

func TestAnAgentChangesNoPolicy(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	mustAdd(t, admin, "work")
	before := snapshot(t, path)
	for name, err := range map[string]error{
		"AddAccount":    agent.AddAccount(t.Context(), account("x"), mail.NewSecret([]byte("s"))),
		"UpdateAccount": agent.UpdateAccount(t.Context(), "work", func(*mail.Account) error { return nil }, nil),
		"RemoveAccount": agent.RemoveAccount(t.Context(), "work"),
		"SetSetting":    agent.SetSetting(t.Context(), "deny", ""),
	} {
		wantErr(t, err, ErrAdminRequired, "%s by an agent", name)
	}
	unchanged(t, path, before)
}

func TestPolicyPin(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	print := mustOpen(t, path, k, nil).Fingerprint()
	for _, pin := range []string{print, strings.ToUpper(print), strings.ReplaceAll(print, "-", ""), " " + print + "\n"} {
		if _, err := Open(t.Context(), path, Keys{Agent: k.Agent}, &Options{PolicyPin: pin}); err != nil {
			t.Errorf("the right pin %q: %v", pin, err)
		}
	}
	for _, pin := range []string{" ", "-", print[:len(print)-1], print + "a", strings.Repeat("a", len(print))} {
		wantErr(t, second(Open(t.Context(), path, Keys{Agent: k.Agent}, &Options{PolicyPin: pin})), ErrPolicyPin, "the wrong pin %q", pin)
	}
}

// opening is what a vault is opened with.
type opening struct {
	*testing.T
	path string
	k    Keys
	o    Options
}

// refused is a vault that is not opened, and the error.
type refused struct {
	spoil func(*opening)
	want  error
	unix  bool
}

func TestRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	refuse(t, map[string]refused{
		"missing":      {func(o *opening) { vaulttest.Remove(o, o.path) }, ErrNoVault, false},
		"others'":      {othersRecords, ErrDamaged, false},
		"newer format": {newerFormat, ErrFutureFormat, false},
		"no key":       {func(o *opening) { o.k = Keys{} }, ErrNoKey, false},
		"no agent key": {func(o *opening) { o.k, o.o.AsAgent = Keys{}, true }, ErrNoKey, false},
		"bad key":      {func(o *opening) { o.k.Admin = mail.NewSecret([]byte("c2hvcnQ=")) }, ErrBadKey, false},
		"wrong key":    {func(o *opening) { o.k.Admin = newKey(o) }, ErrWrongKey, false},
		"wrong agent":  {func(o *opening) { o.k = Keys{Agent: newKey(o)} }, ErrWrongKey, false},
		"wrong pin":    {func(o *opening) { o.o.PolicyPin = "aaaa" }, ErrPolicyPin, false},
	})
}

func TestRefusedFilesAreNotChanged(t *testing.T) {
	t.Parallel()
	vaulttest.OnlyFile(t, "it spoils the file, its mode and its name")
	cut := func(size int) func(*opening) {
		return func(o *opening) { must(o, os.Truncate(o.path, int64(size))) }
	}
	mode := func(mode os.FileMode) func(*opening) {
		return func(o *opening) { must(o, os.Chmod(o.path, mode)) }
	}
	refuse(t, map[string]refused{
		"dangling":      {func(o *opening) { must(o, errors.Join(os.Remove(o.path), os.Symlink(o.path+"x", o.path))) }, ErrNoVault, true},
		"group reads":   {mode(0o640), ErrPermissions, true},
		"others read":   {mode(0o604), ErrPermissions, true},
		"link to open":  {linkToOpen, ErrPermissions, true},
		"directory":     {func(o *opening) { must(o, errors.Join(os.Remove(o.path), os.Mkdir(o.path, 0o700))) }, ErrDamaged, false},
		"empty":         {cut(0), ErrDamaged, false},
		"cut short":     {cut(9000), ErrDamaged, false},
		"cut in a page": {cut(5*os.Getpagesize() - 1), ErrDamaged, false},
		"text":          {func(o *opening) { must(o, os.WriteFile(o.path, bytes.Repeat([]byte("text\n"), 9000), 0o600)) }, ErrDamaged, false},
	})
}

func refuse(t *testing.T, all map[string]refused) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.unix && runtime.GOOS == "windows" {
				t.Skip("mode bits and links mean nothing here")
			}
			path, k := newPlace(t)
			o := &opening{t, path, k, Options{}}
			c.spoil(o)
			before := snapshot(t, path)
			v, err := Open(t.Context(), path, o.k, &o.o)
			if !errors.Is(err, c.want) || v != nil {
				t.Fatalf("Open = %v, %v; want %v", v, err, c.want)
			}
			if says := err.Error(); c.want == ErrFutureFormat && !(strings.Contains(says, "format 7") && strings.Contains(says, "up to 2")) {
				t.Errorf("it does not name both versions: %v", err)
			}
			for _, secret := range []mail.Secret{o.k.Admin, o.k.Agent, mail.NewSecret([]byte(vaulttest.Password))} {
				if !secret.IsZero() && strings.Contains(err.Error(), secret.Reveal()) {
					t.Errorf("the error shows a key or a password: %v", err)
				}
			}
			unchanged(t, path, before)
		})
	}
}

func TestALinkToAPrivateVaultOpensAndSharesItsLock(t *testing.T) {
	t.Parallel()
	vaulttest.OnlyFile(t, "a database has no links")
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege here")
	}
	path, k := newPlace(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(path, link))
	direct, linked := mustOpen(t, path, k, nil), mustOpen(t, link, k, nil)
	if direct.Path() != linked.Path() {
		t.Errorf("paths %s and %s, want the same", direct.Path(), linked.Path())
	}
	if _, err := os.Stat(link + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Error("the link has a lock of its own")
	}
}

func TestAReplacedVaultIsRefusedByARunningProcess(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	vaulttest.Remove(t, path)
	must(t, second(Init(t.Context(), path, k)))
	wantErr(t, second(v.Accounts(t.Context())), ErrDamaged, "Accounts")
	must(t, second(Open(t.Context(), path, k, nil)))
}

// The records of an earlier time are put back, or a file that was copied then.
func TestAnOlderPolicyIsRefusedByARunningProcess(t *testing.T) {
	t.Parallel()
	for _, file := range []bool{false, true} {
		if file && vaulttest.InDatabase() {
			break // a database that went back is the engine's to find
		}
		path, k := newPlace(t)
		admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
		old, copied := readRecords(t, admin), vaulttest.Content(t, path)
		must(t, admin.SetSetting(t.Context(), "deny", "mail send"))
		must(t, second(agent.Config(t.Context())))
		if file {
			must(t, os.WriteFile(path, copied, 0o600))
		} else {
			old.write(t, admin)
		}
		wantErr(t, second(agent.Config(t.Context())), ErrUntrustedPolicy, "after a rollback")
		must(t, mustOpen(t, path, k, nil).SetSetting(t.Context(), "sends_per_hour", "7"))
		wantErr(t, second(agent.Config(t.Context())), ErrUntrustedPolicy, "after a second history of one generation")
	}
}

func TestWaitingForItsTurnEndsWithTheContext(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	holder, waiter := mustOpen(t, path, k, nil), mustOpen(t, path, k, nil)
	write := func(ctx context.Context, v *Vault) error { return v.Update(ctx, func(kv.Tx) error { return nil }) }
	read := func(ctx context.Context, v *Vault) error { return second(v.Accounts(ctx)) }
	type call struct {
		what string
		run  func(context.Context, *Vault) error
	}
	calls := []call{{"write", write}}
	if !vaulttest.InDatabase() { // there, who reads waits for nobody
		calls = []call{{"write", write}, {"read", read}, {"write behind a read", write}}
	}
	must(t, holder.Update(t.Context(), func(kv.Tx) error {
		for name, v := range map[string]*Vault{"other process": waiter, "same process": holder} {
			for _, c := range calls {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				err := c.run(ctx, v)
				if !vaulttest.InDatabase() || !errors.Is(err, ErrBusy) { // a database may say so first
					wantErr(t, err, context.DeadlineExceeded, "%s, %s", name, c.what)
				}
				if held := (*Held)(nil); !vaulttest.InDatabase() && name == "other process" && (!errors.As(err, &held) || held.Lock != path+".lock") {
					t.Errorf("%s, %s: %v, want it to name the lock", name, c.what, err)
				}
			}
			if vaulttest.InDatabase() {
				must(t, read(t.Context(), v))
			}
		}
		return nil
	}))
	// The cancelled wait must not keep the turn when it gets it after all.
	must(t, write(t.Context(), waiter))
}

// --- damage to a vault, and the comparison before and after

func linkToOpen(o *opening) {
	target := filepath.Join(o.TempDir(), "elsewhere.db")
	must(o, errors.Join(os.Rename(o.path, target), os.Chmod(target, 0o644), os.Symlink(target, o.path)))
}

// othersRecords leaves a whole place that holds no vault.
func othersRecords(o *opening) {
	vaulttest.Remove(o, o.path)
	kind, err := kindOf(o.path)
	must(o, err)
	must(o, second(kind.create(o.Context(), o.path, func(tx kv.Tx) error { return tx.Put("something else", []byte("k"), nil) })))
}

func newerFormat(o *opening) {
	e, err := engineAt(o.Context(), o.path)
	must(o, err)
	must(o, second(e.Transact(o.Context(), true, func(tx kv.Tx) error {
		return tx.Put(bucketHeaders, []byte("format"), binary.BigEndian.AppendUint32(nil, 7))
	})))
}

// snapshot is everything about a place that a refusal must not change: the file, its mode and
// time, and the names beside it, or all rows.
func snapshot(t testing.TB, path string) (all string) {
	t.Helper()
	if vaulttest.InDatabase() {
		return string(vaulttest.Content(t, path))
	}
	if info, err := os.Lstat(path); err == nil {
		b, _ := os.ReadFile(path)
		all = fmt.Sprint(info.Mode(), info.ModTime(), string(b))
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	return all + fmt.Sprint(entries, err)
}

func unchanged(t testing.TB, path, before string) {
	t.Helper()
	if now := snapshot(t, path); now != before {
		t.Errorf("it was %.300q and is %.300q, with %d and %d bytes", before, now, len(before), len(now))
	}
}
