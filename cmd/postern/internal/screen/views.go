package screen

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// views show the answers of some commands in their own way. A view returns false
// for an unexpected answer, such as one with only some fields; it is then shown
// like any other.
var views = map[string]func(p *painter, data object) bool{
	"mail list":       (*painter).messages,
	"mail search":     (*painter).messages,
	"mail watch":      (*painter).messages,
	"mail thread":     (*painter).thread,
	"mail get":        (*painter).message,
	"mail accounts":   listed("accounts", "account_id=Account", "email=Address", "protocol=Protocol", "host=Server", "mode=Mode"),
	"mail folders":    listed("folders", "name=Folder", "role=Role", "messages=Messages", "unread=Unread"),
	"mail verify":     (*painter).login,
	"mail move":       filed("destination_folder"),
	"mail copy":       filed("destination_folder"),
	"mail trash":      filed("destination_folder"),
	"mail delete":     filed(""),
	"mail mark-read":  filed(""),
	"mail flags":      filed(""),
	"mail ack":        filed(""),
	"mail send":       (*painter).sent,
	"mail reply":      (*painter).sent,
	"mail forward":    (*painter).sent,
	"mail draft":      (*painter).sent,
	"mail raw":        (*painter).raw,
	"mail attachment": (*painter).attachment,
	"outbox list": listed("messages", "outbox_id=Id", "state=State", "created=Created", "?account_id=Account", "?principal=By",
		"~recipients=To", "~subject=Subject"),
	"outbox show":         (*painter).outgoing,
	"outbox approve":      (*painter).outgoing,
	"outbox cancel":       (*painter).sent,
	"outbox reject":       (*painter).sent,
	"account list":        (*painter).accounts,
	"account show":        (*painter).account,
	"account remove":      told,
	"account add":         (*painter).account,
	"account edit":        (*painter).account,
	"allow in list":       (*painter).rules,
	"allow in add":        (*painter).rules,
	"allow in remove":     (*painter).rules,
	"allow out list":      (*painter).rules,
	"allow out add":       (*painter).rules,
	"allow out remove":    (*painter).rules,
	"allow folder list":   (*painter).rules,
	"allow folder add":    (*painter).rules,
	"allow folder remove": (*painter).rules,
	"hide folder list":    (*painter).rules,
	"hide folder add":     (*painter).rules,
	"hide folder remove":  (*painter).rules,
	"config list":         listed("settings", "name=Setting", "value=Value", "description=Meaning"),
	"config get":          (*painter).setting,
	"config set":          (*painter).setting,
	"grant list":          listed("grants", "name=Name", "accounts=Accounts", "profile=Profile", "identity=Identity", "extensions=Extensions", "expired=Expired", "expires=Expires"),
	"grant add":           (*painter).grant,
	"grant remove":        told,
	"policy show":         (*painter).policy,
	"policy explain":      (*painter).explained,
	"audit list":          (*painter).audit,
	"audit verify":        whole,
	"vault check":         whole,
	"doctor":              (*painter).doctor,
	"stop":                (*painter).stopped,
	"resume":              func(*painter, object) bool { return true },
	"version":             (*painter).version,
	"help":                (*painter).help,
	"agent describe":      (*painter).describe,
}

// listed draws a list as a table, or as records in a narrow window. A column is the name of a
// member and its heading, with ~ before it where a part of it tells enough, and ? where a narrow
// window does without it if it says the same in every row.
func listed(list string, columns ...string) func(*painter, object) bool {
	return func(p *painter, data object) bool {
		entries, ok := data.Objects(list)
		var table []column
		for _, spec := range columns {
			name, heading, _ := strings.Cut(spec, "=")
			c := column{name: heading, cut: name[0] == '~', usual: name[0] == '?'}
			for _, e := range entries {
				cell := ""
				if v := e.Get(strings.TrimLeft(name, "~?")); v != nil && v != false {
					cell = p.value(member{Name: name, Value: v})
				}
				if name == "state" {
					cell = stateOf(e)
				}
				c.cells = append(c.cells, cell)
			}
			table = append(table, c)
		}
		return ok && p.rows(table)
	}
}

