package codes

import (
	"strings"
	"unicode/utf8"
)

// candidateAt returns the longest run that begins with a word and looks like a code. ok is
// false for ordinary words, and for numbers that are part of something larger, such as a date,
// a price or a phone number. Either way c.last is where the run ends.
func candidateAt(words []word, i int) (c candidate, ok bool) {
	w := words[i]
	c = candidate{first: i, last: i}
	if w.digits == len(w.text) {
		even, total := true, len(w.text)
		for j := i + 1; j < len(words) && words[j].digits == len(words[j].text) && splits(words[j]); j++ {
			c.last = j
			even = even && len(words[j].text) == len(w.text)
			total += len(words[j].text)
		}
		c.typed = joined(words[i:c.last+1], "")
		most := 10
		if c.last > i {
			most = 8
		}
		return c, even && 4 <= total && total <= most && !joins(words, c)
	}
	if w.lower && w.digits == 0 { // three words or more
		for j := i + 1; j < len(words) && words[j].gap == "-" && words[j].lower && words[j].digits == 0; j++ {
			c.last = j
		}
		c.typed, c.kind = joined(words[i:c.last+1], "-"), letters
		return c, c.last >= i+2 && len(c.typed) <= 40 && asciiOnly(c.typed)
	}
	c.kind = capital
	if w.lower {
		c.kind = small
	}
	numbers, even, total := w.digits, true, len(w.text)
	for j := i + 1; j < len(words) && words[j].gap == "-" && !(words[j].lower && words[j].digits == 0); j++ {
		c.last = j
		even = even && len(words[j].text) == len(w.text)
		total += len(words[j].text)
		numbers += words[j].digits
	}
	c.typed = joined(words[i:c.last+1], "-")
	groups := c.last - i + 1
	switch {
	case groups == 2 && numbers == words[c.last].digits && numbers == len(words[c.last].text) && len(w.text) <= 3:
		// G-123456: the letters say from whom it is
		c.typed, c.kind = words[c.last].text, digits
		return c, 4 <= numbers && numbers <= 10 && !joins(words, c)
	case groups > 1:
		return c, even && 6 <= total && total <= 32 && 3 <= len(w.text) && len(w.text) <= 5 && !joins(words, c)
	case numbers == 0:
		c.kind = letters
		return c, 5 <= total && total <= 8 && asciiOnly(w.text) && !shouted(words, i) && !joins(words, c)
	}
	return c, 5 <= total && total <= 16 && asciiOnly(w.text) && !joins(words, c)
}

// splits reports whether a group of digits continues the one before it.
func splits(w word) bool {
	return !strings.Contains(w.gap, "\n") && utf8.RuneCountInString(w.gap) <= 3 && strings.Trim(w.gap, "-‐‑–— \u00a0|·") == ""
}

// joins reports whether a candidate is part of something larger.
func joins(words []word, c candidate) bool {
	first, last := words[c.first], words[c.last]
	if first.gap != "" && c.first > 0 {
		switch before := first.gap[len(first.gap)-1]; {
		case strings.ContainsRune("+#$@/\\&~%^", rune(before)), strings.HasSuffix(first.gap, "€"), strings.HasSuffix(first.gap, "£"),
			len(first.gap) == 1 && strings.ContainsRune(".,:'_=", rune(before)) && words[c.first-1].digits > 0:
			return true
		case strings.HasSuffix(strings.TrimSpace(first.gap), "+"), strings.HasSuffix(strings.TrimSpace(first.gap), "$"), strings.HasSuffix(strings.TrimSpace(first.gap), "€"):
			return true
		}
	}
	if c.last+1 < len(words) {
		after := words[c.last+1]
		gap := strings.TrimLeft(after.gap, " \u00a0")
		if after.line == last.line && (strings.HasPrefix(gap, "€") || strings.HasPrefix(gap, "$") || strings.HasPrefix(gap, "%")) {
			return true
		}
		if len(after.gap) == 1 && strings.Contains(".,:/'@_", after.gap) && (after.digits > 0 || after.gap == "@") {
			return true
		}
	}
	return false
}

// shouted reports whether the words around a word are in capital letters too.
func shouted(words []word, i int) bool {
	loud := func(w word) bool { return w.line == words[i].line && !w.lower && w.digits == 0 && len(w.text) > 1 }
	return i > 0 && loud(words[i-1]) || i+1 < len(words) && loud(words[i+1])
}

func asciiOnly(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func joined(words []word, sep string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(w.typed)
	}
	return b.String()
}
