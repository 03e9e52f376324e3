package house

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// A key that replaces another first stands beside it: as a file whose name ends with
// successorFile, or a keyring entry whose name ends with successorName. Then the vault is
// rekeyed, and then it takes the other's place. So whatever moment a process is killed
// at, the key that opens the vault is in one of the two places, and both are looked at
// (see System.open). Only who has the vault's lock "rekey" changes them.
const (
	successorFile = ".new"
	successorName = "-new"
	rekeyLock     = "rekey"
)

// successorOf is where the successor of a key file is.
func successorOf(file string) string {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	return file + successorFile
}

// successorRing is a keyring in which a key that has a successor is that.
type successorRing struct{ Keyring }

func (r successorRing) Secret(ctx context.Context, name string) (mail.Secret, error) {
	s, err := r.Keyring.Secret(ctx, name+successorName)
	if errors.Is(err, mail.ErrNotInKeyring) {
		return r.Keyring.Secret(ctx, name)
	}
	return s, err
}

// OwnKeys are the new keys that this process gave its vault and could not put where the
// former ones came from, and the administrator's key that a passphrase opened, with that
// passphrase. The zero OwnKeys has none. It is safe for concurrent use.
type OwnKeys struct {
	mu   sync.Mutex
	keys vault.Keys

	asking     sync.Mutex             // held while a person is asked, see System.unseal
	unsealed   map[string]mail.Secret // by the text that was opened
	passphrase mail.Secret            // that opened it
}

// over puts them in the place of others.
func (o *OwnKeys) over(k vault.Keys) vault.Keys {
	if o == nil {
		return k
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.keys.Admin.IsZero() && !k.Admin.IsZero() {
		k.Admin = o.keys.Admin
	}
	if !o.keys.Agent.IsZero() && !k.Agent.IsZero() {
		k.Agent = o.keys.Agent
	}
	return k
}

// seal is the text of a new administrator's key: sealed with the passphrase that opened the
// former one, where one did.
func (o *OwnKeys) seal(key mail.Secret) (text string, err error) {
	if o == nil {
		return key.Reveal(), nil
	}
	o.asking.Lock()
	defer o.asking.Unlock()
	if o.passphrase.IsZero() {
		return key.Reveal(), nil
	}
	if text, err = vault.SealKey(key, o.passphrase); err == nil {
		o.holds(text, key)
	}
	return text, err
}

// holds notes the key in a sealed text. asking is held.
func (o *OwnKeys) holds(text string, key mail.Secret) {
	if o.unsealed == nil {
		o.unsealed = make(map[string]mail.Secret)
	}
	o.unsealed[text] = key.Clone()
}

// keep notes the new keys of these places.
func (o *OwnKeys) keep(places []*keyPlace) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range places {
		own := keyOf(&o.keys, p.variable)
		if *own = (mail.Secret{}); p.out != "" {
			*own = p.next
		}
	}
}

func keyOf(k *vault.Keys, variable string) *mail.Secret {
	if variable == vault.AdminKeyVar {
		return &k.Admin
	}
	return &k.Agent
}

// open opens the vault at path with the keys that find returns, and tries again where they
// are about to be replaced or have just been.
func (s *System) open(ctx context.Context, path string, o *vault.Options, find func(*System) (vault.Keys, error)) (v *vault.Vault, err error) {
	for try := range 4 {
		from := *s
		from.successors = try%2 == 1
		keys, failed := find(&from)
		if failed == nil {
			v, failed = vault.Open(ctx, path, s.Own.over(keys), o)
		}
		if try == 0 || failed == nil {
			err = failed
		}
		// A command that fetches a key may ask a person: once is enough.
		if !errors.Is(err, vault.ErrWrongKey) || s.asks() {
			break
		}
	}
	return v, err
}

// keyPlace is where a key comes from and where its successor goes.
type keyPlace struct {
	variable string // vault.AdminKeyVar or vault.AgentKeyVar
	ring     Keyring
	file     string // the file that holds the key, or
	name     string // its name in the keyring; neither where the process was handed the key
	from     string // the variable that handed it over, empty where there is none
	out      string // the file that gets the new key in place of these
	next     mail.Secret
	text     string // of the next key as it is kept: sealed where the former one was
	unseal   vault.Unseal
}

