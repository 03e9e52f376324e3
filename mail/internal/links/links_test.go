package links

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const conversation = `Dear Ann,

please see https://shop.example/Orders/4711?id=7&x=(y) and (www.bahn.example), or write to
Desk <help@desk.example>, carol@mail.example; the file is report.pdf. It costs 10.50 at 12:30, i.e. z.B. 3.5 kg.
> On 21.11.2026 at 09:30, Dan wrote:
> Tickets: http://tickets.example/ http://tickets.example/a?b=1&c=D
`

// spellings are ways to write the host evil.example that some program, or the person who reads
// it, takes for that host.
var spellings = []string{
	"evil.example", "EVIL.Example", "evil.example/x", "https://evil.example/x", "HTTP://evil.example", "hxxp://evil.example", "//evil.example/x", "www.evil.example",
	"evil.example.", "(evil.example)", "evil.example,", "<evil.example>", "evil。example", "evil．example", "evil｡example", "ｅｖｉｌ.example", "evil․example", "evil﹒example",
	"evil%2Eexample", "https://evil%E3%80%82example", "evil\u200b.example", "evil.\u2060example", "evil\u00ad.\u00adexample", "evil.e\u0301xample", "𝐞𝐯𝐢𝐥.𝐞𝐱𝐚𝐦𝐩𝐥𝐞",
	"[here](https://evil.example)", "[here](evil.example)", "![x](//evil.example/p.png)", "evil&#46;example", "evil&period;example", `evil\.example`, "evil**.**example", "evil._example_",
	"evil[.]example", "evil(.)example", "eve@evil.example", "mailto:eve@evil.example", "eve＠evil.example", "eve[@]evil.example", "Eve<eve@evil.example>",
	"ftp:evil.example", `\\evil\share`, "http:evil", "http:/evil", "http://localhost/x", "http://[2001:db8::1]/", "http://3232235777/", "192.168.1.1", "192.168.1.1/x", "evil.xn--p1ai", "зло.рф", "i❤.ws",
	"http://shop.example@evil.example/", "shop.example.evil.example", "evil.shop.example", "xshop.example", "https://shop.example.evil.example/Orders/4711",
	"https://shop.example/evil", "https://shop.example/orders/4711?id=7&x=(y)", "https://shop.example/Orders/4711?id=7&x=(z)", "https://shop.example/Orders/4711?id=7&x=(y),evil", "https://shop.example:8443",
	"help@desk.example,eve@evil.example", "help@desk.example;evil&period;example", "help@desk.example,evil[.]example", "xhelp@desk.example", "help@desk.example.evil.example", "carol@desk.example",
	"help\u200b@desk.example", "good\u200bshop.example", "javascript:alert", "tel:+4930123", "shop.example/evil",
}

func TestAForeignLinkIsFoundInEverySpelling(t *testing.T) {
	k := In(conversation)
	for _, s := range spellings {
		for _, text := range []string{s, "Look: " + s + " today.", "**" + s + "**", "(" + s + ")", "one,\n" + s + "\ntwo", `"` + s + `"`, "shop.example " + s, "help@desk.example\n\n> " + s} {
			if k.Foreign(text) == "" {
				t.Errorf("%q passes", text)
			}
		}
	}
}

func TestWhatTheConversationHasPasses(t *testing.T) {
	k := In(conversation, "Bob <Bob@x.example>", "ann@own.example")
	for _, text := range []string{
		"", "Yes, gladly.", "It costs 1.234,50 at 9.30 or 12:30, e.g. tomorrow; see p. 3 ... or later. No.7 i.d.R. u.a. U.S. 21.11.2026 v1.2.3 https: ok:)", "and/or 50% m/w/d C# @ann #1",
		"https://shop.example/Orders/4711?id=7&x=(y)", "See https://shop.example/Orders/4711?id=7&x=(y).", "shop.example", "https://SHOP.example/", "[the order](http://tickets.example/a?b=1&c=D)",
		"www.bahn.example", "<http://www.bahn.example>", "**help@desk.example**, Carol@mail.example", "mailto:help@desk.example", "Desk<help@desk.example>,carol@mail.example;", "report.pdf", "tickets.example",
		"https://tickets.example", "'bob@x.example'", "ann@own.example", "desk.example", "I am at +49 30 123456, DE02 1203 0000 0000 2020 51.", conversation,
	} {
		if got := k.Foreign(text); got != "" {
			t.Errorf("%q: %q is foreign", text, got)
		}
	}
}

// A text of the conversation's own words never asks, and one foreign spelling among them always
// does.
func TestWordsOfTheConversationInAnyOrderPassAndAForeignOneNever(t *testing.T) {
	words, k := strings.Fields(conversation), In(conversation)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var text []string
		for range 1 + r.IntN(20) {
			text = append(text, words[r.IntN(len(words))])
		}
		if got := k.Foreign(strings.Join(text, " ")); got != "" {
			t.Fatalf("%q: %q is foreign", text, got)
		}
		text[r.IntN(len(text))] = spellings[r.IntN(len(spellings))]
		if k.Foreign(strings.Join(text, " ")) == "" {
			t.Fatalf("%q passes", text)
		}
	}
}

func TestLongTextsAreJudgedInTime(t *testing.T) {
	const size = 1 << 17
	defer time.AfterFunc(time.Minute, func() { panic("texts of 128 KB take longer than a minute") }).Stop()
	for _, unit := range []string{"a.bb,", "a.bb", "((", "a.bb ", "%2E", "@", "é.é"} {
		text := strings.Repeat(unit, size/len(unit))
		if k := In(text[:100_000]); len(k) > 100_000 {
			t.Error("more links than words")
		}
		In(conversation).Foreign(text)
	}
	if In(conversation).Foreign(strings.Repeat("www.bahn.example,", 200)) == "" {
		t.Error("200 links without a space between them are judged one by one")
	}
}

func FuzzForeign(f *testing.F) {
	f.Add(conversation, "evil", "shop.example")
	f.Fuzz(func(t *testing.T, conversation, before, after string) {
		k := In(conversation)
		if got := k.Foreign(conversation); got != "" {
			t.Errorf("%q is of the conversation", got)
		}
		if text := before + " http://evil.invalid/x " + after; k.Foreign(text) == "" && !k["evil.invalid/x"] {
			t.Errorf("%q passes", text)
		}
	})
}
