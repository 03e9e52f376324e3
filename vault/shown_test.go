package vault

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault/vaulttest"
)

func TestWhatWasShownIsKeptPerPrincipal(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v, again := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	if s, err := v.Shown(t.Context(), ""); err != nil || !reflect.DeepEqual(s, Shown{}) {
		t.Fatalf("a principal that was shown nothing: %+v, %v", s, err)
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	want := Shown{Folders: map[string]ShownFolder{"work:Réunions": {Mailbox: "imap a:993 u", UIDValidity: 7, Time: at, Changed: at.Add(-time.Hour)}}}
	must(t, v.UpdateShown(t.Context(), "", func(s *Shown) bool { *s = want; return true }))
	if got, err := again.Shown(t.Context(), ""); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("from a second process: %+v, %v", got, err)
	}
	if got, err := v.Shown(t.Context(), "other"); err != nil || got.Folders != nil {
		t.Errorf("another principal has it: %+v, %v", got, err)
	}
	written := vaulttest.Content(t, path)
	must(t, v.UpdateShown(t.Context(), "", func(s *Shown) bool { s.Folders = nil; return false }))
	after := vaulttest.Content(t, path)
	if !bytes.Equal(written, after) {
		t.Error("the vault was written although nothing changed")
	}
	if bytes.Contains(after, []byte("Réunions")) {
		t.Error("the name of a folder can be read in the vault")
	}
}
