package compose

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/message"
)

func large(size int) *Message {
	m := sample()
	m.Attachments = []Attachment{{Name: "large.bin", Content: bytes.Repeat([]byte{0xa5, 1, 2}, size/3)}}
	return m
}

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
		m := large(size)
		m.BCC = test.bcc
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

func BenchmarkBuildShort(b *testing.B) {
	m := sample()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuildAttachment10MB(b *testing.B) {
	m := large(10 << 20)
	b.SetBytes(10 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuildText1MB(b *testing.B) {
	for name, line := range map[string]string{"flowed": longText, "cyrillic": "Протокол заседания, которое состоялось в понедельник. "} {
		b.Run(name, func(b *testing.B) {
			m := sample()
			m.Body = strings.Repeat(line, 1<<20/len(line))
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
