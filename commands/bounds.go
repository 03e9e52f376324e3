package commands

import (
	"encoding/json"
	"strconv"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail/mailbox"
)

// bounds are the forms of numbers whose bounds stand with the queries of mail/mailbox.
var bounds = map[string]discovery.Form{
	"list_limit":       numbers(mailbox.ListLimit),
	"search_limit":     numbers(mailbox.SearchLimit),
	"snippet":          numbers(mailbox.SnippetChars),
	"thread_limit":     numbers(mailbox.ThreadLimit),
	"thread_chars":     numbers(mailbox.ThreadChars),
	"chars":            numbers(mailbox.BodyChars),
	"attachment_chars": numbers(mailbox.AttachmentChars),
	"from_char":        numbers(mailbox.FromChar),
	"raw_bytes":        numbers(mailbox.RawBytes),
}

// numbers are those within a bound.
func numbers(b mailbox.Bound) discovery.Form {
	n := func(n int) json.Number { return json.Number(strconv.Itoa(n)) }
	f := discovery.Form{Minimum: n(b.Min), Maximum: n(b.Max)}
	if b.Default != 0 { // else the option can be left out
		f.Default = n(b.Default)
	}
	return f
}
