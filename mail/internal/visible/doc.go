// Package visible shows an HTML document as a person sees it: Lines as text, with
// quoted history marked, and Sanitize as HTML that is safe to show. What a person
// would not see is in neither.
//
//	bytes -> openHTML     a tree of bounded size, and the style sheets in it
//	         tokensOf     CSS as component values
//	         sheet        rules by id, class and tag: selectors, declarations
//	         page.compute the style of one element: cascade, then colours, box, place
//	         page.show    every text and image that is seen, in order
//	      -> renderer     lines of text, or
//	         htmlWriter   clean HTML, guarded by bluemonday
//
// Lines documents which styles are judged exactly and which are exotic. An exotic rule,
// selector or value is doubtful: it counts where it hides and not where it shows. So CSS
// that is not understood can only hide.
//
// Every function is pure, takes any bytes without panicking, and costs work that
// is bounded by the length of the document. The package knows nothing of messages
// or of how they are transferred. The CSS scanners of the module graph (gorilla/css,
// douceur) end at an unclosed string or comment, where browsers go on, so CSS is read
// here.
package visible
