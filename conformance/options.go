package conformance

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// Options say what a run tests and may do. nil means the zero value.
type Options struct {
	Cases []*Case // nil means Embedded

	// Which of the cases; the zero values leave none out.
	Level    Level    // this level and those below
	Category Category // this category
	Suite    string   // "acli" or "mail"; empty or "all" for both
	IDs      []string // ids or patterns of path.Match, of which one matches

	Tool string // name of the tool that takes commands; empty for "cli", as 002 section 3.1 has it

	StepTimeout time.Duration // for each answer; 0 means 10 s
	MaxLost     int           // answers lost in succession after which no more is asked; 0 means 5

	AllowEffects bool     // commands that change things may be carried out
	Harmless     []string // paths of commands known to change nothing; patterns of path.Match
	Never        []string // paths of commands not to be carried out all the same, such as those that wait
	Exhaustive   bool     // ask for arguments that several commands share for each of them

	Baseline Baseline

	// Progress is called with each result, in order, from the goroutine of Run; nil
	// for nobody.
	Progress func(*Result)
}

const (
	defaultTool        = "cli"
	defaultStepTimeout = 10 * time.Second
	defaultMaxLost     = 5
	maxRateWait        = 70 * time.Second
)

func (o *Options) selects(c *Case) bool {
	if o.Level != "" && slices.Index(levels, c.Level) > slices.Index(levels, o.Level) {
		return false
	}
	if o.Category != "" && c.Category != o.Category || o.Suite != "" && o.Suite != "all" && c.Suite != o.Suite {
		return false
	}
	return len(o.IDs) == 0 || matchesAny(o.IDs, c.ID)
}

// Check returns the first fault of the options.
func (o *Options) Check() error {
	for _, p := range slices.Concat(o.IDs, o.Harmless, o.Never) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%q is not a pattern", p)
		}
	}
	switch {
	case o.Level != "" && !slices.Contains(levels, o.Level):
		return fmt.Errorf("there is no level %q", o.Level)
	case o.Category != "" && !slices.Contains(categories, o.Category):
		return fmt.Errorf("there is no category %q", o.Category)
	case o.Suite != "" && o.Suite != "all" && !slices.Contains(suites, o.Suite):
		return fmt.Errorf("there is no suite %q", o.Suite)
	}
	return nil
}

// Select returns the cases of a run with these options, in order.
func (o *Options) Select() ([]*Case, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	all, err := o.all()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *Case) bool { return !o.selects(c) }), nil
}

func (o *Options) all() ([]*Case, error) {
	if o.Cases != nil {
		return o.Cases, nil
	}
	return Embedded()
}
