package authres

import (
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Signed reports whether the border saw a DKIM signature (RFC 6376) pass that is aligned with
// from, see Verdict, and that is about all of the fields, each of which the header has once.
// Where several signatures may be the one that passed, each must be about them: a stranger can
// add one that fails.
func (b *Border) Signed(h rfc5322.Header, from string, fields ...string) bool {
	found, ok := b.said(h)
	if !ok || from == "" || !h.Certain("DKIM-Signature") {
		return false
	}
	for _, f := range fields {
		if len(h.Values(f)) != 1 || !h.Certain(f) {
			return false // the signature may be about another one than a reader takes
		}
	}
	var signatures []map[string]string
	for _, v := range h.Values("DKIM-Signature") {
		tags, ok := tagList(v)
		if !ok {
			return false
		}
		signatures = append(signatures, tags)
	}
	for _, f := range found {
		for _, r := range f.list {
			if r.method == "dkim" && r.outcome == "pass" && !r.twice && relatives(r.signer(), from) && r.about(signatures, fields) {
				return true
			}
		}
	}
	return false
}

// about reports whether every signature that a result may tell of is about the fields, and there
// is one.
func (r *result) about(signatures []map[string]string, fields []string) bool {
	any := false
	for _, s := range signatures {
		of := r.signer()
		if of != domainOf(s["d"]) && (r.props["header.d"] != "" || of != domainOf(s["i"])) ||
			r.props["header.s"] != "" && !strings.EqualFold(r.props["header.s"], s["s"]) || !strings.HasPrefix(s["b"], r.props["header.b"]) { // RFC 6008
			continue
		}
		any = true
		names := strings.Split(strings.ToLower(s["h"]), ":")
		for _, f := range fields {
			if !slices.Contains(names, strings.ToLower(f)) {
				return false
			}
		}
	}
	return any
}

// tagList reads the tags of a signature (RFC 6376 section 3.2), without white space. ok is false
// where it is none.
func tagList(value string) (tags map[string]string, ok bool) {
	tags = map[string]string{}
	value = strings.Join(strings.Fields(value), "")
	for tag := range strings.SplitSeq(strings.TrimSuffix(value, ";"), ";") {
		name, v, is := strings.Cut(tag, "=")
		if _, had := tags[name]; !is || had {
			return nil, false
		}
		tags[name] = v
	}
	return tags, true
}
