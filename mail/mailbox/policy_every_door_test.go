package mailbox_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// doors is every method that takes the name of a message.
var doors = map[string]func(b *box, r mail.Ref) (any, error){
	"get": func(b *box, r mail.Ref) (any, error) { return b.Get(b.T.Context(), r, mailbox.GetQuery{}) },
	"get all": func(b *box, r mail.Ref) (any, error) {
		return b.Get(b.T.Context(), r, mailbox.GetQuery{Headers: mailbox.HeadersAll, HTML: true, AttachmentText: true, Content: true})
	},
	"raw": func(b *box, r mail.Ref) (any, error) { return b.Raw(b.T.Context(), r, 0) },
	"draft": func(b *box, r mail.Ref) (any, error) {
		raw, _, err := b.Draft(b.T.Context(), "mail send", r)
		return raw, err
	},
	"attachment": func(b *box, r mail.Ref) (any, error) { return b.Attachment(b.T.Context(), r, "2") },
	"thread":     func(b *box, r mail.Ref) (any, error) { return b.Thread(b.T.Context(), r, mailbox.ThreadQuery{}) },
	"ack":        func(b *box, r mail.Ref) (any, error) { return b.Ack(b.T.Context(), account, []mail.Ref{r}) },
	"mark-read": func(b *box, r mail.Ref) (any, error) {
		return b.MarkRead(b.T.Context(), account, []mail.Ref{r})
	},
	"flags": func(b *box, r mail.Ref) (any, error) {
		return b.SetFlags(b.T.Context(), account, []mail.Ref{r}, []string{"x"}, nil)
	},
	"copy": func(b *box, r mail.Ref) (any, error) {
		return b.Copy(b.T.Context(), account, []mail.Ref{r}, "", b.In("Archive"))
	},
	"copy away": func(b *box, r mail.Ref) (any, error) {
		return b.Copy(b.T.Context(), account, []mail.Ref{r}, "far", "INBOX")
	},
	"move": func(b *box, r mail.Ref) (any, error) {
		return b.Move(b.T.Context(), account, []mail.Ref{r}, b.In("Archive"))
	},
	"delete":    func(b *box, r mail.Ref) (any, error) { return b.Delete(b.T.Context(), account, []mail.Ref{r}) },
	"to delete": func(b *box, r mail.Ref) (any, error) { return b.ToDelete(b.T.Context(), account, []mail.Ref{r}) },
	"delete approved": func(b *box, r mail.Ref) (any, error) {
		return b.DeleteApproved(b.T.Context(), account, []mail.Ref{r})
	},
}

// batches is every method that takes several.
var batches = map[string]func(b *box, r []mail.Ref) (*mailbox.Changed, error){
	"ack": func(b *box, r []mail.Ref) (*mailbox.Changed, error) { return b.Ack(b.T.Context(), account, r) },
	"mark-read": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.MarkRead(b.T.Context(), account, r)
	},
	"flags": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.SetFlags(b.T.Context(), account, r, []string{"x"}, nil)
	},
	"copy": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.Copy(b.T.Context(), account, r, "", b.In("Archive"))
	},
	"copy away": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.Copy(b.T.Context(), account, r, "far", "INBOX")
	},
	"move": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.Move(b.T.Context(), account, r, b.In("Archive"))
	},
	"delete": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.Delete(b.T.Context(), account, r)
	},
	"to delete": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		_, err := b.ToDelete(b.T.Context(), account, r)
		return nil, err
	},
	"delete approved": func(b *box, r []mail.Ref) (*mailbox.Changed, error) {
		return b.DeleteApproved(b.T.Context(), account, r)
	},
}

// hiding makes a mailbox with shown and hidden messages and a second account that
// copies may go to.
func hiding(t *testing.T, e mailtest.Endpoint, user string) (b *box, shown, hidden uint32) {
	t.Helper()
	b = open(t, e, user, writable, allowing("bob@example.org"))
	far := b.Dir.Known[account]
	far.Name, far.AllowIn = "far", mail.AllowList{}
	b.Dir.Set(far)
	b.remembering()
	_ = b.Admin.Create(b.In("Archive"), nil).Wait() // some servers have it
	extra, body := mixed("Content-Type: text/plain\r\n\r\nsecret", attachment("secret.bin", 100))
	b.Add("INBOX", letter{Subject: "first"})
	hidden = b.Add("INBOX", letter{Subject: "secret", From: "eve@evil.example", Extra: extra, Body: body})[0]
	shown = b.Add("INBOX", letter{Subject: "shown", Extra: extra, Body: body})[0]
	return b, shown, hidden
}

// told is everything that an answer tells.
func told(v any, err error) string {
	var e *mail.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s|%s|%s|%s|%s|%v", e.Op, e.Kind, e.Stage, e.Message, e.Advice, e.Retryable)
	}
	return fmt.Sprintf("%+v %v", v, err)
}

