package pdftext

import (
	"bytes"
	"errors"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/filter"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const (
	maxObjects   = 1_000_000
	maxPages     = 10_000
	maxPageDepth = 64
	maxWidths    = 1 << 16
)

// document is a PDF that was read, decrypted and repaired: its objects, with
// references resolved.
type document struct {
	ctx   *model.Context
	limit int64 // bytes that a stream may decode to
	err   error // why no text may be shown
}

// page is one leaf of the page tree with its inherited attributes.
type page struct {
	contents  types.Object
	resources types.Dict
	annots    types.Array
	box       *rectangle // nil without a box
}

type rectangle struct{ x0, y0, x1, y1 float64 }

func (r rectangle) holds(x, y float64) bool {
	const margin = 1 // glyphs at the edge begin outside
	return x >= r.x0-margin && x <= r.x1+margin && y >= r.y0-margin && y <= r.y1+margin
}

// openDocument reads a PDF that opens with the empty password.
func openDocument(pdf []byte, decoded int64) (*document, error) {
	// Reading a mail attachment needs no configuration directory.
	api.DisableConfigDir()
	conf := model.NewDefaultConfiguration()
	conf.ValidationMode = model.ValidationRelaxed
	conf.Offline = true
	conf.Limits.MaxStreamBytes = MaxBytes
	conf.Limits.MaxDecodeBytes = decoded
	conf.Limits.MaxObjectCount = maxObjects
	conf.Limits.MaxObjectStreamCount = maxObjects
	conf.Limits.MaxXRefEntries = maxObjects
	ctx, err := api.ReadContext(bytes.NewReader(pdf), conf)
	switch {
	case err == nil:
	case errors.Is(err, filter.ErrDecodeLimitExceeded):
		return nil, ErrMemory
	case errors.Is(err, pdfcpu.ErrWrongPassword), errors.Is(err, pdfcpu.ErrOwnerPasswordRequired),
		errors.Is(err, pdfcpu.ErrPermissionDenied), errors.Is(err, pdfcpu.ErrUnsupportedEncryptionFeature):
		return nil, ErrEncrypted
	default:
		return nil, ErrDamaged
	}
	if ctx.Root == nil {
		return nil, ErrDamaged
	}
	return &document{ctx: ctx, limit: decoded}, nil
}

// pages returns the pages in their order. It cuts a tree with loops at the
// loop.
func (d *document) pages() (all []page) {
	seen := map[int]bool{}
	var visit func(o types.Object, p page, depth int)
	visit = func(o types.Object, p page, depth int) {
		if ref, ok := o.(types.IndirectRef); ok {
			if seen[int(ref.ObjectNumber)] {
				return
			}
			seen[int(ref.ObjectNumber)] = true
		}
		dict := d.dict(o)
		if dict == nil || depth > maxPageDepth || len(all) >= maxPages {
			return
		}
		if r := d.dict(dict["Resources"]); r != nil {
			p.resources = r
		}
		for _, key := range []string{"MediaBox", "CropBox"} {
			if box := d.rectangle(dict[key]); box != nil {
				p.box = box
			}
		}
		if kids := d.array(dict["Kids"]); kids != nil {
			for _, kid := range kids {
				visit(kid, p, depth+1)
			}
			return
		}
		p.contents, p.annots = dict["Contents"], d.array(dict["Annots"])
		all = append(all, p)
	}
	visit(d.dict(*d.ctx.Root)["Pages"], page{}, 0)
	return all
}

// content returns the content of a page: one stream, or several joined.
func (d *document) content(o types.Object) []byte {
	if parts := d.array(o); parts != nil {
		var all []byte
		for _, part := range parts {
			data, _ := d.stream(part)
			all = append(append(all, data...), '\n')
		}
		return all
	}
	data, _ := d.stream(o)
	return data
}

// stream returns the decoded content of a stream, and its dictionary. A damaged
// stream is empty.
func (d *document) stream(o types.Object) ([]byte, types.Dict) {
	sd, ok := d.resolve(o).(types.StreamDict)
	if !ok || d.err != nil {
		return nil, nil
	}
	data, err := sd.DecodeLengthWithLimit(-1, d.limit)
	if errors.Is(err, filter.ErrDecodeLimitExceeded) || int64(len(data)) > d.limit {
		d.err = ErrMemory
		return nil, nil
	}
	if err != nil {
		return nil, sd.Dict
	}
	return data, sd.Dict
}

// resolve follows references; a dangling one gives nil.
func (d *document) resolve(o types.Object) types.Object {
	o, err := d.ctx.Dereference(o)
	if err != nil {
		return nil
	}
	return o
}

func (d *document) dict(o types.Object) types.Dict {
	switch o := d.resolve(o).(type) {
	case types.Dict:
		return o
	case types.StreamDict:
		return o.Dict
	}
	return nil
}

func (d *document) array(o types.Object) types.Array {
	a, _ := d.resolve(o).(types.Array)
	return a
}

func (d *document) name(o types.Object) string {
	n, _ := d.resolve(o).(types.Name)
	return string(n)
}

func (d *document) number(o types.Object) (float64, bool) {
	switch o := d.resolve(o).(type) {
	case types.Integer:
		return float64(o), true
	case types.Float:
		return float64(o), true
	}
	return 0, false
}

// numbers returns n numbers, or nil.
func (d *document) numbers(o types.Object, n int) []float64 {
	a := d.array(o)
	if len(a) != n {
		return nil
	}
	out := make([]float64, n)
	for i, v := range a {
		f, ok := d.number(v)
		if !ok {
			return nil
		}
		out[i] = f
	}
	return out
}

func (d *document) rectangle(o types.Object) *rectangle {
	v := d.numbers(o, 4)
	if v == nil {
		return nil
	}
	return &rectangle{min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])}
}
