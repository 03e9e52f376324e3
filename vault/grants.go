package vault

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
)

// A Grant lets the holder of its token use some of the accounts for some time. It is
// policy: the admin signs it, so that an agent can neither make nor widen it. Only a
// digest of the token is kept.
type Grant struct {
	Name     string   `json:"name"`     // in the form of an account name
	ID       string   `json:"id"`       // unique: a new grant of the same name has another
	Accounts []string `json:"accounts"` // sorted; may be empty where there is an Identity
	Profile  string   `json:"profile"`  // name of a set of commands; the vault does not know which profiles exist
	Identity string   `json:"identity"` // in the agent mailbox; empty without one
	// Extensions are the names of the extensions that it may run, sorted: Accounts does not
	// bound their access. The vault does not know which extensions exist.
	Extensions []string `json:"extensions,omitempty"`
	// Questions tells whether its client may ask a person and have the answer believed.
	Questions bool      `json:"questions,omitempty"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"` // it ends with this moment
}

// Bounds of grants.
const (
	MaxGrants          = 1000
	MaxGrantAccounts   = 100
	MaxGrantExtensions = 32
	MaxGrantTime       = 366 * 24 * time.Hour
)

// GrantTokenPrefix begins every token, so that a leaked one is recognized.
const GrantTokenPrefix = "postern_"

const grantTokenBytes = 32 // of randomness

// ErrNoGrant is returned for a token without a grant (never made, removed, or
// expired) and for an unknown name.
var ErrNoGrant = errors.New("no such grant")

// grantRecord is a Grant as stored.
type grantRecord struct {
	Grant
	Digest []byte `json:"digest"` // keyed, of the token
}

// AgentIdentityPattern is the grammar of an agent's identity, to be matched whole
// (003 TC1).
const AgentIdentityPattern = `[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*`

var agentIdentity = regexp.MustCompile(`\A` + AgentIdentityPattern + `\z`)

// ValidAgentIdentity reports whether s is project:name, whole.
func ValidAgentIdentity(s string) bool { return agentIdentity.MatchString(s) }

var (
	grantProfile   = regexp.MustCompile(`\A[a-z][a-z0-9-]{0,31}\z`)
	grantExtension = regexp.MustCompile(`\Ax-[a-z0-9-]{1,62}\z`)
)

func (g *Grant) validate() error {
	switch {
	case !mail.ValidAccountName(g.Name):
		return fmt.Errorf("%w: a grant's name must be 1 to 64 letters, digits, - or _", ErrInvalid)
	case len(g.Accounts) == 0 && g.Identity == "":
		return fmt.Errorf("%w: a grant needs an account or an identity", ErrInvalid)
	case len(g.Accounts) > MaxGrantAccounts:
		return fmt.Errorf("%w: a grant can have at most %d accounts", ErrInvalid, MaxGrantAccounts)
	case !grantProfile.MatchString(g.Profile):
		return fmt.Errorf("%w: a grant needs the name of a profile", ErrInvalid)
	case g.Identity != "" && !ValidAgentIdentity(g.Identity):
		return fmt.Errorf("%w: a grant's identity must be project:name", ErrInvalid)
	case !g.Expires.After(g.Created) || g.Expires.Sub(g.Created) > MaxGrantTime:
		return fmt.Errorf("%w: a grant must end, at most %d days from now", ErrInvalid, int(MaxGrantTime/(24*time.Hour)))
	}
	if len(g.Extensions) > MaxGrantExtensions {
		return fmt.Errorf("%w: a grant can have at most %d extensions", ErrInvalid, MaxGrantExtensions)
	}
	for _, e := range g.Extensions {
		if !grantExtension.MatchString(e) {
			return fmt.Errorf("%w: an extension's name is x- with lower-case letters, digits and hyphens behind", ErrInvalid)
		}
	}
	for _, a := range g.Accounts {
		if !mail.ValidAccountName(a) {
			return fmt.Errorf("%w: the grant names an account that cannot exist", ErrInvalid)
		}
	}
	return nil
}

// AddGrant adds a grant for a lifetime, and returns it with its token, which cannot be
// shown again. The vault sets ID, Created and Expires; the caller checks that the accounts
// exist. Only the admin may. Errors match ErrAdminRequired, ErrGrantExists or ErrInvalid.
func (v *Vault) AddGrant(ctx context.Context, g Grant, lifetime time.Duration) (added Grant, token mail.Secret, err error) {
	if err := v.Ready(ctx); err != nil {
		return Grant{}, mail.Secret{}, err
	}
	text, digest := v.newGrantToken()
	g.ID = strings.ToLower(rand.Text())
	g.Created = v.now().UTC().Truncate(time.Second)
	g.Expires = g.Created.Add(lifetime.Truncate(time.Second))
	g.Accounts = slices.Compact(slices.Sorted(slices.Values(g.Accounts)))
	g.Extensions = slices.Compact(slices.Sorted(slices.Values(g.Extensions)))
	if err := g.validate(); err != nil {
		return Grant{}, mail.Secret{}, err
	}
	record, err := json.Marshal(grantRecord{g, digest})
	if err != nil {
		return Grant{}, mail.Secret{}, err
	}
	err = v.change(ctx, func(c *policyChange) error {
		if _, ok := c.p.records[bucketGrants][g.Name]; ok {
			return fmt.Errorf("%w: %s", ErrGrantExists, g.Name)
		}
		if len(c.p.records[bucketGrants]) >= MaxGrants {
			return fmt.Errorf("%w: there are %d grants, remove some first", ErrInvalid, MaxGrants)
		}
		return c.put(bucketGrants, g.Name, record)
	})
	if err != nil {
		return Grant{}, mail.Secret{}, err
	}
	return g, mail.NewSecret(text), nil
}

