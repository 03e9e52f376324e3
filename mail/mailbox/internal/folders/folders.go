// Package folders says what the folders of an account are for, by what a server marks and by
// usual names, and in which order they are listed. It asks no server.
package folders

import (
	"cmp"
	"slices"
	"strings"

	goimap "github.com/emersion/go-imap/v2"
)

// Folder is one mailbox in the sense of RFC 9051.
type Folder struct {
	Name       string   // decoded, as a person reads it
	Delimiter  string   // hierarchy delimiter; empty for a flat name
	Role       string   // special use without its backslash, lower case: sent, drafts, trash, junk, archive, all, flagged; "inbox" for INBOX
	Attributes []string // other LIST attributes, such as \Noselect
	Counts     *Counts  // nil unless asked for and known

	Others bool // it is not in the user's own namespace
}

// NoSelect reports whether the folder only holds others and has no messages.
func (f Folder) NoSelect() bool {
	return slices.ContainsFunc(f.Attributes, func(a string) bool {
		return strings.EqualFold(a, `\Noselect`) || strings.EqualFold(a, `\NonExistent`)
	})
}

// Counts are the numbers of messages: with a policy that hides messages they count only
// visible ones.
type Counts struct {
	Messages, Unread     uint32
	UIDNext, UIDValidity uint32 // 0 where there are no UIDs or the server did not say
	Flagless             bool   // there are no flags, so that it is not known which messages are unread
}

// roles are the special uses of RFC 6154, in the order in which their folders are listed.
var roles = []string{"drafts", "sent", "archive", "all", "flagged", "junk", "trash"}

// Of is a folder as a server listed it.
func Of(d *goimap.ListData) Folder {
	f := Folder{Name: d.Mailbox}
	if d.Delim != 0 {
		f.Delimiter = string(d.Delim)
	}
	for _, a := range d.Attrs {
		if use := strings.ToLower(strings.TrimPrefix(string(a), `\`)); slices.Contains(roles, use) {
			f.Role = use
		} else {
			f.Attributes = append(f.Attributes, string(a))
		}
	}
	if strings.EqualFold(f.Name, "INBOX") {
		f.Role = "inbox"
	}
	return f
}

// compare orders folders as a list shows them: INBOX, those with a role, the others by name.
func (f Folder) Compare(g Folder) int {
	return cmp.Or(cmp.Compare(f.rank(), g.rank()), slices.Compare(f.levels(), g.levels()))
}

// rank is the place of a folder in a list by its role.
func (f *Folder) rank() int {
	switch i := slices.Index(roles, f.Role); {
	case f.Role == "inbox":
		return -1
	case i >= 0:
		return i
	}
	return len(roles)
}

// levels are the parts of a name, so that a folder stands before those below it.
func (f *Folder) levels() []string {
	if f.Delimiter == "" {
		return []string{f.Name}
	}
	return strings.Split(f.Name, f.Delimiter)
}

// ForgetHidden removes what tells that there are folders below others: a folder that holds
// only hidden ones, and the attributes that say so.
func ForgetHidden(list []Folder, aboveHidden func(name string) bool) []Folder {
	all := slices.Clone(list)
	list = slices.DeleteFunc(list, func(f Folder) bool {
		return f.NoSelect() && aboveHidden(f.Name) && !slices.ContainsFunc(all, func(o Folder) bool {
			return strings.HasPrefix(o.Name, f.Name+f.Delimiter) && !o.NoSelect()
		})
	})
	for i := range list {
		f := &list[i]
		f.Attributes = slices.DeleteFunc(f.Attributes, func(a string) bool {
			return strings.EqualFold(a, `\HasChildren`) || strings.EqualFold(a, `\HasNoChildren`)
		})
	}
	return list
}
