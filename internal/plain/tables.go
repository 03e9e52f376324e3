package plain

import "unicode"

// unseen is the part of Unseen above the C1 controls and below the noncharacters at
// the end of each plane.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors and separator
		{Lo: 0x200b, Hi: 0x200f, Stride: 1}, // zero width, left-to-right and right-to-left marks
		{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // separators, bidirectional embeddings and overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // word joiner, invisible operators, isolates
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // empty Braille pattern
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfdd0, Hi: 0xfdef, Stride: 1}, // noncharacters
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // halfwidth Hangul filler
		{Lo: 0xfff0, Hi: 0xfffc, Stride: 1}, // reserved, interlinear annotation, object replacement
	},
	R32: []unicode.Range32{
		{Lo: 0x13430, Hi: 0x1343f, Stride: 1}, // hieroglyph format controls
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1}, // shorthand format controls
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // null notehead
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1}, // musical format controls
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, variation selectors supplement
	},
	LatinOffset: 1,
}

// emoji holds the characters after which a variation selector or joiner is part
// of a picture. It is wider than Unicode's Emoji property, by whole blocks of
// symbols, since the only harm in that is a selector kept after an arrow.
var emoji = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00a9, Hi: 0x00a9, Stride: 1},
		{Lo: 0x00ae, Hi: 0x00ae, Stride: 1},
		{Lo: 0x203c, Hi: 0x203c, Stride: 1},
		{Lo: 0x2049, Hi: 0x2049, Stride: 1},
		{Lo: 0x2122, Hi: 0x2122, Stride: 1},
		{Lo: 0x2139, Hi: 0x2139, Stride: 1},
		{Lo: 0x2190, Hi: 0x21ff, Stride: 1},
		{Lo: 0x2300, Hi: 0x23ff, Stride: 1},
		{Lo: 0x24c2, Hi: 0x24c2, Stride: 1},
		{Lo: 0x25a0, Hi: 0x27bf, Stride: 1},
		{Lo: 0x2934, Hi: 0x2935, Stride: 1},
		{Lo: 0x2b00, Hi: 0x2bff, Stride: 1},
		{Lo: 0x3030, Hi: 0x3030, Stride: 1},
		{Lo: 0x303d, Hi: 0x303d, Stride: 1},
		{Lo: 0x3297, Hi: 0x3299, Stride: 2},
	},
	R32:         []unicode.Range32{{Lo: 0x1f000, Hi: 0x1faff, Stride: 1}},
	LatinOffset: 2,
}

// joining holds the scripts in which a joiner between two letters changes how
// the word is written.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
	unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}
