package imap

import "maps"

// Grant is the set of changes that a session may make while it is lent. The zero Grant
// allows no change: each of the others adds the few verbs that its purpose needs to those
// of reading, and ends with the lend.
type Grant uint8

// The grants.
const (
	NoChange       Grant = iota
	MarkSeen             // set \Seen, and nothing else
	ChangeFlags          // set and clear flags, but not set \Deleted
	CopyMessages         // copy to another folder
	MoveMessages         // move to another folder
	DeleteMessages       // remove messages named by UID
	AppendMessages       // add a message to a folder
)

// The patterns of the arguments of the changing verbs. A set may hold neither * nor $,
// which name messages that nobody has checked.
var (
	setsSeen    = matching(`[0-9:,]+ \+FLAGS(\.SILENT)? \(\\Seen\)`)
	setsDeleted = matching(`[0-9:,]+ \+FLAGS(\.SILENT)? \(\\Deleted\)`)
	someUIDs    = matching(`[0-9:,]+`)
	uidsAndMore = matching(`[0-9:,]+ .+`)

	// A flag is an atom (RFC 9051 section 9), behind a backslash or not.
	anyFlags    = matching(`[0-9:,]+ [+-]FLAGS(\.SILENT)? \(\\?` + atom + `( \\?` + atom + `)*\)`)
	withDeleted = matching(`.* \+.*[( ]\\Deleted[ )].*`)
)

const atom = `[!#$&'+-\[^-z|}~]{1,64}`

// changesFlags allows adding and removing, never replacing, and no way to delete.
func changesFlags(args string) bool { return anyFlags(args) && !withDeleted(args) }

// grants are the verbs beyond reading. No grant has a plain EXPUNGE or CLOSE: they remove
// every message that anybody marked \Deleted.
var grants = map[Grant]map[string]rule{
	NoChange:       {},
	MarkSeen:       {"SELECT": nil, "UID STORE": setsSeen},
	ChangeFlags:    {"SELECT": nil, "UID STORE": changesFlags},
	CopyMessages:   {"UID COPY": uidsAndMore},
	MoveMessages:   {"SELECT": nil, "UID MOVE": uidsAndMore, "UID COPY": uidsAndMore, "UID STORE": setsDeleted, "UID EXPUNGE": someUIDs},
	DeleteMessages: {"SELECT": nil, "UID STORE": setsDeleted, "UID EXPUNGE": someUIDs},
	AppendMessages: {"APPEND": nil},
}

// verbsOf returns every verb that a session with this grant may send: none for an unknown
// grant.
func verbsOf(g Grant) map[string]rule {
	verbs := maps.Clone(readOnlyVerbs)
	maps.Copy(verbs, grants[g])
	return verbs
}
