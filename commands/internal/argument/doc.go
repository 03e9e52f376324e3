// Package argument holds the arguments that several commands take: the forms of their
// strings, message ids, the options --account and --wait. Command makes a command whose
// arguments have these forms.
package argument
