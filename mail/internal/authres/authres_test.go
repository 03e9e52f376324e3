package authres_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// sample is one header of testdata. Its first line names it, the account that gets it and, of
// a genuine one, why it is not verified. The shapes are those that providers write; domains,
// addresses and ids are of documentation. ␀, ␍ and ␋ stand for the control characters.
type sample struct {
	name, account, why string
	header             string
}

func samples(t testing.TB, file string) (all []sample) {
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(b), "== "), "\n== ") {
		head, header, _ := strings.Cut(part, "\n")
		fields := append(strings.Split(head, " | "), "")
		header = strings.NewReplacer("\n", "\r\n", "␀", "\x00", "␍", "\r", "␋", "\v").Replace(strings.TrimRight(header, "\n"))
		all = append(all, sample{fields[0], fields[1], fields[2], header + "\r\n\r\n"})
	}
	return all
}

// policy is that of an account: the host it is read from, or id and the authserv-ids that
// its administrator trusts.
func policy(t testing.TB, account string) *mail.Policy {
	a := mail.Account{Protocol: mail.IMAP, IMAP: mail.Endpoint{Host: account, Port: 993}}
	if ids, ok := strings.CutPrefix(account, "id "); ok {
		a.IMAP.Host, a.AuthServIDs = "imap.example.org", strings.Fields(ids)
	} else if host, port, ok := strings.Cut(account, ":"); ok {
		n, _ := strconv.Atoi(port)
		a.IMAP = mail.Endpoint{Host: host, Port: uint16(n)}
	}
	p, err := mail.CompilePolicy(&a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Of the genuine messages exactly those that say why are not verified.
func TestGenuineSenders(t *testing.T) {
	all, not := samples(t, "genuine.txt"), 0
	for _, s := range all {
		got := policy(t, s.account).Verdict(rfc5322.ParseHeader([]byte(s.header)))
		if (got == mail.Verified) != (s.why == "") {
			t.Errorf("%s is %s, expected otherwise: %s", s.name, got, s.why)
		}
		if got != mail.Verified {
			not++
			t.Logf("%s is %s: %s", s.name, got, s.why)
		}
	}
	t.Logf("%d of %d genuine messages are not verified", not, len(all))
	if len(all) < 40 || not != 18 {
		t.Errorf("%d genuine messages, of which %d are not verified", len(all), not)
	}
}

func TestForgedSenders(t *testing.T) {
	all, failed := samples(t, "forged.txt"), 0
	for _, s := range all {
		switch policy(t, s.account).Verdict(rfc5322.ParseHeader([]byte(s.header))) {
		case mail.Verified:
			t.Errorf("%s is verified", s.name)
		case mail.Failed:
			failed++
		}
	}
	t.Logf("of %d forged messages no one is verified, and %d have failed", len(all), failed)
	if len(all) < 60 {
		t.Error("the corpus is small")
	}
}

// borders returns, by account, what the borders of the corpus write above and in their edge,
// with results that verify nobody.
func borders(t testing.TB) map[string]string {
	found := make(map[string]string)
	for _, s := range samples(t, "forged.txt") {
		if strings.HasSuffix(s.name, "-border") {
			found[s.account] = strings.TrimSuffix(s.header, "\r\n")
		}
	}
	if len(found) < 6 {
		t.Fatalf("there are %d borders", len(found))
	}
	return found
}

// Whatever a stranger writes below the edge, nothing that the border did not verify is.
func FuzzStranger(f *testing.F) {
	all := borders(f)
	policies := make(map[string]*mail.Policy)
	for account := range all {
		policies[account] = policy(f, account)
	}
	for _, file := range []string{"genuine.txt", "forged.txt"} {
		for _, s := range samples(f, file) {
			f.Add(s.header)
			_, below, _ := strings.Cut(s.header, "\r\nAuthentication-Results:")
			f.Add("Authentication-Results:" + below)
			f.Add(" ; dmarc=pass header.from=bank.example\r\n" + s.header)
		}
	}
	f.Fuzz(func(t *testing.T, header string) {
		for account, border := range all {
			if got := policies[account].Verdict(rfc5322.ParseHeader([]byte(border + header))); got == mail.Verified {
				t.Errorf("%s takes a stranger for verified:\n%s%s", account, border, header)
			}
			policies[account].Verdict(rfc5322.ParseHeader([]byte(header)))
			mail.ProposedAuthServIDs(rfc5322.ParseHeader([]byte(header)))
		}
	})
}

func TestProposedAuthServIDs(t *testing.T) {
	for _, s := range samples(t, "genuine.txt") {
		ids, own := mail.ProposedAuthServIDs(rfc5322.ParseHeader([]byte(s.header))), strings.TrimPrefix(s.account, "id ")
		if s.why != "" || own == s.account || strings.HasPrefix(own, "*") {
			continue
		}
		if len(ids) != 1 || ids[0] != own {
			t.Errorf("%s proposes %q, not %s", s.name, ids, own)
		}
	}
	for _, s := range samples(t, "forged.txt") {
		if ids := mail.ProposedAuthServIDs(rfc5322.ParseHeader([]byte(s.header))); strings.Contains(s.name, "below") && strings.HasPrefix(s.account, "id ") && len(ids) != 0 {
			t.Errorf("%s proposes %q", s.name, ids)
		}
	}
}
