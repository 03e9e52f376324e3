package mail

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// FolderKey returns the form in which the names of folders are compared where it is safer to
// take two for one: without regard to case or the form of characters, and whether the folder
// is named below INBOX or beside it, as some servers let it be in both ways.
func FolderKey(name string) string {
	key := strings.ToLower(norm.NFKC.String(name))
	if rest, ok := strings.CutPrefix(key, "inbox"); ok && len(rest) > 1 && isDelimiter(rest[0]) {
		return rest[1:]
	}
	return key
}

// isDelimiter reports whether servers put b between the levels of a name. Which of them a
// server uses is not known to the policy.
func isDelimiter(b byte) bool { return b == '/' || b == '.' || b == '\\' }

// hideKey is FolderKey for a folder that is hidden with all below it, which a person may name
// with a delimiter at its end.
func hideKey(name string) string { return strings.TrimRight(FolderKey(name), `/.\`) }

func folderKeys(names []string, key func(string) string) []string {
	var keys []string
	for _, n := range names {
		keys = append(keys, key(n))
	}
	return keys
}

// CheckFolderEntry reports why a folder cannot be allowed or hidden, or nil.
func CheckFolderEntry(name string, hide bool) error {
	if key := hideKey(name); hide && (key == "inbox" || key == "") {
		return fmt.Errorf("INBOX cannot be hidden: the inbound allow-list hides messages in it")
	}
	return CheckFolder(name)
}

func (a *Account) validateFolders() error {
	for i, names := range [][]string{a.AllowFolders, a.HideFolders} {
		for _, n := range names {
			if err := CheckFolderEntry(n, i == 1); err != nil {
				return fmt.Errorf("a folder that is allowed or hidden cannot be used: %w", err)
			}
		}
	}
	return nil
}

// HidesFolder reports whether a folder does not exist for agents: it is hidden, or below one
// that is.
func (p *Policy) HidesFolder(name string) bool {
	if p == nil {
		return true
	}
	key := FolderKey(name)
	return slices.ContainsFunc(p.hideFolders, func(h string) bool {
		return key == h || strings.HasPrefix(key, h) && isDelimiter(key[len(h)])
	})
}

// HidesFolders reports whether the policy hides any folder.
func (p *Policy) HidesFolders() bool { return p == nil || len(p.hideFolders) > 0 }

// AboveHidden reports whether a hidden folder would be below this one.
func (p *Policy) AboveHidden(name string) bool {
	key := FolderKey(name)
	return p != nil && slices.ContainsFunc(p.hideFolders, func(h string) bool {
		return strings.HasPrefix(h, key) && len(h) > len(key) && isDelimiter(h[len(key)])
	})
}

// AllowsFolder reports whether the administrator allows messages to be put into exactly this
// folder and changed there, although others read it or the server sends from it.
func (p *Policy) AllowsFolder(name string) bool {
	return p != nil && slices.Contains(p.allowFolders, FolderKey(name))
}

// MayGive reports whether messages of this account may be put into that of to: where nothing
// leaves from there, or nothing that could not leave from here as well. Each recipient of to
// must be one of p, and to must ask about each message unless p asks about none. Who reads a folder that is allowed to to is
// not known: then p must send to everybody, unasked.
func (p *Policy) MayGive(to *Policy) bool {
	switch {
	case p == nil || to == nil:
		return false
	case len(to.allowFolders) > 0 && !(p.sends() && p.out.all && !p.NeedsApproval()):
		return false
	case !to.sends():
		return true
	}
	return p.sends() && (to.mode == Approve || p.mode == ReadWrite) && to.out.within(p.out)
}

// NotGiven refuses to put messages into an account that MayGive does not name.
func (o Operation) NotGiven(to string) *Error {
	e := o.Failure(KindReadOnly, "", fmt.Sprintf("More may leave account %s, or with fewer questions, than account %s: nothing of it is put there.", to, o.Account), AdviceOutboundOfBoth)
	e.Reason = ReasonAcross
	return e
}

// ReasonAcross is the audit's reason for a message that may not leave by another account.
const ReasonAcross = "across"

// sends reports whether any message can leave the account.
func (p *Policy) sends() bool {
	return p.MaySend() && p.out != nil && (p.out.all || len(p.out.entries) > 0)
}

// within reports whether every address on the list is on the other.
func (s *entrySet) within(other *entrySet) bool {
	if s.all || other.all {
		return other.all
	}
	for e := range s.entries {
		if !other.entries[e] && (strings.HasPrefix(e, "@") || !other.reaches(e)) {
			return false
		}
	}
	return true
}
