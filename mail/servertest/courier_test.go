package servertest

import (
	"testing"

	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
)

func TestCourierLogsInOverSTARTTLS(t *testing.T) {
	t.Parallel()
	s := SharedCourier(t)
	for user, ok := range map[string]bool{someone(): true, "../u": false} {
		c, err := imapclient.DialStartTLS(s.IMAPAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		must(t, err)
		defer c.Close()
		if err := c.Authenticate(sasl.NewPlainClient("", user, Password)); (err == nil) != ok {
			t.Errorf("%q: %v, want success %v", user, err, ok)
		}
	}
}
