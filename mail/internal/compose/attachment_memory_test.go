package compose

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/postern-mail/postern/mail/internal/message"
)

// An attachment is encoded into one buffer, and copied once more for the blind
// recipients.
func TestMemoryOfALargeAttachment(t *testing.T) {
	const size = 10 << 20
	for _, test := range []struct {
		bcc   []Address
		limit float64 // times the attachment
	}{
		{nil, 1.45},
		{[]Address{{Addr: "bob@example.com"}}, 2.85},
	} {
		m := sample()
		m.Attachments, m.BCC = []Attachment{{Name: "large.bin", Content: bytes.Repeat([]byte{0xa5, 1, 2}, size/3)}}, test.bcc
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := Build(m)
		runtime.ReadMemStats(&after)
		must(t, err)
		if used := float64(after.TotalAlloc-before.TotalAlloc) / size; used > test.limit {
			t.Errorf("%d blind recipients: %.2f times the attachment, want at most %.2f", len(test.bcc), used, test.limit)
		}
		e := message.Parse(b.Copy)
		p := e.Root.Children[1]
		if got := message.DecodeBody(e.Raw(p), p.Encoding); !bytes.Equal(got, m.Attachments[0].Content) {
			t.Error("the attachment is not what it was")
		}
	}
}
