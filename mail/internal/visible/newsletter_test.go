package visible

import (
	"fmt"
	"strings"
	"testing"
)

// newsletter makes a mail as programs for newsletters do, of at least so many bytes: a
// style sheet for every screen and one for phones, tables in tables, a style on every
// element.
func newsletter(size int) []byte {
	var b strings.Builder
	b.WriteString(`<!doctype html><html><head><style>body,table,td,a{-webkit-text-size-adjust:100%;color:#222}table td{border-collapse:collapse}img{border:0;line-height:100%;display:block}.ExternalClass,.ExternalClass p,.ExternalClass td{line-height:100%}a[x-apple-data-detectors]{color:inherit!important;font-size:inherit!important}#outlook a{padding:0}u + .body .gmail-hide{display:none}.mobile-only{display:none}`)
	for i := range 60 {
		fmt.Fprintf(&b, ".c%d{font-size:%dpx;line-height:%dpx;color:#%06x}.c%d a{color:#%06x}", i, 11+i%9, 14+i%12, i*1001, i, i*70_001)
	}
	b.WriteString("@media only screen and (max-width:480px){")
	for i := range 40 {
		fmt.Fprintf(&b, ".m%d{width:100%%!important;display:block!important}", i)
	}
	b.WriteString(`.desktop{display:none!important}}</style></head><body class="body"><div style="display:none;max-height:0;overflow:hidden;mso-hide:all">Preheader</div>`)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `<table role="presentation" width="100%%" cellpadding="0" cellspacing="0" border="0" bgcolor="#ffffff"><tr><td align="center" class="m%d" style="padding:20px 0;font-family:Arial,sans-serif"><table class="m%d" width="600"><tr><td class="c%d" style="font-size:14px;line-height:20px;color:#333333;padding:0 10px"><h2 style="margin:0;font-size:22px">Article %d</h2><p class="c%d" style="margin:0 0 10px 0">Some words about <b>something</b> that happened <i>lately</i>.</p><a href="https://news.example/%d?u=1" style="color:#0066cc;text-decoration:none" target="_blank">Read more</a></td><td width="200"><img src="https://news.example/%d.png" width="200" height="120" alt="" style="display:block"></td></tr></table></td></tr></table>`, i%40, (i+1)%40, i%60, i, (i+7)%60, i, i)
	}
	b.WriteString("</body></html>")
	return []byte(b.String())
}

func BenchmarkTextNewsletter(b *testing.B) {
	for _, size := range []int{50_000, 200_000, 800_000} {
		doc := newsletter(size)
		b.Run(fmt.Sprintf("%dkB", size/1000), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				Text(string(doc), 20_000_000)
			}
		})
	}
}

// A newsletter takes at most a tenth of the steps that it may take, however long it is, and is
// read whole.
func TestNewslettersAreFarFromEveryBound(t *testing.T) {
	for _, size := range []int{50_000, 500_000} {
		doc := string(newsletter(size))
		p, root, cut := openHTML(doc)
		if cut {
			t.Fatalf("%d bytes are cut", len(doc))
		}
		r := newRenderer(len(doc))
		p.show(root, p.root, r)
		if used := stepsFor(len(doc)) - p.steps; used > stepsFor(len(doc))/10 || r.full {
			t.Errorf("%d bytes take %d steps of %d", len(doc), used, stepsFor(len(doc)))
		}
		text := string(r.frames[0].out)
		if strings.Count(text, "Article ") != strings.Count(doc, "Article ") || strings.Contains(text, "Preheader") {
			t.Errorf("%d bytes: %d of %d articles", len(doc), strings.Count(text, "Article "), strings.Count(doc, "Article "))
		}
	}
}
