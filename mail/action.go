package mail

// Action is what is done to messages of a mailbox.
type Action struct {
	Do     Doing    `json:"do"`
	To     string   `json:"to,omitempty"`  // the folder, of DoMove and DoCopy
	Add    []string `json:"add,omitempty"` // flags, of DoFlags
	Remove []string `json:"remove,omitempty"`
}

// Doing is a kind of Action.
type Doing string

// The actions.
const (
	DoMove     Doing = "move"
	DoTrash    Doing = "trash"   // into the account's folder for deleted messages
	DoArchive  Doing = "archive" // into its archive
	DoCopy     Doing = "copy"    // within the account
	DoFlags    Doing = "flags"
	DoMarkRead Doing = "mark-read"
)