// rows draws a table, or records where it does not fit. It is false for rows without content.
func (p *painter) rows(table []column) bool {
	if len(table[0].cells) == 0 || p.table(table, "") {
		return len(table[0].cells) == 0 || p.b.Len() > 0
	}
	if less := slices.DeleteFunc(slices.Clone(table), func(c column) bool {
		said := slices.DeleteFunc(slices.Clone(c.cells), func(s string) bool { return s == "" })
		return c.usual && len(slices.Compact(said)) < 2
	}); p.table(less, "") {
		return true
	}
	for i := range table[0].cells {
		var fields [][2]string
		for _, c := range table {
			if c.cells[i] != "" {
				fields = append(fields, [2]string{c.name, c.cells[i]})
			}
		}
		p.record(fields, "")
		p.line("") // behind the last too: what is said of all of them is none of its fields
	}
	return true
}

// told draws the sentence alone, which says all of it.
func told(p *painter, data object) bool { return p.said != "" && len(data) == 1 }

// whole draws the sentence alone, where all is well.
func whole(_ *painter, data object) bool { return data.Get("ok") == true }

// stopped draws what was leaving, and names the way on.
func (p *painter) stopped(data object) bool {
	p.said = sentence(p.said) + p.advice(" 'resume' lets everything go on, with the administrator's key")
	return listed("leaving", "outbox_id=Id", "account_id=Account", "kind=Kind")(p, data)
}

// filed tells what was changed in a sentence, and where it is now.
func filed(to string) func(*painter, object) bool {
	return func(p *painter, data object) bool {
		if folder := text(data.Get(to)); folder != "" && p.said != "" {
			if there := text(data.Get("destination_account_id")); there != "" && there != text(data.Get("source_account_id")) {
				folder += " of " + there
			}
			p.said += " to " + folder
		}
		_, ok := data.Objects("messages")
		return ok && p.said != ""
	}
}

// sent tells what became of a message in a sentence, and where more of it is.
func (p *painter) sent(data object) bool {
	if p.said == "" || data.Get("recipients") == nil {
		return false
	}
	if state := data.Str("state"); state == "accepted" && data.Str("sent_copy") == "filed" {
		p.said = sentence(p.said) + " A copy is in the folder for sent mail"
	}
	for _, s := range append(data.Strings("asks"), text(data.Get("hint"))) {
		if s != "" {
			p.wrapped("", "", p.advice(sentence(text(s))))
		}
	}
	if id := data.Str("outbox_id"); id != "" {
		p.said = sentence(p.said) + p.advice(" See it with 'outbox show "+text(id)+"'")
	}
	return true
}

// login tells of an account that was logged in to.
func (p *painter) login(data object) bool {
	server, ok := data.Get("server").(object)
	if !ok || data.Get("ok") != true {
		return false
	}
	p.said += fmt.Sprintf(" to %s:%s, account %s, within %s ms", text(server.Get("host")), text(server.Get("port")), text(data.Get("account_id")), text(data.Get("latency_ms")))
	return true
}

// raw shows the source of a message as text.
func (p *painter) raw(data object) bool {
	source, ok := content(data, "raw_source_base64")
	if ok {
		p.quoted(source, bodyMark, "", p.Width)
	}
	return ok
}

// content is what a member holds in base64, of which a terminal shows what it can.
func content(data object, name string) (string, bool) {
	s, ok := data.Get(name).(string)
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), ok && err == nil
}

// attachment shows text as text, and of anything else what it is and how to save it.
func (p *painter) attachment(data object) bool {
	id, kind := p.id(data.Get("message_id")), data.Str("content_type")
	if id == "" || kind == "" {
		return false
	}
	p.hanging("", styleBold, fmt.Sprintf("%s, %s, %s", cmp.Or(text(data.Get("filename")), "(no name)"), text(kind), size(data.Get("size_bytes"))))
	said, has := data.Get("extracted_text").(string)
	bytes, encoded := content(data, "content_base64")
	if encoded && strings.HasPrefix(kind, "text/") && utf8.ValidString(bytes) && !strings.Contains(bytes, "\x00") {
		said, has, encoded = bytes, true, false
	}
	switch path := text(data.Get("saved_to")); {
	case has:
		p.quoted(said, bodyMark, "", p.Width)
	case path != "":
		p.said = "Saved as " + path
	case encoded:
		p.said = ""
		p.columns([][2]string{{p.typed("save ") + p.quote(id) + " " + text(data.Get("part_id")), "keeps it"}, {p.typed("open ") + p.quote(id) + " " + text(data.Get("part_id")), "looks at it"}})
	}
	return true
}

