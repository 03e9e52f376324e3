package discovery

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// Table is a list of entries as an answer shows it: the names of its columns once, and
// for each entry a row with its values in that order. R is the struct of an entry; its
// exported fields are the columns, named by their json tags, and one whose tag says
// acli:"untrusted" holds what a stranger wrote.
//
// A result has a Table as a field, or embeds it where the list is all it is about.
// --fields names columns as it names fields. The zero Table is not a valid answer: use
// TableOf.
type Table[R any] struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// TableOf makes the table of the entries, in their order. A column that is empty in
// every row is left out; without entries there are no columns.
func TableOf[R any](entries []R) Table[R] {
	columns, rows := tabulate(reflect.ValueOf(entries))
	return Table[R]{columns, rows}
}

func tabulate(entries reflect.Value) (columns []string, rows [][]any) {
	columns, rows = []string{}, make([][]any, entries.Len())
	for i := range rows {
		rows[i] = []any{}
	}
	for _, c := range columnsOf(entries.Type().Elem()) {
		empty := true
		for i := range rows {
			empty = empty && entries.Index(i).FieldByIndex(c.index).IsZero()
		}
		if empty {
			continue
		}
		columns = append(columns, c.name)
		for i := range rows {
			rows[i] = append(rows[i], entries.Index(i).FieldByIndex(c.index).Interface())
		}
	}
	return columns, rows
}

// JSONSchemaExtend names the columns in the schema of the table, and in that of the
// result that embeds it.
func (t Table[R]) JSONSchemaExtend(s *jsonschema.Schema) { nameColumns(s, columnsOf(t.row())) }

func nameColumns(s *jsonschema.Schema, of []column) {
	columns, _ := s.Properties.Get("columns")
	for _, c := range of {
		columns.Items.Enum = append(columns.Items.Enum, c.name)
	}
}

// row is the type of an entry, for what is found by reflection.
func (Table[R]) row() reflect.Type { return reflect.TypeFor[R]() }

// tabular is a Table of any entries, and a struct that embeds one.
type tabular interface{ row() reflect.Type }

type column struct {
	name  string
	index []int
}

func columnsOf(t reflect.Type) (columns []column) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && !f.Anonymous && name != "" && name != "-" {
			columns = append(columns, column{name, f.Index})
		}
	}
	return columns
}
