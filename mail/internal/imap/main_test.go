package imap

import (
	"os"
	"testing"

	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func TestMain(m *testing.M) { os.Exit(scripted.Main(m.Run)) }
