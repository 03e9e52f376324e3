package mail

import "context"

// DraftStore remembers which drafts were written here. Its methods work for the caller that the
// context names; for none every draft is somebody else's. Implementations are safe for
// concurrent use, also of several processes.
type DraftStore interface {
	// NoteDraft keeps that the caller wrote a draft, whose reference is whole. Of each caller
	// only the newest in an account are kept, and what is forgotten is somebody else's.
	NoteDraft(ctx context.Context, ref Ref) error
	// Drafts says of each of some drafts of one account, whose references are whole, what is
	// known of it.
	Drafts(ctx context.Context, refs []Ref) ([]DraftOrigin, error)
}

// DraftOrigin is what is known of a draft. The zero DraftOrigin is one that a person wrote, or
// about which nothing is known.
type DraftOrigin struct {
	ByAgent bool // an agent wrote it
	Own     bool // the caller may go on with it, send it unasked and throw it away
}