// place finds where a key comes from. fallback is where it is where no variable says it.
func (s *System) place(variable, fallback string) (p keyPlace, err error) {
	p = keyPlace{variable: variable, ring: s.Keyring, unseal: s.unseal}
	text := s.Getenv(variable)
	if text != "" {
		p.from = variable
	} else if s.Getenv(variable+"_COMMAND") != "" {
		p.from = variable + "_COMMAND"
	}
	if p.from == "" {
		if p.file = s.Getenv(variable + "_FILE"); p.file == "" {
			p.file = fallback
		}
		if p.file == "" {
			return p, nil
		}
		if p.file, err = filepath.EvalSymlinks(p.file); errors.Is(err, fs.ErrNotExist) {
			p.file = ""
			return p, nil
		}
		if err != nil {
			return p, err
		}
		b, err := ReadFile(p.file, 4096)
		if err != nil {
			return p, err
		}
		text = strings.TrimRight(string(b), "\r\n")
		clear(b)
	}
	if named, ok := strings.CutPrefix(text, vault.KeyringPrefix); ok {
		p.name, p.file = vault.KeyringName(named), ""
	}
	return p, nil
}

// String says where the present key is.
func (p *keyPlace) String() string {
	if p.name != "" {
		return "the system keyring"
	}
	return cmp.Or(p.from, p.file)
}

// target is the file that a new key is written to first.
func (p *keyPlace) target() string {
	if p.out != "" {
		return p.out
	}
	return p.file + successorFile
}

// writable refuses a place that a new key cannot be written to.
func (p *keyPlace) writable() error {
	if p.out != "" && strings.HasSuffix(p.out, successorFile) {
		return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("A key cannot be kept in %s: what ends in %s is only for the moment of a change.", p.out, successorFile), Hint: "Choose another name."}
	}
	if p.out != "" || p.name != "" || p.file != "" {
		return nil
	}
	option, from := "--agent-out", p.from
	if p.variable == vault.AdminKeyVar {
		option = "--admin-out"
	}
	if from == "" {
		return &discovery.Fault{Code: discovery.ConfigError, Message: "It is not known where the agent's key is kept.",
			Hint: "Set POSTERN_KEY_FILE to its file, or say with " + option + " FILE where the new one is to be written."}
	}
	return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The key comes from %s, where no new one can be put.", from),
		Hint: "Say with " + option + " FILE where it is to be written; move it from there to where the former one came from."}
}

// put puts the new key where it outlives this process, beside the present one.
func (p *keyPlace) put(ctx context.Context) error {
	if p.out == "" && p.name != "" {
		return p.ring.Set(ctx, p.name+successorName, p.next)
	}
	path := p.target()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, p.text+"\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if info, err := os.Stat(p.file); err == nil && p.out == "" {
		vault.SameOwner(path, info)
	}
	syncDir(filepath.Dir(path))
	return nil
}

// successor returns the key that put left, zero for none or a part of one.
func (p *keyPlace) successor(ctx context.Context) (key mail.Secret, err error) {
	if p.out == "" && p.name != "" {
		key, err = p.ring.Secret(ctx, p.name+successorName)
		if errors.Is(err, mail.ErrNotInKeyring) {
			err = nil
		}
		return key, err
	}
	b, err := ReadFile(p.target(), 4096)
	defer clear(b)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	text := strings.TrimRight(string(b), "\n")
	if p.variable == vault.AdminKeyVar && strings.HasPrefix(text, vault.PassphrasePrefix) {
		if key, err = p.unseal(ctx, text); !errors.Is(err, vault.ErrBadKey) { // else it is a part of one
			return key, err
		}
		return mail.Secret{}, nil
	}
	return mail.NewSecret([]byte(text)), err
}

