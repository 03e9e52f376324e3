package conformance

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func reportOf(t *testing.T, file, envelope string, o Options) *Report {
	t.Helper()
	cases, err := loadText(file)
	must(t, err)
	o.Cases = cases
	report, err := Run(t.Context(), answering(func(string) string { return envelope }), &o)
	must(t, err)
	return report
}

const good, bad = `{"success":true,"data":{}}`, `{"success":false,"error":{"code":"X","message":"\u001b[31m<b>&"}}`

func TestBaseline(t *testing.T) {
	for name, c := range map[string]struct {
		envelope string
		baseline Baseline
		ok       bool
		stale    []string
	}{
		"a failure":                         {bad, nil, false, nil},
		"an expected failure":               {bad, Baseline{"a.b": "known"}, true, nil},
		"an expected failure that passes":   {good, Baseline{"a.b": "known"}, false, []string{"a.b"}},
		"an entry of a case that is not":    {good, Baseline{"a.z": "known"}, false, []string{"a.z"}},
		"an entry beside another's failure": {bad, Baseline{"a.z": "known"}, false, []string{"a.z"}},
	} {
		report := reportOf(t, caseText, c.envelope, Options{Baseline: c.baseline})
		if report.OK(true) != c.ok || !slices.Equal(report.Stale, c.stale) {
			t.Errorf("%s: ok %t, stale %v", name, report.OK(true), report.Stale)
		}
		if c.envelope == bad && report.Reached != NoLevel {
			t.Errorf("%s: a level is reached by expecting a failure", name)
		}
	}
	for _, text := range []string{`{"a.b":""}`, `["a.b"]`, `x`} {
		if _, err := ReadBaseline([]byte(text)); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}

// TestLevels holds what is reached to what passed and failed.
func TestLevels(t *testing.T) {
	result := func(l Level, s Status, strength Strength) *Result {
		return &Result{Level: l, Status: s, Strength: strength, Suite: "acli"}
	}
	for name, c := range map[string]struct {
		results []*Result
		want    Level
	}{
		"nothing":             {nil, NoLevel},
		"minimal alone":       {[]*Result{result(Minimal, Passed, Must)}, Minimal},
		"only not applicable": {[]*Result{result(Minimal, NotApplicable, Must)}, NoLevel},
		"a gap":               {[]*Result{result(Minimal, Passed, Must), result(Standard, Failed, Must), result(Full, Passed, Must)}, Minimal},
		"all":                 {[]*Result{result(Minimal, Passed, Must), result(Standard, Passed, Must), result(Full, Passed, Must)}, Full},
		"advice":              {[]*Result{result(Minimal, Passed, Must), result(Minimal, Failed, Should), result(Standard, Passed, Must)}, Standard},
		"failed below":        {[]*Result{result(Minimal, Failed, Must), result(Standard, Passed, Must)}, NoLevel},
	} {
		r := &Report{Results: c.results}
		if r.count(false); r.Reached != c.want {
			t.Errorf("%s: %s", name, r.Reached)
		}
	}
}

func TestStrictCountsAdvice(t *testing.T) {
	report := reportOf(t, strings.Replace(caseText, `"title"`, `"strength":"should","title"`, 1), bad, Options{})
	if !report.OK(false) || report.OK(true) {
		t.Errorf("ok %t, strictly %t", report.OK(false), report.OK(true))
	}
}

func TestTheTableShowsWhatWasSentAndCameWithoutControls(t *testing.T) {
	var b strings.Builder
	must(t, WriteTable(&b, reportOf(t, caseText, bad, Options{}), false))
	for _, want := range []string{"FAILED  a.b", "sent      help", "/success: value must be true", "level reached: none"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.ContainsRune(b.String(), '\x1b') {
		t.Error("an escape character")
	}
}

func TestJUnitIsXMLWithTheRightCounts(t *testing.T) {
	for envelope, failures := range map[string]int{good: 0, bad: 1} {
		var b strings.Builder
		must(t, WriteJUnit(&b, reportOf(t, caseText, envelope, Options{}), false))
		var got junitSuite
		if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if got.Tests != 1 || got.Failures != failures {
			t.Errorf("%d tests, %d failures", got.Tests, got.Failures)
		}
	}
}

// TestNothingIsCarriedOutThatIsNotKnownToBeHarmless has a server with a command that
// changes things, and looks at everything it is sent.
func TestNothingIsCarriedOutThatIsNotKnownToBeHarmless(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"help":        `{"success":true,"data":{"commands":[{"name":"wipe","description":"d"}]}}`,
		"help wipe":   `{"success":true,"data":{"command":"wipe","description":"d","arguments":[{"name":"--n","type":"integer","description":"d","default":3,"short":"-n"},{"name":"--all","type":"flag","description":"d"},{"name":"target","type":"string","required":true,"description":"d"}],"examples":["wipe disk --n 2"]}}`,
		"schema wipe": `{"success":true,"data":{"command":"wipe","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":5,"default":3}}},"outputSchema":{"type":"object"}}}`,
	}
	for name, c := range map[string]struct {
		o    Options
		runs bool
	}{
		"by default":         {Options{}, false},
		"declared harmless":  {Options{Harmless: []string{"wipe"}}, true},
		"effects allowed":    {Options{AllowEffects: true}, true},
		"never all the same": {Options{AllowEffects: true, Never: []string{"wi*"}}, false},
	} {
		ran := []string{}
		var mu sync.Mutex
		target := answering(func(command string) string {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, command)
			return cmp.Or(answers[command], `{"success":false,"error":{"code":"VALIDATION_ERROR","message":"no"}}`)
		})
		c.o.StepTimeout, c.o.IDs = time.Second, []string{"argument.*", "discovery.*", "response.*", "security.*", "parser.[a-r]*"}
		if _, err := Run(t.Context(), target, &c.o); err != nil {
			t.Fatal(err)
		}
		unguarded := slices.ContainsFunc(ran, func(s string) bool {
			return (s == "wipe" || strings.HasPrefix(s, "wipe ")) && !strings.Contains(s, "--zz-no-such-option") && !strings.Contains(s, "zz-no-such-command")
		})
		if unguarded != c.runs {
			t.Errorf("%s: %q", name, ran)
		}
		if len(ran) < 150 {
			t.Errorf("%s: only %d commands were sent", name, len(ran))
		}
	}
}
