package imap

import (
	"errors"
	"strings"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// Namespaces says which folders are the user's own, by how their names begin (RFC 9051
// section 6.3.10). The zero Namespaces is that of a server that does not tell.
type Namespaces struct {
	own, others []string // in lower case; with the delimiter at their end
}

// Own reports whether a folder is in the user's own namespace: the longest beginning that
// fits decides. Where the server does not tell, the usual names of shared folders are not.
// Names are compared without regard to case, as some servers do.
func (n Namespaces) Own(folder string) bool {
	folder = strings.ToLower(folder)
	first, _, _ := strings.Cut(strings.NewReplacer(".", "/", `\`, "/").Replace(folder), "/")
	switch {
	case folder == "inbox":
		return true
	case len(n.own) == 0 && len(n.others) == 0:
		return !strings.HasPrefix(folder, "#") && !usualShared[first]
	}
	own := longest(n.own, folder)
	// A first # is for namespaces alone (RFC 9051 section 5.1.2.1): one that was not told of
	// is not the user's.
	return own > longest(n.others, folder) && (own > 0 || !strings.HasPrefix(folder, "#"))
}

// longest is the length of the longest of the beginnings that fits, -1 for none. The name
// of a namespace without its delimiter belongs to it.
func longest(beginnings []string, folder string) int {
	n := -1
	for _, b := range beginnings {
		if strings.HasPrefix(folder, b) || b != "" && folder == b[:len(b)-1] {
			n = max(n, len(b))
		}
	}
	return n
}

// usualShared are the usual first parts of the names of shared folders, in lower case.
var usualShared = map[string]bool{"public": true, "public folders": true, "shared": true, "shared folders": true, "other users": true, "user": true}

// Namespaces starts a NAMESPACE, the first time on a connection: later the answer is there
// already. Where the server offers none, or refuses it, the answer is the zero Namespaces.
func (s *Session) Namespaces() *Pending[Namespaces] {
	if s.spaces != nil {
		return s.spaces
	}
	if s.settled() && s.told && !contains(s.caps, "NAMESPACE") && !contains(s.caps, "IMAP4REV2") {
		return &Pending[Namespaces]{func() (Namespaces, error) { return Namespaces{}, nil }}
	}
	var cmd *imapclient.NamespaceCommand
	s.guard.cork(func() { cmd = s.client.Namespace() })
	s.spaces = &Pending[Namespaces]{func() (n Namespaces, err error) {
		s.guard.flush()
		_, err = cmd.Wait()
		if errors.As(err, new(*goimap.Error)) {
			err = nil
		}
		if told := s.guard.mend.spaces.Load(); err == nil && told != nil {
			n = *told
		}
		s.spaces = &Pending[Namespaces]{func() (Namespaces, error) { return n, s.fail(StageList, err) }}
		return s.spaces.Wait()
	}}
	return s.spaces
}

// readNamespaces reads the arguments of a NAMESPACE response: a list for the user's own
// folders, one for those of other users, one for shared ones, each of which can be NIL.
func readNamespaces(args string) (n Namespaces, ok bool) {
	c := cursor{b: args}
	for i := range 3 {
		c.spaces()
		if c.accept('(') {
			for c.spaces(); c.accept('('); c.spaces() {
				beginning, ok := c.str()
				if !ok || !decodable(beginning) {
					return n, false
				}
				beginning = strings.ToLower(decoded(beginning))
				if i == 0 {
					n.own = append(n.own, beginning)
				} else {
					n.others = append(n.others, beginning)
				}
				for c.spaces(); !c.accept(')'); c.spaces() { // the delimiter and what extends it
					if !c.skip() {
						return n, false
					}
				}
			}
			if !c.accept(')') {
				return n, false
			}
		} else if c.atom() != "NIL" {
			return n, false
		}
	}
	return n, true
}
