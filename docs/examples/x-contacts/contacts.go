//go:build ignore

// Contacts is an extension of Postern: an address book in a file contacts.csv beside
// it, with the columns name, email and note. An agent may look into it, and only the
// administrator adds to it, as manifest.json says.
package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// file is relative: an extension is started in its own directory.
const file = "contacts.csv"

// fault is an error as Postern passes it on.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (f *fault) Error() string { return f.Message }

func main() {
	var in struct {
		Command   string `json:"command"`
		Arguments struct {
			Words []string `json:"words"`
			Limit int      `json:"limit"`
			Name  string   `json:"name"`
			Email string   `json:"email"`
			Note  string   `json:"note"`
		} `json:"arguments"`
	}
	var answer any
	err := json.NewDecoder(os.Stdin).Decode(&in)
	if err == nil {
		switch a := in.Arguments; in.Command {
		case "x-contacts find":
			answer, err = find(a.Words, a.Limit)
		case "x-contacts add":
			answer, err = add(person{a.Name, a.Email, a.Note})
		default:
			err = fmt.Errorf("unknown command %q", in.Command)
		}
	}
	out := json.NewEncoder(os.Stdout)
	if err != nil {
		var f *fault
		if !errors.As(err, &f) {
			f = &fault{Code: "EXECUTION_ERROR", Message: "The address book cannot be used: " + err.Error() + ".", Hint: "Look at " + file + " beside the extension."}
		}
		_ = out.Encode(map[string]any{"error": f})
		os.Exit(1)
	}
	if err := out.Encode(answer); err != nil {
		os.Exit(1)
	}
}

type person struct {
	Name  string `json:"name"`
	Email string `json:"email"`
	Note  string `json:"note,omitempty"`
}

func read() ([]person, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = 3
	rows, err := r.ReadAll()
	people := make([]person, len(rows))
	for i, row := range rows {
		people[i] = person{row[0], row[1], row[2]}
	}
	return people, err
}

func find(words []string, limit int) (any, error) {
	people, err := read()
	if err != nil {
		return nil, err
	}
	found, total := []person{}, 0
	for _, p := range people {
		text := strings.ToLower(p.Name + "\n" + p.Email + "\n" + p.Note)
		all := true
		for _, w := range words {
			all = all && strings.Contains(text, strings.ToLower(w))
		}
		if !all {
			continue
		}
		if total++; total <= limit {
			found = append(found, p)
		}
	}
	if total == 0 {
		return nil, &fault{"NOT_FOUND", "There is nobody like that in the address book.", "Try fewer or shorter words."}
	}
	return map[string]any{"people": found, "total": total}, nil
}

// add writes the whole book anew and puts it in place of the old one, so that no
// moment leaves half of it.
func add(p person) (any, error) {
	people, err := read()
	if err != nil {
		return nil, err
	}
	for _, other := range people {
		if strings.EqualFold(other.Email, p.Email) {
			return nil, &fault{"CONFLICT", "There is somebody with this address already.", "Find them with 'x-contacts find " + p.Email + "'."}
		}
	}
	f, err := os.CreateTemp(".", "contacts-*.tmp")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // nothing is left to remove once it is in place
	w := csv.NewWriter(f)
	for _, q := range append(people, p) {
		if err := w.Write([]string{q.Name, q.Email, q.Note}); err != nil {
			return nil, err
		}
	}
	w.Flush()
	if err := errors.Join(w.Error(), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return map[string]any{"people": len(people) + 1}, os.Rename(f.Name(), file)
}
