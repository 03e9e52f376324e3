// Package quoted marks the older messages quoted in a text. It splits text into lines
// with their quote depth, finds history without quotation marks by the lines that
// introduce it, and cuts a text so that new text comes first.
//
// Every function is pure. The package knows nothing of MIME; of HTML it knows the
// elements that mail programs use for quotations.
package quoted
