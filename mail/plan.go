package mail

import "time"

const (
	// PlanWaits is how long a plan can be run after it was made.
	PlanWaits = 24 * time.Hour
	// MaxPlanned bounds the messages of a plan.
	MaxPlanned = 20_000
)

// Plan is what an entry of kind OutboxPlan shows of the messages that it names, as they were when
// it was made, and what became of them. Its size is bounded whatever they say: text of theirs is
// cut. Which messages they are stands in the bytes of the entry, of which List is the SHA-256 in
// hexadecimal; the Digest of the entry covers all of it but Bound and Outcome.
type Plan struct {
	Action
	List string `json:"list"`
	// Held says that it was no plan: a command would have changed these messages, and a person
	// has to decide first.
	Held bool `json:"held,omitempty"`

	Count        int           `json:"count"`
	Folders      []PlanFolder  `json:"folders"`                 // most first, at most MaxPlanFolders
	OtherFolders int           `json:"other_folders,omitempty"` // how many more there are
	Oldest       time.Time     `json:"oldest,omitzero"`         // as in a list; zero where none says a date
	Newest       time.Time     `json:"newest,omitzero"`
	Senders      []PlanSender  `json:"senders"`                 // most first, at most MaxPlanSenders
	OtherSenders int           `json:"other_senders,omitempty"` // how many more there are
	Personal     Personal      `json:"personal"`
	Examples     []PlanMessage `json:"examples"` // at most MaxPlanExamples: first what is no bulk mail, the newest first

	// Bound is Policy.AskChanges, where that makes a person decide.
	Bound   int         `json:"bound,omitempty"`
	Outcome PlanOutcome `json:"outcome"`
}

// The bounds of the lists of a Plan.
const (
	MaxPlanFolders  = 8
	MaxPlanSenders  = 8
	MaxPlanExamples = 5
)

// PlanFolder is a folder of messages of a plan.
type PlanFolder struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// PlanSender is who wrote messages of a plan, by the address.
type PlanSender struct {
	Address Address `json:"address"`
	Count   int     `json:"count"`
}

// Personal counts what is no bulk mail among messages: those that are flagged, that were
// answered, that come from somebody who was written to before, that have attachments, and that
// have no sign of a list or of bulk mail. One message may count in several; Any counts each once that
// is flagged, answered, known, or attached to.
type Personal struct {
	Any         int `json:"any,omitempty"`
	Flagged     int `json:"flagged,omitempty"`
	Answered    int `json:"answered,omitempty"`
	Known       int `json:"known,omitempty"`       // from people written to before
	Attachments int `json:"attachments,omitempty"` // with attachments
	Unlisted    int `json:"unlisted,omitempty"`    // without List-Unsubscribe, List-Id and Precedence: perhaps no newsletter
}

// PlanMessage is one of the messages of a plan, as the policy showed it.
type PlanMessage struct {
	ID      string    `json:"id"`            // its Ref, with UIDVALIDITY
	Date    time.Time `json:"date,omitzero"` // when it arrived, where it says no date
	From    Address   `json:"from"`
	Subject string    `json:"subject,omitempty"`
	Marks   []string  `json:"marks,omitempty"` // why it is no bulk mail: flagged answered known attachments
}

// PlanOutcome is what became of the messages of a plan so far. What is in none of the counts was
// not tried yet.
type PlanOutcome struct {
	Done int `json:"done,omitempty"`
	Gone int `json:"gone,omitempty"` // they had left their folder since, and were left alone
	Left int `json:"left,omitempty"` // they are still there
	// Reason is one sentence on the first of Left.
	Reason string `json:"reason,omitempty"`
}

// Tried is how many messages have an outcome.
func (o *PlanOutcome) Tried() int { return o.Done + o.Gone + o.Left }
