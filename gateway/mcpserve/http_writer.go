package mcpserve

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"
)

// httpWriter writes a response, each part of it in bounded time, and knows whether the
// answer to a call has left whole. The library writes from several goroutines, though
// never from two at once.
type httpWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	each     time.Duration // for one write
	last     bool          // the connection ends with it, whatever the library says
	answered atomic.Bool   // something of an answer to a call was written
}

// Unwrap is for http.ResponseController.
func (w *httpWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// extend gives the next write its time. A writer that cannot have a deadline is not a
// connection.
func (w *httpWriter) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.each)) }

// prepare is done before anything is written.
func (w *httpWriter) prepare() {
	w.extend()
	if w.last {
		w.Header().Set("Connection", "close") // the first time counts
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *httpWriter) WriteHeader(status int) {
	w.prepare()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *httpWriter) Write(p []byte) (int, error) {
	w.prepare()
	if bytes.Contains(p, answerMark) {
		w.answered.Store(true)
	}
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *httpWriter) FlushError() error {
	w.prepare()
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *httpWriter) Flush() { _ = w.FlushError() }

// delivered reports whether the answer to a call has left. A write that failed makes each
// flush after it fail too.
func (w *httpWriter) delivered() bool { return w.answered.Load() && w.FlushError() == nil }

// answerMark is in every answer of a call, and in nothing else that is written: within a
// JSON string each quote has a backslash (callResult).
var answerMark = []byte(`"isError":`)
