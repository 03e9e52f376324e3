package servertest

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

//go:embed read.py
var readScript string

// PythonMessage is a message as Python's email package reads it, which shares no code with
// this project. All text is decoded.
type PythonMessage struct {
	Defects    []string    `json:"defects"` // defects that Python reports
	Fields     []string    `json:"fields"`  // names, in their order
	From       [][2]string `json:"from"`    // name and address
	To         [][2]string `json:"to"`
	CC         [][2]string `json:"cc"`
	Subject    string      `json:"subject"`
	Date       float64     `json:"date"` // seconds since 1970
	ID         string      `json:"id"`   // with its angle brackets, like the next two
	Parent     string      `json:"parent"`
	References string      `json:"references"`
	Charset    string      `json:"charset"`
	Body       string      `json:"body"`  // flowed text (RFC 3676) is joined
	Shown      string      `json:"shown"` // as a reader without flowed text shows it
	HTML       string      `json:"html"`  // of the text, with LF; empty for none
	Files      []struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Disposition string `json:"disposition"`
		SHA256      string `json:"sha256"`
	} `json:"files"`
}

// Python ends the test as Check does if Python is missing.
func Python(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		Check(t, fmt.Errorf("python3: %w", ErrNotInstalled))
	}
}

// ReadPython has Python read a message.
func ReadPython(t testing.TB, raw []byte) PythonMessage {
	t.Helper()
	return ReadAllPython(t, [][]byte{raw})[0]
}

// ReadAllPython has one Python process read all messages, since starting it takes far
// longer than reading one. The result has their order.
func ReadAllPython(t testing.TB, raw [][]byte) []PythonMessage {
	t.Helper()
	Python(t)
	var lines, stderr bytes.Buffer
	for _, r := range raw {
		lines.WriteString(base64.StdEncoding.EncodeToString(r) + "\n")
	}
	c := exec.CommandContext(t.Context(), "python3", "-I", "-c", readScript)
	c.Stdin, c.Stderr = &lines, &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	messages := make([]PythonMessage, len(raw))
	decoder := json.NewDecoder(bytes.NewReader(out))
	for i := range messages {
		if err := decoder.Decode(&messages[i]); err != nil {
			t.Fatal(err)
		}
	}
	return messages
}
