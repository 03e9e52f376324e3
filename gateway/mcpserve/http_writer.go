package mcpserve

import (
	"bytes"
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
	w.failed = w.failed || err != nil
	w.answers += bytes.Count(p, answerMark)
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

// delivered is how many answers of calls have left; 0 if anything failed.
func (w *httpWriter) delivered() int {
	if w.FlushError() != nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed {
		return 0
	}
	return w.answers
}

// extend gives the next write its time. What cannot have a deadline is no connection.
func (w *httpWriter) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.each)) }

// answerMark is in every answer of a call once, and in nothing else that is written: within
// a JSON string each quote has a backslash (callResult).
var answerMark = []byte(`"isError":`)
