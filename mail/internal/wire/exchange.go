package wire

import (
	"encoding/base64"
	"strings"

	"github.com/emersion/go-sasl"
)

// maxChallenges bounds the challenges of a server in one login.
const maxChallenges = 16

var (
	errChallenge = Cause(KindProtocol, "the server's challenge is not base64")
	errEndless   = Cause(KindProtocol, "the server's challenges do not end")
)

// Exchange is one SASL login in progress, with its messages in base64.
type Exchange struct {
	// Whole says that the command holds every message the client sends in a login that is
	// accepted.
	Whole bool

	client     sasl.Client
	first      []byte // the first message, if it waits for the server's request
	challenges int
}

// Begin begins a login, and returns the command for it: the verb, the mechanism, and
// the first message where the whole line has room for it, with its end.
func Begin(client sasl.Client, verb string, room int) (x *Exchange, command string, err error) {
	mechanism, first, err := client.Start()
	if err != nil {
		return nil, "", err
	}
	x, command = &Exchange{client: client, first: first}, verb+" "+mechanism
	if first != nil {
		initial := base64.StdEncoding.EncodeToString(first)
		if initial == "" {
			initial = "="
		}
		if len(command)+len(" ")+len(initial)+len("\r\n") <= room {
			x.first, x.Whole, command = nil, true, command+" "+initial
		}
	}
	return x, command, nil
}

// Answer returns the answer to a challenge; * gives up, and the server refuses. The error
// has its kind, and holds no part of the challenge.
func (x *Exchange) Answer(challenge string) (string, error) {
	if x.challenges++; x.challenges > maxChallenges {
		return "", errEndless
	}
	next := x.first
	if x.first = nil; next == nil {
		asked, err := base64.StdEncoding.DecodeString(strings.TrimSpace(challenge))
		if err != nil {
			return "", errChallenge
		}
		if next, err = x.client.Next(asked); err != nil {
			return "*", nil
		}
	}
	return base64.StdEncoding.EncodeToString(next), nil
}
