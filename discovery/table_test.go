package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

type row struct {
	ID      string `json:"id"`
	Subject string `json:"subject" acli:"untrusted"`
	Marks   string `json:"marks"`
	Size    int    `json:"size"`
}

type shelf struct {
	Rows []row  `json:"rows_in_full"`
	Next string `json:"next"`
}

type briefShelf struct {
	Folder string `json:"folder,omitempty"`
	discovery.Table[row]
	Inner *innerShelf `json:"inner,omitempty"`
	More  string      `json:"more,omitempty"`
}

type innerShelf struct {
	Books discovery.Table[row] `json:"books"`
}

func (s *shelf) Brief() briefShelf {
	b := briefShelf{Folder: "INBOX", Table: discovery.TableOf(s.Rows), More: s.Next}
	if s.Next == "inner" {
		b.Inner = &innerShelf{discovery.TableOf(s.Rows)}
	}
	return b
}

func shelfCommand(t *testing.T) *discovery.Command {
	t.Helper()
	c := discovery.New(discovery.Spec{Path: "shelf", Summary: "A shelf", Effect: discovery.Read, Examples: []string{"shelf"}},
		func(context.Context, *discovery.Call, *struct{}) (*shelf, error) { return nil, nil })
	must(t, c.Err())
	return c
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	must(t, e.Encode(v))
	return bytes.TrimSpace(b.Bytes())
}

func TestATableIsWrittenChosenFromAndDescribed(t *testing.T) {
	c := shelfCommand(t)
	books := []row{{ID: "1", Subject: "a <b>"}, {ID: "2", Marks: "unread"}}
	for _, test := range []struct {
		rows               []row
		next, fields, want string
	}{
		{books, "", "", `{"untrusted":"subject","folder":"INBOX","columns":["id","subject","marks"],"rows":[["1","a <b>",""],["2","","unread"]]}`},
		{books[1:], "", "", `{"folder":"INBOX","columns":["id","marks"],"rows":[["2","unread"]]}`},
		{nil, "", "", `{"folder":"INBOX","columns":[],"rows":[]}`},
		{books, "shelf 3", "subject,size,id", `{"untrusted":"subject","columns":["subject","id"],"rows":[["a <b>","1"],["","2"]],"more":"shelf 3"}`},
		{books, "", "folder", `{"folder":"INBOX"}`},
		{books, "", "folder,marks", `{"columns":["marks"],"rows":[[""],["unread"]],"folder":"INBOX"}`},
		{nil, "", "marks", `{"columns":[],"rows":[]}`},
		{books[1:], "inner", "inner.books.id", `{"inner":{"books":{"columns":["id"],"rows":[["2"]]}},"more":"inner"}`},
		{books[1:], "inner", "inner.books", `{"inner":{"books":{"columns":["id","marks"],"rows":[["2","unread"]]}},"more":"inner"}`},
	} {
		var names []string
		if test.fields != "" {
			for name := range bytes.SplitSeq([]byte(test.fields), []byte(",")) {
				names = append(names, string(name))
			}
		}
		p, err := c.Project(names, false)
		must(t, err)
		view := encoded(t, c.View(&shelf{test.rows, test.next}, false))
		data, err := p.Apply(view)
		must(t, err)
		labelled, ok := c.Label(data)
		if !ok || string(labelled) != test.want {
			t.Errorf("%q: %v %s\nwant %s", test.fields, ok, labelled, test.want)
		}
		var v any
		if whole, _ := c.Label(view); json.Unmarshal(whole, &v) != nil || gatewaytest.Schema(t, c.OutputSchema(false)).Validate(v) != nil {
			t.Errorf("%s does not have the shape that the schema says: %s", whole, c.OutputSchema(false))
		}
	}
	if got := c.FieldNames(false); !slices.Equal(got, []string{"folder", "id", "inner", "inner.books", "inner.books.id", "inner.books.marks", "inner.books.size", "inner.books.subject", "marks", "more", "size", "subject"}) {
		t.Errorf("fields %q", got)
	}
	if v, ok := c.View(&shelf{}, true).(*shelf); !ok || v == nil {
		t.Error("the full answer is another value")
	}
	_, err := c.Project([]string{"rows_in_full.id"}, false)
	if f := discovery.AsFault(err); f == nil || f.Code != discovery.ValidationError || !bytes.Contains([]byte(f.Hint), []byte("Add --full")) {
		t.Errorf("a field of the full answer: %v", err)
	}
}

type wrongBrief struct{}

func (wrongBrief) Brief(int) string { return "" }

func TestABriefOfAnotherFormIsAMistake(t *testing.T) {
	c := discovery.New(discovery.Spec{Path: "wrong", Summary: "Wrong", Effect: discovery.Read, Examples: []string{"wrong"}},
		func(context.Context, *discovery.Call, *struct{}) (wrongBrief, error) { return wrongBrief{}, nil })
	if c.Err() == nil {
		t.Error("it is taken")
	}
}