// accounts draws what tells accounts apart, one in a row; 'account show' has the rest.
func (p *painter) accounts(data object) bool {
	list, ok := data.Objects("accounts")
	table := []column{{name: "Account"}, {name: "Address"}, {name: "Server"}, {name: "Mode"}, {name: "Mail from"}, {name: "Writes to"}}
	for _, a := range list {
		server, complete := a.Get(a.Str("protocol")).(object)
		if !complete {
			return false
		}
		place := text(server.Get("host"))
		if port := text(server.Get("port")); !slices.Contains([]string{"993", "143", "995", "110"}, port) {
			place += ":" + port
		}
		for i, cell := range []string{text(a.Get("name")), text(a.Get("email")), place, text(a.Get("mode")), entries(a.Get("allow_in"), 1), writes(a, 1)} {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	if len(list) > 0 && p.said != "" {
		p.said = sentence(p.said) + " 'postern init' adds another"
	}
	return ok && p.rows(table)
}

// entries is whom a list of an account lets pass, at most so many by name; 0 means all of them.
func entries(list any, most int) string {
	l, _ := list.(object)
	verified := l.Strings("verified")
	names := append(l.Strings("entries"), verified...)
	switch {
	case l.Get("enabled") != true || slices.Contains(names, "*") && !slices.Contains(verified, "*"):
		return "everybody"
	case len(names) == 0:
		return "nobody"
	case most > 0 && len(names) > most:
		return fmt.Sprintf("%d on the list", len(names))
	}
	return text(strings.Join(names, ", "))
}

// writes is whom an account may write to in its mode.
func writes(a object, most int) string {
	if mode := a.Str("mode"); mode == "RO" || mode == "draft" {
		return "nobody"
	}
	return entries(a.Get("allow_out"), most)
}

// account draws one account with everything but its secrets.
func (p *painter) account(data object) bool {
	a, ok := data.Get("account").(object)
	server, complete := a.Get(a.Str("protocol")).(object)
	if !ok || !complete {
		return false
	}
	at := func(v any) string {
		o, _ := v.(object)
		if o.Str("host") == "" {
			return ""
		}
		return fmt.Sprintf("%s:%s, %s", text(o.Get("host")), text(o.Get("port")), text(o.Get("security")))
	}
	sends, deletes := at(a.Get("smtp")), map[string]string{"on": "for good too", "off": "nothing for good", "before": "for good, unasked"}[a.Str("destroy")]
	if a.Str("submission") != "" {
		sends = "with Microsoft Graph"
	}
	if a.Str("mode") == "RO" {
		deletes = "nothing"
	}
	rows := [][2]string{{"Account", text(a.Get("name"))}, {"Address", text(a.Get("email"))}, {"Reads", a.Str("protocol") + " " + at(server)}, {"Sends", sends},
		{"Login", text(a.Get("username")) + ", " + text(a.Get("auth"))}, {"Mode", text(a.Get("mode"))}, {"Deletes", deletes},
		{"Shows mail from", entries(a.Get("allow_in"), 0)}, {"Writes to", writes(a, 0)},
		{"Codes", map[string]string{"mask": "hidden", "give": "hidden, and given by 'mail code'", "show": "shown"}[a.Str("codes")]},
		{"Trusts", map[bool]string{true: "only the certificates given for it, not those of the system"}[a.Get("custom_ca") == true]}}
	told := " name email protocol imap pop3 smtp submission username auth mode destroy allow_in allow_out codes custom_ca "
	for _, f := range a {
		if empty := f.Value == false || f.Value == "auto"; !empty && !skipped(f) && !strings.Contains(told, " "+f.Name+" ") {
			rows = append(rows, [2]string{p.label(f.Name), p.value(f)})
		}
	}
	p.record(withContent(rows), "")
	return true
}

func withContent(rows [][2]string) (kept [][2]string) {
	for _, r := range rows {
		if r[1] != "" {
			kept = append(kept, r)
		}
	}
	return kept
}

// rules draws a list of an account, one entry a line.
func (p *painter) rules(data object) bool {
	title, known := map[string]string{"in": "Agents see messages of", "out": "Agents may write to", "allow": "Agents may file into, beside the account's own folders", "hide": "Agents do not see"}[data.Str("list")]
	list, verified := data.Strings("entries"), data.Strings("verified")
	if !known || data.Get("entries") == nil {
		return false
	}
	heading, who := title, entries(data, 0)
	if data.Get("enabled") == false {
		heading = "The list, which is off"
	}
	if len(list)+len(verified) > 0 {
		p.wrapped("", styleBold, heading+" (account "+text(data.Get("account_id"))+"):")
	}
	for _, e := range list {
		p.line("  ", text(e))
	}
	for _, e := range verified {
		p.line("  ", text(e), ", verified")
	}
	if senders, ok := data.Objects("senders"); ok && len(senders) > 0 {
		p.line("")
		return listed("senders", "entry=Of the newest 50 from", "verified=Verified", "failed=Forged", "unknown=Unknown")(p, append(data[:0:0], member{Name: "senders", Value: data.Get("senders")}))
	}
	for _, f := range []string{"added", "removed"} {
		if n := len(data.Strings(f)); n > 0 {
			p.said = fmt.Sprintf("%s %d: %s", p.label(f), n, p.said)
		}
	}
	if absent := data.Strings("absent"); len(absent) > 0 {
		p.wrapped("", styleBold, "The server has no folder of this name now: "+text(strings.Join(absent, ", "))+".")
	}
	if addresses := data.Str("list") == "in" || data.Str("list") == "out"; addresses && (who == "everybody" || who == "nobody") {
		p.said = sentence(p.said) + " It lets " + who + " pass"
	}
	return true
}

func (p *painter) setting(data object) bool {
	if data.Str("name") == "" || data.Get("default") == nil {
		return false
	}
	bounds := ""
	if low := text(data.Get("minimum")); low != "" {
		bounds = low + " to " + text(data.Get("maximum"))
	}
	p.record(withContent([][2]string{{"Setting", text(data.Get("name"))}, {"Value", cmp.Or(text(data.Get("value")), "(none)")}, {"Default", text(data.Get("default"))}, {"Takes", bounds}, {"Meaning", text(data.Get("description"))}}), "")
	p.said = ""
	return true
}

// grant draws a new grant, and its token whole on a line of its own.
func (p *painter) grant(data object) bool {
	g, ok := data.Get("grant").(object)
	if !ok || data.Str("token") == "" {
		return false
	}
	p.object(g, "")
	p.line("")
	p.wrapped("", "", "The token, which is shown this once:")
	p.line("")
	p.line(p.in(styleBold, text(data.Get("token"))))
	p.line("")
	return true
}

func (p *painter) policy(data object) bool {
	list, ok := data.Objects("accounts")
	if !ok || data.Str("principal") == "" {
		return false
	}
	who := text(data.Get("principal"))
	if data.Get("admin") == true {
		who += ", the administrator"
	}
	rows := [][2]string{{"You are", who}, {"Profile", text(data.Get("profile"))}, {"Stopped", text(data.Get("stopped"))}, {"Not for agents", text(data.Get("deny"))},
		{"Limits", fmt.Sprintf("%s commands a minute, %s messages sent and %s changed an hour", text(data.Get("commands_per_minute")), text(data.Get("sends_per_hour")), text(data.Get("changes_per_hour")))}}
	p.record(withContent(rows), "")
	for _, a := range list {
		may := []string{"read"}
		for _, right := range [][3]string{{"may_change", "flag and file", ""}, {"may_send", "send", "sends_need_approval"}, {"may_destroy", "delete for good", "destroying_needs_approval"}} {
			if a.Get(right[0]) != true {
				continue
			}
			if a.Get(right[2]) == true {
				right[1] += " after a person's word"
			}
			may = append(may, right[1])
		}
		var hides []string
		for _, h := range [][2]string{{"inbound_list", "senders"}, {"subject_filter", "subjects"}, {"hides_folders", "folders"}} {
			if a.Get(h[0]) == true {
				hides = append(hides, h[1])
			}
		}
		whom := ""
		if a.Get("may_send") == true {
			whom = entries(a.Get("outbound_list"), 0)
		}
		p.line("")
		p.record(withContent([][2]string{{"Account", text(a.Get("account_id"))}, {"Mode", text(a.Get("mode"))}, {"Agents may", strings.Join(may, ", ")},
			{"Rules hide", strings.Join(hides, ", ")}, {"Writes to", whom}, {"Folders", text(a.Get("allow_folders"))}, {"Hidden", text(a.Get("hide_folders"))}}), "")
	}
	return true
}

func (p *painter) explained(data object) bool {
	command := cmp.Or(text(data.Get("command")), "It")
	switch allowed, ok := data.Get("allowed").(bool); {
	case !ok:
		return false
	case !allowed:
		p.wrapped("", styleRed, command+" would be refused. "+text(data.Get("message")))
		p.wrapped("", "", p.advice(text(data.Get("hint"))))
	case data.Get("needs_approval") == true:
		p.wrapped("", "", command+" would wait for a person's word.")
		for _, s := range data.Strings("asks") {
			p.wrapped("  ", "", text(s))
		}
	default:
		p.wrapped("", "", command+" would run.")
	}
	return true
}

func (p *painter) audit(data object) bool {
	list, ok := data.Objects("entries")
	table := []column{{name: "No"}, {name: "When"}, {name: "Who"}, {name: "Account", usual: true}, {name: "Outcome"}, {name: "Command"}}
	for _, e := range list {
		if e.Str("command") == "" || e.Get("success") == nil {
			return false
		}
		outcome := "done"
		if e.Get("success") != true {
			outcome = strings.ToLower(strings.ReplaceAll(text(e.Get("error_code")), "_", " "))
		}
		if n := text(e.Get("count")); n != "" && n != "1" {
			outcome += " x" + n
		}
		command := text(e.Get("command"))
		for _, f := range []string{"target", "reason"} {
			if s := text(e.Get(f)); s != "" {
				command += "\n(" + s + ")"
			}
		}
		for i, cell := range []string{text(e.Get("seq")), p.when(e.Str("timestamp")), text(e.Get("principal")), text(e.Get("account")), outcome, command} {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	return ok && p.rows(table)
}

func (p *painter) doctor(data object) bool {
	list, ok := data.Objects("checks")
	table, fails := []column{{name: "Check"}, {name: "State"}, {name: "What was found"}}, false
	for _, c := range list {
		state := "ok"
		if c.Get("ok") != true {
			state, fails = "FAILS", true
		}
		found := text(c.Get("detail"))
		if hint := text(c.Get("hint")); hint != "" {
			found += "\n" + p.advice(hint)
		}
		for i, cell := range []string{text(c.Get("name")), state, found} {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	if !ok || !p.rows(table) {
		return false
	}
	if fails && p.said != "" {
		p.wrapped("", styleRed, sentence(p.said))
		p.said = ""
	}
	return true
}

func (p *painter) version(data object) bool {
	i, ok := data.Get("implementation").(object)
	if ok {
		p.line(text(i.Get("name")), " ", text(i.Get("version")), ", ACLI ", text(data.Get("acli_version")))
	}
	return ok
}

// describe draws the agent mailbox in short: its commands, or one of them with its arguments.
func (p *painter) describe(data object) bool {
	commands, whole := data.Get("commands").(object)
	if !whole {
		commands = data
	}
	var rows [][2]string
	for _, c := range commands {
		about, ok := c.Value.(object)
		if !ok || about.Str("description") == "" {
			return false
		}
		if !whole {
			return p.help(append(object{{Name: "command", Value: "agent " + c.Name}}, append(about, member{Name: "arguments", Value: about.Get("args")})...))
		}
		first, _, _ := strings.Cut(text(about.Get("description")), ". ")
		rows = append(rows, [2]string{"agent " + text(c.Name), strings.TrimSuffix(first, ".")})
	}
	if len(rows) == 0 {
		return false
	}
	p.wrapped("", "", text(data.Get("description")))
	p.line("")
	p.line(p.in(styleBold, "Commands"))
	p.columns(rows)
	p.line("")
	p.wrapped("", styleDim, "One of them with its arguments: '"+p.typed("agent describe send")+"'")
	return true
}
