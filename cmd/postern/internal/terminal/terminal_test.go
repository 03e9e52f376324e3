package terminal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestColorOnlyWhereItIsWanted(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"TERM": "xterm"}, true},
		{map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		{map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
		{map[string]string{"TERM": "dumb"}, false},
	} {
		if got := Color(func(name string) string { return tc.env[name] }); got != tc.want {
			t.Errorf("%v: %v", tc.env, got)
		}
	}
}

func TestNothingIsReadOnceTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		read := false
		_, err := Await(ctx, func() (string, error) { read = true; return "", nil })
		synctest.Wait()
		if read || !errors.Is(err, context.Canceled) {
			t.Errorf("read %v, %v", read, err)
		}
	})
}
