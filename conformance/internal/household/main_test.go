package household

import (
	"os"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }
