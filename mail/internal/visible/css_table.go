package visible

const (
	sizeWords     = "auto min-content max-content fit-content stretch -webkit-fill-available -moz-available -moz-fit-content -webkit-fit-content -webkit-min-content -webkit-max-content intrinsic min-intrinsic"
	overflowWords = "visible hidden clip scroll auto overlay -webkit-paged-x -webkit-paged-y"
)

var (
	readExtent   = size("%", sizeWords)
	readMost     = size("%", sizeWords+" none")
	readOffset   = size("-%", "auto")
	readPadding  = size("%", "")
	readOverflow = words(overflowWords)
)

// longhands are the properties with one value of their own. Those that depend on
// the direction of writing are taken as for English.
var longhands = map[string]one{
	"display":            {display, readDisplay},
	"visibility":         {visibility, words("visible hidden collapse")},
	"content-visibility": {contentVisibility, words("visible auto hidden")},
	"opacity":            {opacity, ratio}, "-webkit-opacity": {opacity, ratio},
	"filter": {filter, readFilter}, "-webkit-filter": {filter, readFilter},
	"font-size":      {fontSize, readFontSize},
	"line-height":    {lineHeight, readLineHeight},
	"letter-spacing": {letterSpacing, size("-%", "normal")},
	"width":          {width, readExtent}, "inline-size": {width, readExtent},
	"height": {height, readExtent}, "block-size": {height, readExtent},
	"min-width": {minWidth, readExtent}, "min-inline-size": {minWidth, readExtent},
	"min-height": {minHeight, readExtent}, "min-block-size": {minHeight, readExtent},
	"max-width": {maxWidth, readMost}, "max-inline-size": {maxWidth, readMost},
	"max-height": {maxHeight, readMost}, "max-block-size": {maxHeight, readMost},
	"overflow-x": {overflowX, readOverflow}, "overflow-inline": {overflowX, readOverflow},
	"overflow-y": {overflowY, readOverflow}, "overflow-block": {overflowY, readOverflow},
	"text-indent": {textIndent, readIndent},
	"mso-hide":    {msoHide, words("all none screen")},
	"clip":        {clip, readClip},
	"clip-path":   {clipPath, readClipPath}, "-webkit-clip-path": {clipPath, readClipPath},
	"mask-image": {mask, readImages}, "-webkit-mask-image": {mask, readImages},
	"mask": {mask, readMask}, "-webkit-mask": {mask, readMask},
	"position": {position, words("static relative absolute fixed sticky -webkit-sticky")},
	"float":    {float, words("none left right inline-start inline-end")},
	"left":     {left, readOffset}, "inset-inline-start": {left, readOffset},
	"right": {right, readOffset}, "inset-inline-end": {right, readOffset},
	"top": {top, readOffset}, "inset-block-start": {top, readOffset},
	"bottom": {bottom, readOffset}, "inset-block-end": {bottom, readOffset},
	"transform": {transform, readTransform}, "-webkit-transform": {transform, readTransform},
	"translate":           {translate, readTranslate},
	"scale":               {scale, readScale},
	"rotate":              {rotate, readRotate},
	"zoom":                {zoom, readZoom},
	"backface-visibility": {backface, words("visible hidden")}, "-webkit-backface-visibility": {backface, words("visible hidden")},
	"margin-left": {marginLeft, readOffset}, "margin-inline-start": {marginLeft, readOffset},
	"margin-top": {marginTop, readOffset}, "margin-block-start": {marginTop, readOffset},
	"padding-left": {paddingLeft, readPadding}, "padding-inline-start": {paddingLeft, readPadding},
	"padding-right": {paddingRight, readPadding}, "padding-inline-end": {paddingRight, readPadding},
	"padding-bottom": {paddingBottom, readPadding}, "padding-block-end": {paddingBottom, readPadding},
	"color":                   {colorText, readColor},
	"-webkit-text-fill-color": {textFill, readColor},
	"text-shadow":             {textShadow, readShadow},
	"-webkit-text-security":   {textSecurity, words("none disc circle square")},
	"background-color":        {backgroundColor, readColor},
	"background-image":        {backgroundImage, readImages},
	"background-clip":         {backgroundClip, readArea}, "-webkit-background-clip": {backgroundClip, readArea},
	"white-space":               {whiteSpace, readWhiteSpace},
	"content":                   {content, readContent},
	"animation-name":            {animationName, readNames},
	"-webkit-animation-name":    {animationName, readNames},
	"animation-fill-mode":       {animationFill, readList("none forwards backwards both")},
	"animation-iteration-count": {animationCount, readList("infinite 0")},
}

// shorthands are the properties that set others, with those that they set.
var shorthands = map[string]struct {
	sets []property
	read func(parts []part) ([]value, truth)
}{
	"font":              {[]property{fontSize, lineHeight}, readFont},
	"overflow":          {[]property{overflowX, overflowY}, pair(readOverflow)},
	"margin":            {[]property{marginTop, marginLeft}, some(sides(readOffset), 0, 3)},
	"margin-inline":     {[]property{marginLeft}, some(pair(readOffset), 0)},
	"margin-block":      {[]property{marginTop}, some(pair(readOffset), 0)},
	"padding":           {[]property{paddingRight, paddingBottom, paddingLeft}, some(sides(readPadding), 1, 2, 3)},
	"padding-inline":    {[]property{paddingLeft, paddingRight}, pair(readPadding)},
	"padding-block":     {[]property{paddingBottom}, some(pair(readPadding), 0)},
	"inset":             {[]property{top, right, bottom, left}, sides(readOffset)},
	"inset-inline":      {[]property{left, right}, pair(readOffset)},
	"inset-block":       {[]property{top, bottom}, pair(readOffset)},
	"background":        {[]property{backgroundColor, backgroundImage, backgroundClip}, readBackground},
	"animation":         {animationParts, readAnimation},
	"-webkit-animation": {animationParts, readAnimation},
	"all":               {everyProperty(), func([]part) ([]value, truth) { return nil, no }},
}

var animationParts = []property{animationName, animationFill, animationCount}

func everyProperty() []property {
	var all []property
	for p := custom + 1; p < properties; p++ {
		if p != msoHide {
			all = append(all, p)
		}
	}
	return all
}
