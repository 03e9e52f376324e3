// Package visible shows an HTML document as a person sees it: Lines as text, with
// quoted history marked, and Sanitize as HTML that is safe to show. What a person
// would not see is in neither.
//
// Every function is pure, takes any bytes without panicking, and costs work that
// is bounded by the length of the document. The package knows nothing of messages
// or of how they are transferred.
package visible
