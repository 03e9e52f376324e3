package mcpserve

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// httpWriter writes a response, each part of it in bounded time, and knows whether the
// answers to calls have left whole. The library writes from several goroutines, though
// never from two at once.
type httpWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	each    time.Duration // for one write
	request *httpRequest  // whose answer it is; nil while it cannot be one
	last    bool          // the connection ends with it, whatever the library says

	mu      sync.Mutex
	answers int // of calls, written
	failed  bool
}

// Unwrap is for http.ResponseController.
func (w *httpWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *httpWriter) WriteHeader(status int) {
	if w.last {
		letGo(w)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *httpWriter) Write(p []byte) (int, error) {
	w.extend()
	if w.last {
		letGo(w) // the first one writes the header
	}
	n, err := w.ResponseWriter.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.failed = true
	case w.request.hasReceipts() && isAnswer(p):
		w.answers++
	}
	return n, err
}

// FlushError is for http.ResponseController.
func (w *httpWriter) FlushError() error {
	w.extend()
	if w.last {
		letGo(w) // so does a flush before it
	}
	err := w.control.Flush()
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = true
	}
	return err
}

// Flush implements http.Flusher.
func (w *httpWriter) Flush() { _ = w.FlushError() }

// delivered reports whether every answer of the request's calls has been written, and
// nothing of it failed.
func (w *httpWriter) delivered() bool {
	if !w.request.hasReceipts() || w.FlushError() != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failed && w.answers >= w.request.started()
}

// extend gives the next write its time. What cannot have a deadline is no connection.
func (w *httpWriter) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.each)) }

// isAnswer reports whether what the library writes at once, an event or a body, is a
// JSON-RPC response.
func isAnswer(p []byte) bool {
	if i := bytes.Index(p, []byte("data: ")); i >= 0 && !bytes.HasPrefix(bytes.TrimSpace(p), []byte("{")) {
		p = p[i+len("data: "):]
	}
	var m struct {
		Method        *string
		Result, Error json.RawMessage
	}
	return json.Unmarshal(bytes.TrimSpace(p), &m) == nil && m.Method == nil && (m.Result != nil || m.Error != nil)
}