// newGrantToken makes a token and its stored digest.
func (v *Vault) newGrantToken() (text, digest []byte) {
	random := make([]byte, grantTokenBytes)
	_, _ = rand.Read(random) // it never fails
	defer clear(random)
	text = []byte(GrantTokenPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random)))
	return text, v.grantDigest(text)
}

// grantDigest returns a token's keyed digest. A stolen file thus does not even
// tell whether a found token belongs to it.
func (v *Vault) grantDigest(token []byte) []byte {
	return keyedDigest(v.digestKey, []byte("postern grant"), token)
}

// RemoveGrant ends a grant; every process notices with its next command. Only the
// admin may call it. Errors match ErrAdminRequired or ErrNoGrant.
func (v *Vault) RemoveGrant(ctx context.Context, name string) error {
	return v.change(ctx, func(c *policyChange) error {
		if _, ok := c.p.records[bucketGrants][name]; !ok {
			return ErrNoGrant
		}
		return c.drop(bucketGrants, name)
	})
}

// Grants returns every grant, expired ones too, sorted by name.
func (v *Vault) Grants(ctx context.Context) ([]Grant, error) {
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Grant, 0, len(p.grantList))
	for i := range p.grantList {
		list = append(list, p.grantList[i].copy())
	}
	return list, p.grantErr
}

// GrantOf returns the present grant of a token. The error matches ErrNoGrant for a token
// without one. Its duration reveals nothing of the token: it is compared with every
// grant's, in constant time.
func (v *Vault) GrantOf(ctx context.Context, token string) (Grant, error) {
	if err := v.Ready(ctx); err != nil {
		return Grant{}, err
	}
	digest := v.grantDigest([]byte(token))
	return v.grantWhere(ctx, func(g *grantRecord) int { return subtle.ConstantTimeCompare(g.Digest, digest) })
}

// GrantByID returns the present grant with the ID. The error matches ErrNoGrant
// where it was removed or has expired.
func (v *Vault) GrantByID(ctx context.Context, id string) (Grant, error) {
	return v.grantWhere(ctx, func(g *grantRecord) int { return subtle.ConstantTimeCompare([]byte(g.ID), []byte(id)) })
}

// grantWhere returns the grant for which is returns 1.
func (v *Vault) grantWhere(ctx context.Context, is func(*grantRecord) int) (Grant, error) {
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return Grant{}, err
	}
	if p.grantErr != nil {
		return Grant{}, p.grantErr
	}
	found := -1
	for i := range p.grantList {
		found = subtle.ConstantTimeSelect(is(&p.grantList[i]), i, found)
	}
	if found < 0 || !v.now().Before(p.grantList[found].Expires) {
		return Grant{}, ErrNoGrant
	}
	return p.grantList[found].copy(), nil
}

func (g *grantRecord) copy() Grant {
	c := g.Grant
	c.Accounts, c.Extensions = slices.Clone(c.Accounts), slices.Clone(c.Extensions)
	return c
}

// parseGrants decodes the records, sorted by name.
func parseGrants(records map[string][]byte) ([]grantRecord, error) {
	var list []grantRecord
	for _, name := range slices.Sorted(maps.Keys(records)) {
		g, err := parseGrant(name, records[name])
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

func parseGrant(name string, record []byte) (grantRecord, error) {
	var g grantRecord
	if err := decodeStrict(record, &g); err != nil {
		return grantRecord{}, fmt.Errorf("%w: grant %s: %w", ErrFutureFormat, name, err)
	}
	if g.Name != name || g.ID == "" || len(g.Digest) != hashSize {
		return grantRecord{}, fmt.Errorf("%w: grant %s", ErrDamaged, name)
	}
	return g, nil
}

// forgetAccount takes a removed account out of every grant: a new account of
// the same name was never granted.
func (c *policyChange) forgetAccount(account string) error {
	for _, name := range slices.Sorted(maps.Keys(c.p.records[bucketGrants])) {
		g, err := parseGrant(name, c.p.records[bucketGrants][name])
		if err != nil {
			return err
		}
		i, ok := slices.BinarySearch(g.Accounts, account)
		if !ok {
			continue
		}
		g.Accounts = slices.Delete(g.Accounts, i, i+1)
		record, err := json.Marshal(g)
		if err != nil {
			return err
		}
		if err := c.put(bucketGrants, name, record); err != nil {
			return err
		}
	}
	return nil
}
