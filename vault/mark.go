package vault

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Who administers the database can put back all that its rows are compared with, too. So each
// machine keeps outside of it the greatest number of writes that it has seen of a vault, under
// a key that comes from the vault's, and a process that begins goes by that. It is written
// before a message leaves and when everything is stopped, else at most once a second. Of
// processes that write it at one moment one may lose what is newest by a few writes.

// markEvery is how often a process writes its mark where nothing leaves.
const markEvery = time.Second

// errMark tells where the mark is, for whoever restored an older database on purpose.
func (v *Vault) errMark(err error) error {
	return fmt.Errorf("%w (this machine keeps it in %s: remove that file if an older backup was restored on purpose)", err, v.markFile())
}

func (v *Vault) markFile() string {
	sum := sha256.Sum256(append([]byte(v.engine.Path()+"\x00"), v.id...))
	return filepath.Join(v.marks, hex.EncodeToString(sum[:8])+".mark")
}

func (v *Vault) markLine(writes int64) string {
	return fmt.Sprintf("%d %x\n", writes, keyedDigest(v.sumKey, []byte("mark"), v.id, fmt.Append(nil, writes)))
}

// readMark returns the number of writes that was seen here, 0 where this machine has no mark.
func (v *Vault) readMark() (writes int64, err error) {
	line, err := os.ReadFile(v.markFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(line), "%d ", &writes)
	if err != nil || !hmac.Equal(line, []byte(v.markLine(writes))) {
		return 0, v.errMark(fmt.Errorf("%w: the mark of the writes that were seen is not this vault's", ErrDamaged))
	}
	return writes, nil
}

// keepMark writes the number of writes that were seen, soon or now. A failure is told where it
// is now that counts.
func (v *Vault) keepMark(now bool) error {
	if v.marks == "" {
		return nil
	}
	last, at := v.marked.Load(), time.Now().UnixNano()
	if !now && at-last < int64(markEvery) || !v.marked.CompareAndSwap(last, at) && !now {
		return nil
	}
	writes := v.writes.Load()
	if kept, err := v.readMark(); err == nil && kept >= writes {
		return nil
	}
	err := os.MkdirAll(v.marks, 0o700)
	if err != nil {
		return err
	}
	aside, err := os.CreateTemp(v.marks, ".mark-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(aside.Name()) }()
	_, err = aside.WriteString(v.markLine(writes))
	if err = errors.Join(err, aside.Close()); err != nil {
		return err
	}
	return os.Rename(aside.Name(), v.markFile())
}

// begin compares, in the first transaction of a process, the database with the mark of this
// machine, and what decides whether anything may run with its sums.
func (v *Vault) begin(t *transaction) error { return v.checkSums(t, bucketPolicy, bucketResumed) }
