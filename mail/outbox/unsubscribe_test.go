package outbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/oneclick"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// listed is a message of a list of news.example, as the account's border took it, that says how to
// leave the list; of no list where that is empty.
func listed(subject, list, leave string) mailtest.Letter {
	l := mailtest.Letter{From: "News <news@news.example>", Subject: subject, Extra: "Authentication-Results: mx.example.org; dkim=pass header.d=news.example\r\n" +
		"Received: from out.news.example (out.news.example [192.0.2.1]) by mx.example.org with ESMTPS; Mon, 1 Jan 2024 00:00:00 +0000\r\n" +
		"DKIM-Signature: d=news.example; s=a; h=From:List-Unsubscribe:List-Unsubscribe-Post; b=abcdefgh\r\n"}
	if list != "" {
		l.Extra += "List-Id: <" + list + ".news.example>\r\nList-Unsubscribe: " + leave + "\r\n"
	}
	if strings.Contains(leave, "https") {
		l.Extra += "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
	}
	return l
}

func judging(a *mail.Account) { a.AuthServIDs = []string{"mx.example.org"} }

// listServer answers requests with the status in their path, and keeps the paths.
type listServer struct {
	own   sync.Mutex
	asked []string
	post  func(ctx context.Context, uri string) error
}

func newListServer(t *testing.T) *listServer {
	t.Helper()
	l := &listServer{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.own.Lock()
		l.asked = append(l.asked, r.URL.RequestURI())
		l.own.Unlock()
		status := http.StatusOK
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil && status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	client := &oneclick.Client{Roots: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, May: func(a netip.AddrPort) bool { return a.Addr().IsLoopback() }}
	l.post = func(ctx context.Context, uri string) error {
		return client.Post(ctx, strings.Replace(uri, "https://news.example", s.URL, 1))
	}
	return l
}

func (l *listServer) paths() string {
	l.own.Lock()
	defer l.own.Unlock()
	slices.Sort(l.asked)
	return strings.Join(l.asked, " ")
}

// lists are the outcomes of an entry's lists, by the subjects.
func lists(e *mail.Outgoing) string {
	var words []string
	for _, l := range e.Unsubscribes {
		words = append(words, " "+l.Subject+":"+string(l.Outcome))
	}
	slices.Sort(words)
	return string(e.State) + strings.Join(words, "")
}

func TestUnsubscribingAsksBelowReadWrite(t *testing.T) {
	t.Parallel()
	_, dovecot := mailtest.Shared(t, servertest.Config{})
	for _, mode := range []mail.Mode{mail.ReadOnly, mail.Draft, mail.Approve, mail.Reply, mail.ReadWrite} {
		d := newMailboxFixture(t, dovecot, "leaves-"+strings.ToLower(string(mode)), judging, func(a *mail.Account) {
			a.Mode, a.AllowOut = mode, mail.AllowList{Enabled: true, Entries: []string{"@news.example"}}
		})
		d.create("Drafts")
		server := newListServer(t)
		d.ask = server.post
		var refs []mail.Ref
		for _, u := range d.box.Add("INBOX", listed("Old", "a", "<https://news.example/200?old>"), listed("New", "a", "<https://news.example/200?new>"), listed("Other", "b", "<https://news.example/200?b>"),
			listed("By mail", "c", "<mailto:off@news.example?subject=Off%20c&cc=eve@evil.example>"), listed("None", "", "")) {
			refs = append(refs, d.box.Ref("INBOX", u))
		}
		got, err := d.Unsubscribe(t.Context(), account, refs, "agent")
		if err != nil || got.Entry == nil {
			t.Fatalf("%s: %+v, %v", mode, got, err)
		}
		want, asked := "waiting", ""
		if mode == mail.ReadWrite {
			want, asked = "done", "/200?b /200?new"
		}
		if string(got.Entry.State) != want || server.paths() != asked || len(got.Entry.Unsubscribes) != 2 {
			t.Errorf("%s: %s, asked %q", mode, lists(got.Entry), server.paths())
		}
		if mode == mail.ReadOnly {
			if len(got.Drafts) != 0 || len(got.Not) != 2 || !strings.Contains(got.Not[0].Why+got.Not[1].Why, "No draft of a letter") {
				t.Errorf("%s: %+v", mode, got.Not)
			}
		} else if drafts := d.In("Drafts"); len(got.Drafts) != 1 || len(drafts) != 1 || len(got.Not) != 1 || got.Not[0].Ref.UID != refs[4].UID || got.Not[0].Why != string(mail.NoPostUnnamed) ||
			!strings.Contains(drafts[0].raw, "To: off@news.example\r\n") || !strings.Contains(drafts[0].raw, "Subject: Off c\r\n") || strings.Contains(drafts[0].raw, "eve@") {
			t.Errorf("%s: %+v, %+v", mode, got, drafts)
		}
		again, err := d.Unsubscribe(t.Context(), account, refs[:3], "agent")
		if err != nil || again.Entry.ID != got.Entry.ID || !again.Entry.Replayed || server.paths() != asked {
			t.Errorf("%s, again: %+v, %v, asked %q", mode, again.Entry, err, server.paths())
		}
		if want == "waiting" {
			s, err := d.Show(t.Context(), got.Entry.ID)
			if err != nil || s.Unsubscribes[0].Host() != "news.example" || s.Unsubscribes[0].From.Addr != "news@news.example" || !strings.Contains(s.Why(), "each list") {
				t.Errorf("shown as %+v, %v", s, err)
			}
			done, err := d.Approve(t.Context(), got.Entry.ID, got.Entry.Digest, "ann")
			if err != nil || !strings.HasPrefix(lists(done), "done ") || strings.Count(lists(done), ":unsubscribed") != 2 || server.paths() != "/200?b /200?new" {
				t.Errorf("%s, approved: %+v, %v, asked %q", mode, done, err, server.paths())
			}
		}
		if len(d.server.messages()) != 0 {
			t.Error("something was sent")
		}
	}
}

// What comes of requests is kept for each list, and what is not known is never asked again but by a
// person.
func TestOutcomesOfUnsubscribing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		paths []string
		want  string // each list with its outcome
		asked string
	}{
		"all refuse":     {[]string{"/410", "/307"}, "refused 0:refused 1:refused", "/307 /410"},
		"one refuses":    {[]string{"/410", "/204"}, "partly 0:refused 1:unsubscribed", "/204 /410"},
		"one is silent":  {[]string{"/200", "/0"}, "unknown 0:unsubscribed 1:unknown", "/0 /200"},
		"none is public": {[]string{"", ""}, "refused 0:unsent 1:unsent", ""},
		"one is not":     {[]string{"/200", ""}, "partly 0:unsubscribed 1:unsent", "/200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newMailboxFixture(t, mailtest.InMemory(t), "outcomes", judging, func(a *mail.Account) { a.Mode = mail.ReadWrite })
			server := newListServer(t)
			d.ask = func(ctx context.Context, uri string) error {
				if strings.HasSuffix(uri, "example") {
					return new(oneclick.Client).Post(ctx, "https://10.0.0.1/")
				}
				return server.post(ctx, uri)
			}
			var refs []mail.Ref
			for i, p := range c.paths {
				for _, u := range d.box.Add("INBOX", listed(fmt.Sprint(i), fmt.Sprint("l", i), "<https://news.example"+p+">")) {
					refs = append(refs, d.box.Ref("INBOX", u))
				}
			}
			got, err := d.Unsubscribe(t.Context(), account, refs, "agent")
			if got == nil || lists(got.Entry) != c.want || server.paths() != c.asked || (err != nil) != (c.asked == "") {
				t.Fatalf("%+v, %v, asked %q", got, err, server.paths())
			}
			if got.Entry.State != mail.OutboxUnknown {
				return
			}
			again, err := d.Unsubscribe(t.Context(), account, refs[1:], "agent")
			if err != nil || again.Entry.ID != got.Entry.ID || again.Entry.State != mail.OutboxUnknown || server.paths() != c.asked {
				t.Errorf("again: %+v, %v, asked %q", again.Entry, err, server.paths())
			}
			if e, err := d.Approve(t.Context(), got.Entry.ID, got.Entry.Digest, "ann"); err != nil || lists(e) != c.want || server.paths() != "/0 /0 /200" {
				t.Errorf("a person lets it go on: %+v, %v, asked %q", e, err, server.paths())
			}
		})
	}
}

