package vault

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/postern-mail/postern/mail"
)

func TestSeenStateIsKeptPerFolder(t *testing.T) {
	t.Parallel()
	v, again := newVault(t, nil)
	if s, err := v.Seen(t.Context(), "work", "INBOX"); err != nil || !reflect.DeepEqual(s, mail.SeenState{}) {
		t.Fatalf("a folder nobody looked at: %+v, %v", s, err)
	}
	want := mail.SeenState{Mailbox: "m", UIDValidity: 7, Floor: 3, Acked: []mail.UIDRange{{First: 5, Last: 6}}}
	must(t, v.UpdateSeen(t.Context(), "work", "INBOX", func(s *mail.SeenState) error { *s = want; return nil }))
	failure := errors.New("no")
	wantErr(t, v.UpdateSeen(t.Context(), "work", "INBOX", func(s *mail.SeenState) error { s.Floor = 99; return failure }), failure, "UpdateSeen")
	if got, err := again.Seen(t.Context(), "work", "INBOX"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("from a second process: %+v, %v; want %+v", got, err, want)
	}
	for _, other := range [][2]string{{"work", "inbox"}, {"work2", "INBOX"}, {"wor", "k\x00INBOX"}} {
		if s, err := v.Seen(t.Context(), other[0], other[1]); err != nil || s.UIDValidity != 0 {
			t.Errorf("%q has the state of another folder: %+v, %v", other, s, err)
		}
	}
}

func TestKeysDifferByPurposeAndVault(t *testing.T) {
	t.Parallel()
	v, same := newVault(t, nil)
	other, _ := newVault(t, nil)
	mustKey := func(t *testing.T, v *Vault, purpose string) []byte {
		k, err := v.Key(t.Context(), purpose)
		must(t, err)
		return k
	}
	k := mustKey(t, v, "cursor")
	if len(k) != 32 || !bytes.Equal(k, mustKey(t, same, "cursor")) {
		t.Error("two processes on one vault have different keys")
	}
	if bytes.Equal(k, mustKey(t, v, "cursors")) || bytes.Equal(k, mustKey(t, other, "cursor")) {
		t.Error("another purpose or vault has the same key")
	}
}
