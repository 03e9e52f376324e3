package wire

import (
	"encoding/base64"
	"strings"
	"unicode"
)

const (
	maxHeard = 2048 // bytes of a refusal that are looked at
	piece    = 8    // so many bytes of a form of a secret are too many to show
)

// Words returns what a server said when it refused or ended the login of username with c, cleaned.
// It returns nothing where the server repeats the secret: as it is, in base64 at any place of
// something longer, in the messages of the SASL mechanisms, or a piece of eight bytes of one
// of these. Case, spaces, quoting and the two alphabets of base64 make no difference.
func (c *Credential) Words(username, heard string) string {
	heard = heard[:min(len(heard), maxHeard)]
	said, secret := Clean(heard), c.Password+c.Token
	for _, text := range []string{squeezed(heard), squeezed(said)} {
		if repeats(text, squeezed(secret)) {
			return ""
		}
		for _, m := range []string{secret, "\x00" + username + "\x00" + secret, bearer(username, secret).first, xoauth2(username, secret).first} {
			for before := range 3 {
				form := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:before] + m))
				if form = form[(before*8+5)/6:]; before > 0 && len(form) > 0 {
					form = form[:len(form)-1] // its last character may hold bits of what follows
				}
				if len(form) >= 4 && repeats(text, squeezed(form)) {
					return ""
				}
			}
		}
	}
	return said
}

// squeezed is a text without what may differ between a secret and its repetition.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return '+'
		case r == '_':
			return '/'
		case r == '=', r == '\\', r == '"', unicode.IsSpace(r), unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// repeats reports whether a text holds a form of a secret, or a piece of it.
func repeats(text, form string) bool {
	if len(form) <= piece {
		return strings.Contains(text, form)
	}
	for i := range max(len(text)-piece+1, 0) {
		if strings.Contains(form, text[i:i+piece]) {
			return true
		}
	}
	return false
}
