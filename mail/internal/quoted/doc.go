// Package quoted marks the text that a message quotes of older ones. It splits text into
// lines that know how deeply they are quoted, finds history that carries no marks by the
// lines that introduce it, and cuts a text so that what is new comes first.
//
// Every function is pure. The package knows nothing of MIME; of HTML it knows the
// elements in which mail programs put what they quote.
package quoted
