package imap

import (
	"maps"
	"strings"
)

// Grant is what a session may change while it is lent. The zero Grant changes
// nothing: each of the others adds the few verbs that its purpose needs to those
// of reading, and is taken back with the session.
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

// grants are the verbs beyond reading. A plain EXPUNGE and CLOSE are in none of
// them: they take whatever anybody marked \Deleted.
var grants = map[Grant]map[string]rule{
	NoChange:       {},
	MarkSeen:       {"SELECT": nil, "UID STORE": setsOnlySeen},
	ChangeFlags:    {"SELECT": nil, "UID STORE": changesFlags},
	CopyMessages:   {"UID COPY": namesUIDs},
	MoveMessages:   {"SELECT": nil, "UID MOVE": namesUIDs, "UID COPY": namesUIDs, "UID STORE": setsOnlyDeleted, "UID EXPUNGE": isUIDs},
	DeleteMessages: {"SELECT": nil, "UID STORE": setsOnlyDeleted, "UID EXPUNGE": isUIDs},
	AppendMessages: {"APPEND": nil},
}

// verbsOf is everything that a session with this grant may send. A grant nobody
// knows gives nothing.
func verbsOf(g Grant) map[string]rule {
	if len(grants[g]) == 0 {
		return readOnlyVerbs
	}
	verbs := maps.Clone(readOnlyVerbs)
	maps.Copy(verbs, grants[g])
	return verbs
}

// isUIDs allows a set of numbers and nothing behind it. It may hold neither * nor
// $, which name messages that nobody has looked at.
func isUIDs(args string) bool { return args != "" && strings.Trim(args, "0123456789:,") == "" }

// namesUIDs allows such a set and what follows it.
func namesUIDs(args string) bool {
	set, rest, ok := strings.Cut(args, " ")
	return ok && isUIDs(set) && rest != ""
}

// storing splits the arguments of a STORE.
func storing(args string) (item string, flags []string, ok bool) {
	set, rest, _ := strings.Cut(args, " ")
	item, list, _ := strings.Cut(rest, " ")
	list, open := strings.CutPrefix(list, "(")
	list, closed := strings.CutSuffix(list, ")")
	if !isUIDs(set) || !open || !closed || list == "" || strings.ContainsAny(list, `()"{%*]`) {
		return "", nil, false
	}
	return strings.TrimSuffix(strings.ToUpper(item), ".SILENT"), strings.Split(list, " "), true
}

func setsOnlySeen(args string) bool    { return setsOnly(args, `\Seen`) }
func setsOnlyDeleted(args string) bool { return setsOnly(args, `\Deleted`) }

func setsOnly(args, flag string) bool {
	item, flags, ok := storing(args)
	return ok && item == "+FLAGS" && len(flags) == 1 && strings.EqualFold(flags[0], flag)
}

// changesFlags allows adding and removing, never replacing, and no way to delete.
func changesFlags(args string) bool {
	item, flags, ok := storing(args)
	if !ok || item != "+FLAGS" && item != "-FLAGS" {
		return false
	}
	for _, f := range flags {
		if !ValidFlag(f) || item == "+FLAGS" && strings.EqualFold(f, `\Deleted`) {
			return false
		}
	}
	return true
}
