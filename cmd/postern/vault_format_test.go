package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestAVaultOfAFutureFormatIsRefusedAndUntouched asks the program, as a process,
// about a vault that a newer version would have written.
func TestAVaultOfAFutureFormatIsRefusedAndUntouched(t *testing.T) {
	v := newVault(t)
	db, err := bolt.Open(v.path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("vault")).Put([]byte("format"), binary.BigEndian.AppendUint32(nil, 99))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(v.path)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c := program(t, v.environment(false), "exec", "mail accounts")
	c.Stderr = &stderr
	out, _ := c.Output()
	if s := string(out); !strings.HasPrefix(s, `{"success":false,"error":{"code":"STORE_ERROR"`) || !strings.Contains(s, "99") || !strings.Contains(s, `"hint":"Use the version`) ||
		strings.Count(s, "\n") != 1 || stderr.Len() > 0 || c.ProcessState.ExitCode() != 1 {
		t.Errorf("%s%s, status %d", s, stderr.Bytes(), c.ProcessState.ExitCode())
	}
	after, err := os.ReadFile(v.path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the vault changed, %v", err)
	}
}
