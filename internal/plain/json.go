package plain

import (
	"bytes"
	"encoding/json"
)

// JSON is the compact JSON of a value. It leaves <, > and & as they are: addresses are full
// of them, and no page of HTML holds it.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