// settle has the successor of a key take its place where it opens the vault, and removes it
// where it does not. What cannot be decided stays as it is.
func (p *keyPlace) settle(ctx context.Context, path string) error {
	if p.out == "" && p.name == "" && p.file == "" {
		return nil
	}
	key, err := p.successor(ctx)
	if err != nil {
		return err
	}
	defer key.Wipe()
	var keys vault.Keys
	*keyOf(&keys, p.variable) = key
	_, err = vault.Open(ctx, path, keys, nil)
	opens := err == nil
	if !opens && !errors.Is(err, vault.ErrWrongKey) && !errors.Is(err, vault.ErrBadKey) && !errors.Is(err, vault.ErrNoKey) {
		return err
	}
	switch {
	case p.out != "" && opens:
	case p.out != "":
		err = os.Remove(p.out)
	case p.name != "":
		if opens {
			err = p.ring.Set(ctx, p.name, key)
		} else {
			err = nil
		}
		if err == nil && !key.IsZero() {
			err = p.ring.Delete(ctx, p.name+successorName)
		}
	case opens:
		err = os.Rename(p.file+successorFile, p.file)
		syncDir(filepath.Dir(p.file))
	default:
		err = os.Remove(p.file + successorFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// realPath is the place of a vault as its Path tells it: absolute and without symbolic links,
// or an address without secrets.
func realPath(path string) (string, error) {
	if address, err := vault.IsAddress(path); address || err != nil {
		return vault.Described(path), err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// syncDir makes a new name in a directory durable, where the system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// rekey gives the vault of this process new keys.
func (s *System) rekey(ctx context.Context, store *store, r admin.Rekeying) (done []admin.NewKey, err error) {
	path, err := vault.DefaultPath(s.Getenv)
	if err != nil {
		return nil, err
	}
	if err := store.Ready(ctx); err != nil {
		return nil, err
	}
	if real, err := realPath(path); err != nil || real != store.Path() {
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "This vault ends with the process, and its keys with it.", Hint: "Point POSTERN_DB at the vault that is to get new keys."}
	}
	if !store.Admin() {
		return nil, vault.ErrAdminRequired
	}
	ctx, unlock, err := store.Lock(ctx, rekeyLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	places, err := s.settled(ctx, path)
	if err != nil {
		return nil, err
	}
	places[0].out, places[1].out = r.AdminOut, r.AgentOut
	now, err := s.keysFrom(ctx, s.Keyring, s.unseal)
	if err == nil && now.Agent.IsZero() {
		now.Agent, err = s.keyIn(ctx, vault.AgentKeyVar, AgentKeyFile(path))
	}
	if err != nil {
		return nil, err
	}
	now = s.Own.over(now)
	var next vault.Keys
	var replaced []*keyPlace
	for i, wanted := range []bool{r.Admin, r.Agent} {
		p := &places[i]
		if !wanted {
			continue
		}
		if err := p.writable(); err != nil {
			return nil, err
		}
		text, err := vault.NewKey()
		if err != nil {
			return nil, err
		}
		p.next, p.text = mail.NewSecret([]byte(text)), text
		if p.variable == vault.AdminKeyVar {
			if p.text, err = s.Own.seal(p.next); err != nil {
				return nil, err
			}
		}
		*keyOf(&next, p.variable) = p.next
		replaced = append(replaced, p)
		key := admin.NewKey{Key: []string{"admin", "agent"}[i], In: p.String()}
		if p.out != "" {
			key.In, key.Former = p.out, key.In
		}
		done = append(done, key)
	}
	defer func() { // also where it is not known what happened: the vault tells
		ctx := context.WithoutCancel(ctx)
		for _, p := range replaced {
			if failed := p.settle(ctx, path); failed != nil && err == nil {
				err = fmt.Errorf("the vault has its new keys, and the new one did not take the place of the former one in %s: %w", p, failed)
			}
		}
	}()
	for i, p := range replaced {
		if err := p.put(ctx); err != nil {
			replaced = replaced[:i] // a file that was there before is not ours to remove
			return nil, placeFault(p, err)
		}
	}
	if err := vault.Rekey(ctx, path, now, next); err != nil {
		return nil, err
	}
	s.Own.keep(replaced)
	return done, nil
}

// settled returns the places of the administrator's and the agent's key, after settling what
// a killed process left there.
func (s *System) settled(ctx context.Context, path string) (places [2]keyPlace, err error) {
	for i, of := range [2]struct{ variable, fallback string }{{vault.AdminKeyVar, ""}, {vault.AgentKeyVar, AgentKeyFile(path)}} {
		if places[i], err = s.place(of.variable, of.fallback); err == nil {
			err = places[i].settle(ctx, path)
		}
		if err != nil {
			return places, err
		}
	}
	return places, nil
}

// placeFault says that a new key could not be written.
func placeFault(p *keyPlace, err error) error {
	var path *fs.PathError
	if p.name == "" && errors.As(err, &path) {
		return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The new key cannot be written to %s: %v.", path.Path, path.Err),
			Hint: "Name a file that does not exist yet, in a directory that you may write, with --admin-out or --agent-out. Nothing was changed.", Err: err}
	}
	return err
}
