package vault

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func grant(name string, expires time.Time, accounts ...string) Grant {
	return Grant{Name: name, Accounts: accounts, Profile: "read", Identity: "repo:" + name, Expires: expires}
}

func mustGrant(t testing.TB, v *Vault, g Grant) (Grant, string) {
	t.Helper()
	added, token, err := v.AddGrant(t.Context(), g, g.Expires.Sub(v.now().Truncate(time.Second)))
	must(t, err)
	return added, token.Reveal()
}

func TestOnlyItsTokenOpensAGrant(t *testing.T) {
	t.Parallel()
	c := &fakeClock{time.Date(2026, 3, 9, 12, 0, 0, 500, time.UTC)}
	admin, agent := newVault(t, &Options{Now: c.now})
	added, token := mustGrant(t, admin, grant("laptop", c.at.Add(time.Hour), "work", "home", "work"))
	if !regexp.MustCompile(`\Apostern_[a-z2-7]{52}\z`).MatchString(token) {
		t.Errorf("token %q", token)
	}
	want := Grant{Name: "laptop", ID: added.ID, Accounts: []string{"home", "work"}, Profile: "read", Identity: "repo:laptop",
		Created: time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC), Expires: time.Date(2026, 3, 9, 13, 0, 0, 0, time.UTC)}
	for _, v := range []*Vault{admin, agent} {
		for what, get := range map[string]func() (Grant, error){
			"token": func() (Grant, error) { return v.GrantOf(t.Context(), token) },
			"id":    func() (Grant, error) { return v.GrantByID(t.Context(), added.ID) },
		} {
			if g, err := get(); err != nil || fmt.Sprint(g) != fmt.Sprint(want) || added.ID == "" {
				t.Errorf("by %s: %+v, %v; want %+v", what, g, err, want)
			}
		}
	}
	_, other := mustGrant(t, admin, grant("desk", c.at.Add(2*time.Hour), "work"))
	if other == token {
		t.Fatal("two grants have one token")
	}
	for _, wrong := range []string{"", GrantTokenPrefix, token[:len(token)-1], token + "a", strings.ToUpper(token), " " + token, strings.TrimPrefix(token, GrantTokenPrefix), added.ID, "laptop"} {
		wantErr(t, second(agent.GrantOf(t.Context(), wrong)), ErrNoGrant, "%q opens", wrong)
		wantErr(t, second(agent.GrantByID(t.Context(), strings.TrimSuffix(wrong, added.ID))), ErrNoGrant, "id %q opens", wrong)
	}
	c.at = want.Expires.Add(-time.Nanosecond)
	must(t, second(agent.GrantOf(t.Context(), token)))
	c.at = want.Expires
	wantErr(t, second(agent.GrantOf(t.Context(), token)), ErrNoGrant, "at its end")
	wantErr(t, second(agent.GrantByID(t.Context(), added.ID)), ErrNoGrant, "at its end, by id")
	if list, err := agent.Grants(t.Context()); err != nil || len(list) != 2 || list[1].Name != "laptop" {
		t.Errorf("an expired grant is not listed: %+v, %v", list, err)
	}
	if g, err := agent.GrantOf(t.Context(), other); err != nil || g.Name != "desk" {
		t.Errorf("the other one ended with it: %+v, %v", g, err)
	}
}

// A grant made or removed by one process is so for every other at once.
func TestAGrantEndsInEveryProcessAtOnce(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	at := time.Now().Add(time.Hour)
	first, token := mustGrant(t, admin, grant("laptop", at, "work"))
	must(t, second(agent.GrantOf(t.Context(), token)))
	must(t, admin.RemoveGrant(t.Context(), "laptop"))
	for _, err := range []error{second(agent.GrantOf(t.Context(), token)), second(agent.GrantByID(t.Context(), first.ID)), admin.RemoveGrant(t.Context(), "laptop")} {
		wantErr(t, err, ErrNoGrant, "removed")
	}
	again, other := mustGrant(t, admin, grant("laptop", at, "work"))
	if again.ID == first.ID || other == token {
		t.Error("another grant of the name is the same grant")
	}
	wantErr(t, second(agent.GrantOf(t.Context(), token)), ErrNoGrant, "the old token opens the new grant")
	must(t, second(agent.GrantOf(t.Context(), other)))
	_, _, err := admin.AddGrant(t.Context(), grant("laptop", at, "work"), time.Hour)
	wantErr(t, err, ErrGrantExists, "a second of one name")
}

func TestAGrantDoesNotCoverANewAccountOfTheSameName(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	mustAdd(t, admin, "work")
	mustAdd(t, admin, "home")
	_, token := mustGrant(t, admin, grant("laptop", time.Now().Add(time.Hour), "work", "home"))
	must(t, admin.RemoveAccount(t.Context(), "work"))
	mustAdd(t, admin, "work")
	if g, err := agent.GrantOf(t.Context(), token); err != nil || !slices.Equal(g.Accounts, []string{"home"}) {
		t.Errorf("%+v, %v", g, err)
	}
	must(t, admin.RemoveAccount(t.Context(), "home"))
	if g, err := agent.GrantOf(t.Context(), token); err != nil || len(g.Accounts) != 0 {
		t.Errorf("%+v, %v", g, err)
	}
	must(t, admin.RemoveGrant(t.Context(), "laptop"))
	if list, err := agent.Grants(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestInvalidGrantsAreRefused(t *testing.T) {
	t.Parallel()
	numbered := func(name string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(name, i))
		}
		return list
	}
	admin, agent := newVault(t, nil)
	at := time.Now().Add(time.Hour)
	for name, change := range map[string]func(*Grant){
		"no name":          func(g *Grant) { g.Name = "" },
		"a name with a :":  func(g *Grant) { g.Name = "a:b" },
		"nothing granted":  func(g *Grant) { g.Accounts, g.Identity = nil, "" },
		"no account name":  func(g *Grant) { g.Accounts = []string{"*"} },
		"no profile":       func(g *Grant) { g.Profile = "" },
		"no identity":      func(g *Grant) { g.Identity = "repo" },
		"identity newline": func(g *Grant) { g.Identity = "repo:a\n" },
		"over already":     func(g *Grant) { g.Expires = time.Now().Add(-time.Second) },
		"no end":           func(g *Grant) { g.Expires = time.Time{} },
		"too long":         func(g *Grant) { g.Expires = time.Now().Add(MaxGrantTime + time.Minute) },
		"no extension":     func(g *Grant) { g.Extensions = []string{"contacts"} },
		"extension's end":  func(g *Grant) { g.Extensions = []string{"x-a\n"} },
		"many extensions":  func(g *Grant) { g.Extensions = numbered("x-", MaxGrantExtensions+1) },
		"many accounts":    func(g *Grant) { g.Accounts = numbered("a", MaxGrantAccounts+1) },
	} {
		g := grant("laptop", at, "work")
		change(&g)
		if _, token, err := admin.AddGrant(t.Context(), g, time.Until(g.Expires)); !errors.Is(err, ErrInvalid) || !token.IsZero() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := agent.AddGrant(t.Context(), grant("laptop", at, "work"), time.Hour); !errors.Is(err, ErrAdminRequired) {
		t.Errorf("an agent grants: %v", err)
	}
	wantErr(t, agent.RemoveGrant(t.Context(), "laptop"), ErrAdminRequired, "an agent ends a grant")
}
