package clientconfig

import (
	"bytes"
	"encoding/json"
	"strings"
)

// member is one of a JSON object; value is the text of one or a []member.
type member struct {
	name  string
	value any
}

// object is the entry as JSON clients have it.
func (e *Entry) object(withType bool) []member {
	var m []member
	if withType {
		m = append(m, member{"type", quoteJSON("stdio")})
	}
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = quoteJSON(a)
	}
	env := make([]member, len(e.Env))
	for i, v := range e.Env {
		env[i] = member{v.Name, quoteJSON(v.Value)}
	}
	return append(m, member{"command", quoteJSON(e.Command)}, member{"args", "[" + strings.Join(args, ", ") + "]"}, member{"env", env})
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has a form
	return strings.TrimSuffix(b.String(), "\n")
}

// writeObject writes an object over several lines.
func writeObject(members []member, indent, step, end string) string {
	if len(members) == 0 {
		return "{}"
	}
	var b strings.Builder
	b.WriteString("{")
	for i, m := range members {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(end + indent + step + quoteJSON(m.name) + ": " + writeValue(m.value, indent+step, step, end))
	}
	b.WriteString(end + indent + "}")
	return b.String()
}

func writeValue(value any, indent, step, end string) string {
	if inner, ok := value.([]member); ok {
		return writeObject(inner, indent, step, end)
	}
	return value.(string)
}
