package wire

import (
	"errors"
	"strings"

	"github.com/emersion/go-sasl"
)

// XOAuth2 is the mechanism that Google and Microsoft had for access tokens before
// OAUTHBEARER; some of their servers still offer only it.
const XOAuth2 = "XOAUTH2"

// ErrNoMechanism is returned by SASL if the server offers no mechanism for this kind of
// credential.
var ErrNoMechanism = errors.New("server offers no way to log in")

// noMechanism names that kind.
type noMechanism string

func (e noMechanism) Error() string        { return ErrNoMechanism.Error() + " with " + string(e) }
func (e noMechanism) Is(target error) bool { return target == ErrNoMechanism }

// SASL returns a client for one login, with the best offered mechanism for the credential:
// PLAIN, then LOGIN for a password; OAUTHBEARER, then XOAUTH2 for a token. A token never
// leaves as a password, nor a password as a token. offered reports whether the server has a
// mechanism, given in upper case. It fails before any byte is sent: for a credential or
// user name that must not be sent, or with an error that matches ErrNoMechanism.
//
// A server that does not accept a token says why in a challenge before it refuses; the
// clients send the required answer and do not keep the challenge.
func SASL(offered func(mechanism string) bool, username string, c Credential) (sasl.Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := checkUser(username); err != nil {
		return nil, err
	}
	if c.Token != "" {
		switch {
		case offered(sasl.OAuthBearer):
			return bearer(username, c.Token), nil
		case offered(XOAuth2):
			return xoauth2(username, c.Token), nil
		}
		return nil, noMechanism("an access token")
	}
	switch {
	case offered(sasl.Plain):
		return sasl.NewPlainClient("", username, c.Password), nil
	case offered(sasl.Login):
		return &loginClient{left: []string{username, c.Password}}, nil
	}
	return nil, noMechanism("a password")
}

// token is a mechanism in which the client sends one message.
type token struct {
	mechanism string
	first     string
	last      string // the answer to the challenge that comes before a refusal
}

// Start implements sasl.Client.
func (t *token) Start() (string, []byte, error) { return t.mechanism, []byte(t.first), nil }

// Next implements sasl.Client. The server's data is ignored: it has just got a token, and
// could repeat it.
func (t *token) Next([]byte) ([]byte, error) { return []byte(t.last), nil }

func xoauth2(username, secret string) *token {
	return &token{mechanism: XOAuth2, first: "user=" + username + "\x01auth=Bearer " + secret + "\x01\x01"}
}

// bearer is OAUTHBEARER (RFC 7628). The library's own client gives up at the
// challenge, where the dummy of section 3.2.3 is due, and does not escape the user
// name (RFC 5801 section 4).
func bearer(username, secret string) *token {
	name := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(username)
	return &token{mechanism: sasl.OAuthBearer, first: "n,a=" + name + ",\x01auth=Bearer " + secret + "\x01\x01", last: "\x01"}
}

// loginClient is LOGIN, which has no standard. Servers differ in whether they take the name
// with the command and in what they call the fields, which the library's client depends on;
// they all ask in the same order.
type loginClient struct{ left []string }

// Start implements sasl.Client.
func (*loginClient) Start() (string, []byte, error) { return sasl.Login, nil, nil }

// Next implements sasl.Client.
func (l *loginClient) Next([]byte) ([]byte, error) {
	if len(l.left) == 0 {
		return nil, sasl.ErrUnexpectedServerChallenge
	}
	next := l.left[0]
	l.left = l.left[1:]
	return []byte(next), nil
}
