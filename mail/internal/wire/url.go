package wire

import (
	"errors"
	"net/url"
	"strings"
)

const maxURL = 2048

// CheckURL refuses an address that secrets must not be sent to: any but https, or plain
// http to a loopback host (see Loopback). A user name or a fragment is not allowed (RFC
// 6749 sections 3.1 and 3.2).
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > maxURL || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("it is not an address")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it must begin with https://")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("it names no host")
	case u.User != nil:
		return errors.New("it holds a user name")
	case strings.Contains(address, "#"):
		return errors.New("it holds a fragment")
	case u.Scheme == "http" && !Loopback(u.Hostname()):
		return errors.New("http is allowed to this machine only: use https")
	}
	return nil
}