// Whatever is asked about a hidden message, the answer is that for one that does
// not exist, and nothing happens to it.
func Test000_9_NoDoorLeadsToAHiddenMessage(t *testing.T) {
	for _, e := range mailtest.Endpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			b, _, hidden := hiding(t, e, "doors")
			before := b.subjects("INBOX")
			for name, door := range doors {
				for range 2 { // also where the folder is open already
					got, hiddenErr := door(b, b.Ref("INBOX", hidden))
					want, missingErr := door(b, b.Ref("INBOX", 4711))
					if told(got, hiddenErr) != told(want, missingErr) {
						t.Errorf("%s:\nhidden  %s\nmissing %s", name, told(got, hiddenErr), told(want, missingErr))
					}
					// The audit is told why; the answer is not.
					if h, m := mailtest.WantKind(t, hiddenErr, mail.KindNotFound), mailtest.WantKind(t, missingErr, mail.KindNotFound); h.Reason != "filtered" || m.Reason != "" {
						t.Errorf("%s: the audit is told %q and %q", name, h.Reason, m.Reason)
					}
				}
			}
			if after := b.subjects("INBOX"); !slices.Equal(before, after) {
				t.Errorf("before %q, after %q", before, after)
			}
			b.want("Archive")
		})
	}
}

// Beside a visible message a hidden one is an issue like any other that is not
// there, and nothing happens to it.
func Test000_9_NoBatchTakesAHiddenMessageAlong(t *testing.T) {
	_, e := mailtest.Dovecot(t, servertest.Config{})
	for name, batch := range batches {
		t.Run(name, func(t *testing.T) {
			answer := func(user string, other func(hidden uint32) uint32) (string, []string) {
				b, shown, hidden := hiding(t, e, user)
				c, err := batch(b, b.refs("INBOX", shown, other(hidden)))
				text := told(nil, err)
				if c != nil {
					validity := regexp.MustCompile(`:\d+:`) // that of a mailbox made a second later differs
					for i := range c.Issues {
						c.Issues[i].Reason = "" // for the audit alone
						c.Issues[i].MessageID = validity.ReplaceAllString(c.Issues[i].MessageID, ":V:")
					}
					text = fmt.Sprintf("%d of %d, %d done, issues %+v", c.Succeeded, c.Attempted, len(c.Messages), c.Issues)
				}
				for _, written := range []string{"UID:%d ", ":%d}", ":%d Reason", "UID %d."} {
					text = strings.ReplaceAll(text, fmt.Sprintf(written, other(hidden)), "N")
				}
				return text, b.subjects("INBOX")
			}
			user := strings.ReplaceAll(name, " ", "")
			got, _ := answer("h"+user, func(h uint32) uint32 { return h })
			want, _ := answer("m"+user, func(uint32) uint32 { return 4711 })
			if cut(got) != cut(want) {
				t.Errorf("hidden:\n%s\nmissing:\n%s", got, want)
			}
			_, left := answer("l"+user, func(h uint32) uint32 { return h })
			if !slices.Contains(left, "secret") {
				t.Errorf("something happened to the hidden message: %q", left)
			}
		})
	}
}