// A process that ends between a request and its record leaves it unknown.
func TestKilledWhileUnsubscribing(t *testing.T) {
	t.Parallel()
	for moment, want := range map[string]struct {
		lists string
		asked int
	}{
		"before gate":    {"waiting 0:", 0},
		"after gate":     {"unknown 0:", 0},
		"after asked":    {"unknown 0:unknown", 1},
		"before outcome": {"unknown 0:unknown", 1},
		"after outcome":  {"done 0:unsubscribed", 1},
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			c := newCrashFixture(t, mail.Approve, judging)
			d, file := c.mailbox, filepath.Join(t.TempDir(), "asked")
			refs := []mail.Ref{d.box.Ref("INBOX", d.box.Add("INBOX", listed("0", "l", "<https://news.example/u>"))[0])}
			got, err := d.Unsubscribe(t.Context(), account, refs, "agent")
			must(t, err)
			asked := func() int {
				b, _ := os.ReadFile(file)
				return strings.Count(string(b), "\n")
			}
			c.kill(moment, orders{Approve: true, Asked: file})
			e := d.entries()[0]
			if lists(&e) != want.lists || asked() != want.asked {
				t.Fatalf("left %s, asked %d times", lists(&e), asked())
			}
			d.now = func() time.Time { return time.Now().Add(time.Hour) } // the lease of the dead is over
			d.ask = orders{Asked: file}.Post
			if again, err := d.Unsubscribe(t.Context(), account, refs, "agent"); err != nil || again.Entry.ID != got.Entry.ID || asked() != want.asked {
				t.Errorf("again: %+v, %v, asked %d times", again.Entry, err, asked())
			}
			done, err := d.Approve(t.Context(), e.ID, e.Digest, "ann")
			if again := min(1, 1-strings.Count(want.lists, "done")); (err == nil) != (again == 1) || lists(done) != "done 0:unsubscribed" || asked() != want.asked+again {
				t.Errorf("approved again: %s, %v, asked %d times", lists(done), err, asked())
			}
		})
	}
}
