package house

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
)

// What a principal may have saved at a time. The directory may hold anything besides, so what
// was saved is written down in the vault, and counts as long as the file is there.
const (
	shareFiles     = 2000
	shareFileBytes = 1 << 30
)

const savedBucket = "attachments.saved" // by principal and digest of the name: a savedFile

type savedFile struct {
	Name string    `json:"name"`
	Size int64     `json:"size"`
	Time time.Time `json:"time"`           // of the moment before it was saved
	From string    `json:"from,omitempty"` // the account
	Sum  []byte    `json:"sum,omitempty"`  // SHA-256 of the content; records of earlier versions have none
}

// savingTime is how long a file that is about to be saved counts without being there.
const savingTime = time.Minute

func savedKey(principal, name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return append([]byte("principal "+principal+"\x00"), sum[:16]...)
}

// claim counts a file that is about to be saved to its principal's share; the error is a
// *vault.ShareFull where that is full. release takes it back.
func (a *attachments) claim(ctx context.Context, root *os.Root, from, name string, content []byte) (release func(), err error) {
	size, digest := int64(len(content)), sha256.Sum256(content)
	p := principalOf(ctx)
	if _, err := root.Lstat(name); err == nil || a.records == nil { // what is there is not written over
		return func() {}, nil
	}
	now := a.records.Now()
	key := savedKey(p.Name, name)
	var names []string // of what counted
	claim := func(tx kv.Tx, gone map[string]bool) error {
		names = nil
		sum := size
		for r, err := range kv.Each(tx, savedBucket, kv.Prefix(key[:len(key)-16])) {
			var f savedFile
			if err == nil {
				err = json.Unmarshal(r.Value, &f)
			}
			if err != nil {
				return err
			}
			if gone[f.Name] && now.Sub(f.Time) >= savingTime {
				if err := tx.Delete(savedBucket, r.Key); err != nil {
					return err
				}
				continue
			}
			names, sum = append(names, f.Name), sum+f.Size
		}
		if len(names)+1 > a.files || sum > a.bytes {
			return &vault.ShareFull{Of: vault.ShareFiles, Principal: p.Name, Count: a.files, Bytes: a.bytes}
		}
		record, err := json.Marshal(savedFile{name, size, now, from, digest[:]})
		if err != nil {
			return err
		}
		return tx.Put(savedBucket, key, record)
	}
	err = a.records.Update(ctx, func(tx kv.Tx) error { return claim(tx, nil) })
	if errors.As(err, new(*vault.ShareFull)) { // some may be there no more; nobody waits while that is looked up
		gone := make(map[string]bool)
		for _, name := range names {
			_, err := root.Lstat(name)
			gone[name] = err != nil
		}
		err = a.records.Update(ctx, func(tx kv.Tx) error { return claim(tx, gone) })
	}
	return func() {
		_ = a.records.Update(context.WithoutCancel(ctx), func(tx kv.Tx) error { return tx.Delete(savedBucket, key) }) // else it counts for savingTime
	}, err
}

// SavedFrom implements commands.Attachments. The origin is that of the content: a principal
// may send what another one saved, under another name too. Records of earlier versions have
// only names: a principal with a directory of its own has saved what is in it, in the common one
// it may have been any other.
func (a *attachments) SavedFrom(ctx context.Context, name string, content []byte) (accounts []string, err error) {
	p := principalOf(ctx)
	if a.records == nil {
		return nil, nil
	}
	own := p.Scope != nil
	name = filepath.FromSlash(path.Clean(name))
	digest := sha256.Sum256(content)
	mine, grants := savedKey(p.Name, name), []byte("principal "+admin.GrantPrincipal(""))
	err = a.records.View(ctx, func(tx kv.Tx) error {
		accounts = nil
		for r, err := range kv.Each(tx, savedBucket, kv.Range{}) {
			if err != nil {
				return err
			}
			var f savedFile
			if err := json.Unmarshal(r.Value, &f); err != nil {
				return err
			}
			is := bytes.Equal(f.Sum, digest[:])
			if f.Sum == nil {
				foreign := own && !bytes.Equal(r.Key, mine) || !own && bytes.HasPrefix(r.Key, grants)
				is = !foreign && strings.EqualFold(f.Name, name) && f.Size == int64(len(content))
			}
			if is && f.From != "" && !slices.Contains(accounts, f.From) {
				accounts = append(accounts, f.From)
			}
		}
		return nil
	})
	return accounts, err
}
