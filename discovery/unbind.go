package discovery

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Unbind is the inverse of Bind: the tokens, path included, that bind to these
// arguments and common options. args is a pointer to the command's argument
// struct. What is optional and unset, or equals its default, is left out, so that
// a command that continues another carries all that was asked for and nothing
// besides.
func (c *Command) Unbind(args any, common Common) []string {
	tokens := strings.Fields(c.Path)
	var bare []string
	v, w := reflect.ValueOf(args).Elem(), reflect.ValueOf(common)
	for _, a := range c.args().list {
		from := v
		if a.Common {
			from = w
		}
		texts := a.texts(from.FieldByIndex(a.index))
		switch {
		case len(texts) == 0:
		case a.Positional:
			bare = append(bare, texts...)
		case a.Kind == KindFlag && texts[0] == "true":
			tokens = append(tokens, "--"+a.Name)
		case a.Kind == KindArray:
			tokens = append(tokens, a.elements(texts)...)
		case a.Kind == KindFlag:
			tokens = append(tokens, "--"+a.Name+"="+texts[0])
		default:
			tokens = append(tokens, a.option(texts[0])...)
		}
	}
	if slices.ContainsFunc(bare, func(b string) bool { return strings.HasPrefix(b, "-") && b != "-" }) {
		tokens = append(tokens, "--")
	}
	return append(tokens, bare...)
}

// elements is an array option, once unless an element ends in a backslash, which a
// comma behind it would turn into something else.
func (a *Argument) elements(texts []string) []string {
	var lists []string
	apart := true
	for _, t := range texts {
		t = strings.ReplaceAll(t, ",", `\,`)
		if apart {
			lists = append(lists, t)
		} else {
			lists[len(lists)-1] += "," + t
		}
		apart = strings.HasSuffix(t, `\`)
	}
	var tokens []string
	for _, l := range lists {
		tokens = append(tokens, a.option(l)...)
	}
	return tokens
}

// option is an option with its value, attached where the value could be taken for
// an option.
func (a *Argument) option(value string) []string {
	if a.takesNext(value) {
		return []string{"--" + a.Name, value}
	}
	return []string{"--" + a.Name + "=" + value}
}

// texts are the argument's texts that give a field this value; none for an unset field.
func (a *Argument) texts(v reflect.Value) []string {
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return []string{text(v.Elem())}
	case v.Kind() == reflect.Slice:
		var texts []string
		for i := range v.Len() {
			texts = append(texts, text(v.Index(i)))
		}
		return texts
	case a.Default == nil && !a.Required && v.IsZero():
		return nil
	}
	t := text(v)
	if a.Default != nil && t == fmt.Sprint(a.Default) {
		return nil
	}
	return []string{t}
}

func text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Datetime:
		if x.DateOnly {
			return x.Format(time.DateOnly)
		}
		return rfc3339(x.Time)
	case Date:
		return x.String()
	}
	return fmt.Sprint(v.Interface())
}
