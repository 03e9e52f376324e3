package answer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
)

// A server that refuses every one of its folders does not fill the answer with that; what
// could not be done with each message is told all the same.
func TestIssuesOfManyFoldersAreBounded(t *testing.T) {
	var issues []mail.Issue
	for i := range 5000 {
		issues = append(issues, mail.Issue{Kind: mail.KindRefused, Stage: "examine", Message: fmt.Sprintf("Folder %d was not searched.", i)})
	}
	for uid := range uint32(100) {
		issues = append(issues, mail.Issue{Kind: mail.KindNotFound, UID: uid + 1, Message: "There is no such message."})
	}
	o := OutcomeOf(issues, true)
	if n := len(o.Issues); n != maxIssues+100+1 || o.Status != mail.StatusPartial {
		t.Errorf("%d issues, status %s", n, o.Status)
	}
	if last := o.Issues[len(o.Issues)-1]; !strings.HasPrefix(last.Message, "Not told: 4980 further issues") || last.Code == "" {
		t.Errorf("%+v", last)
	}
	if o := OutcomeOf(issues[:maxIssues], true); len(o.Issues) != maxIssues {
		t.Errorf("%d issues of %d", len(o.Issues), maxIssues)
	}
}