// cut takes the UIDVALIDITY, which differs by folder, out of message ids.
func cut(s string) string {
	var out []string
	for word := range strings.FieldsSeq(s) {
		if p := strings.Split(word, ":"); len(p) >= 4 {
			p[len(p)-1] = "V"
			word = strings.Join(p, ":")
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// A conversation that runs through a hidden message does not tell of it: what only
// the hidden message links stays apart.
func Test000_9_ThreadIsNoSideDoor(t *testing.T) {
	for _, e := range mailtest.Endpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			b := open(t, e, "sidethread", allowing("bob@example.org"))
			id := func(n int, refs string) string { return fmt.Sprintf("Message-ID: <m%d@x>\r\n%s", n, refs) }
			u := b.Add("INBOX",
				letter{Subject: "one", Extra: id(1, "")},
				letter{Subject: "two", From: "eve@evil.example", Extra: id(2, "References: <m1@x> <m3@x>\r\n")},
				letter{Subject: "three", Extra: id(3, "")},
				letter{Subject: "Re: one", Extra: id(4, "References: <m1@x>\r\nIn-Reply-To: <m1@x>\r\n")},
			)
			for uid, want := range map[uint32][]string{u[0]: {"one", "Re: one"}, u[2]: {"three"}} {
				th, err := b.Thread(t.Context(), b.Ref("INBOX", uid), mailbox.ThreadQuery{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, m := range th.Messages {
					got = append(got, m.Subject)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) || th.Truncated || len(th.Issues) > 0 {
					t.Errorf("%q, want %q: %+v", got, want, th)
				}
			}
		})
	}
}

// What a hidden message is made of, however unreadable, changes nothing about the
// visible ones.
func Test000_9_AHiddenMessageCannotSpoilTheOthers(t *testing.T) {
	_, e := mailtest.Dovecot(t, servertest.Config{})
	answers := func(user string, poison bool) string {
		b := open(t, e, user, allowing("bob@example.org"))
		textOnly, textBody := mixed("Content-Type: text/plain\r\n\r\nhi")
		filed, filedBody := mixed("Content-Type: text/plain\r\n\r\nhi", attachment("f", 100))
		b.Add("INBOX", letter{Subject: "good", Extra: textOnly, Body: textBody}, letter{Subject: "good", Extra: filed, Body: filedBody})
		if poison {
			b.Add("INBOX", letter{Subject: "Re: good", From: "eve@evil.example", Extra: "Content-Type: application/pdf; name=\"" + strings.Repeat("x", 200_000) + "\"\r\n"})
		} else {
			b.Add("INBOX", letter{Subject: "Re: good", From: "eve@evil.example"})
		}
		var out strings.Builder
		for _, q := range []mailbox.ListQuery{{}, {Full: true}, {Unread: true}} {
			for _, m := range b.list(q).Messages {
				fmt.Fprintln(&out, m.Ref.UID, m.HasAttachments)
			}
		}
		for _, q := range []mailbox.SearchQuery{{Subject: "good"}, {Attachments: true}, {Attachments: true, Snippet: 200}} {
			p := b.search(q)
			fmt.Fprintln(&out, p.Total, p.Attempted, p.Failed, p.HasMore, len(p.Issues))
			for _, m := range p.Messages {
				fmt.Fprintln(&out, m.Ref.UID, m.HasAttachments, m.Snippet)
			}
		}
		th, lines := b.thread(1, mailbox.ThreadQuery{})
		fmt.Fprintln(&out, lines, th.Truncated, th.Messages[0].HasAttachments)
		return out.String()
	}
	if poisoned, clean := answers("poisoned", true), answers("clean", false); poisoned != clean || !strings.Contains(clean, "2 true") || !strings.Contains(clean, "1 false") {
		t.Errorf("with a hidden message nobody can read:\n%s\nwith a plain one:\n%s", poisoned, clean)
	}
}

// However many hidden messages have the subject of a conversation, it is the same.
func Test000_9_HiddenMessagesDoNotCountInAThread(t *testing.T) {
	if testing.Short() {
		t.Skip("delivers 1,100 messages")
	}
	s, e := mailtest.Dovecot(t, servertest.Config{})
	b := open(t, e, "crowded", allowing("bob@example.org"))
	b.Add("INBOX", talk(1, "plan", "a@x"), talk(2, "Re: plan", "b@x", "a@x"))
	var crowd [][]byte
	for i := range 1100 {
		crowd = append(crowd, []byte(fmt.Sprintf("From: eve@evil.example\r\nSubject: Re: plan\r\nMessage-ID: <e%d@x>\r\nReferences: <a@x>\r\n\r\nx\r\n", i)))
	}
	s.Deliver(t, "crowded", "INBOX", crowd...)
	if th, got := b.thread(1, mailbox.ThreadQuery{}); len(got) != 2 || th.Truncated {
		t.Errorf("%q, truncated %v", got, th.Truncated)
	}
}

// A copy or move whose answer is lost may have happened: nobody is told that it is
// safe to try again.
func TestALostAnswerIsNotSafeToRepeat(t *testing.T) {
	for verb, do := range map[string]func(k *keeper) error{
		"UID COPY": func(k *keeper) error { return second(k.Copy(t.Context(), account, kept(5), "", "Done")) },
		"UID MOVE": func(k *keeper) error { return second(k.Move(t.Context(), account, kept(5), "Done")) },
	} {
		t.Run(verb, func(t *testing.T) {
			opened := [][2]string{{oneMessage, ""}}
			k := keeping(t, "MOVE UIDPLUS", map[string][][2]string{"EXAMINE": opened, "UID FETCH": {{"* 1 FETCH (UID 5 FLAGS ())\r\n", ""}},
				verb: {{"* BYE\r\n", "gone"}}}) // no answer to the command itself
			if e := mailtest.WantKind(t, do(k), mail.KindConnection); e.Retryable || !strings.Contains(e.Message, "not known") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A message that a COPYUID leaves out is not reported as moved.
func TestWhatACopyUIDLeavesOutIsAnIssue(t *testing.T) {
	k := keeping(t, "MOVE UIDPLUS", map[string][][2]string{"UID FETCH": {{flagged("", ""), ""}}, "UID MOVE": {{"* OK [COPYUID 9 5 1] moved\r\n", ""}}})
	c, err := k.Move(t.Context(), account, kept(5, 6), "Done")
	if err != nil || len(c.Messages) != 1 || c.Messages[0].New.UID != 1 || c.Succeeded != 1 || len(c.Issues) != 1 || c.Issues[0].UID != 6 {
		t.Errorf("%+v %v", c, err)
	}
}
