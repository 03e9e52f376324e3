package mailbox_test

import (
	"os"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func TestMain(m *testing.M) { os.Exit(scripted.Main(m.Run)) }

// everywhere runs a test on every server that the same logic must work on, at the same time.
func everywhere(t *testing.T, test func(t *testing.T, e mailtest.Endpoint)) {
	t.Helper()
	t.Parallel()
	on(t, mailtest.SharedEndpoints(t), test)
}

func on(t *testing.T, all []mailtest.Endpoint, test func(t *testing.T, e mailtest.Endpoint)) {
	t.Helper()
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// dovecot is the server of a test to which it does not matter which one it is.
func dovecot(t *testing.T) mailtest.Endpoint {
	t.Helper()
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	return e
}

func onDovecot(t *testing.T, user string, change ...func(*mail.Account)) *box {
	t.Helper()
	return open(t, dovecot(t), user, change...)
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
