package compose

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// vocabulary holds parts of strings that are hard to write into a message.
var vocabulary = []string{" ", " ", " ", "  ", "word", "a", "ü", "é", "会議", "протокол", "👨‍👩‍👧", "🇩🇪", "e\u0301", "क्\u200dष", "\u00a0", "\u3000",
	"=?", "?=", "=?utf-8?q?x?=", "=", "_", "?", ",", ";", ":", "\"", "\\", "(", ")", "<", ">", "@", "[", "]", ".", "..", "-- ", "'", "%", "*", "/",
	"From ", ">", "> ", ">> ", "Re: ", "ａ", "\ufffd", "https://example.org/a_very_long_link/that/is/longer/than/a/line/of/a/header?and=a&query=string"}

// bodyVocabulary holds the parts that only a text may have.
var bodyVocabulary = append([]string{"\n", "\n", "\r\n", "\r", "\t", "\f", "\u200b", "\u202e", "\n> ", "\n-- \n", "\nFrom ", "\n "}, vocabulary...)

func text(r *rand.Rand, from []string, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(from[r.IntN(len(from))])
	}
	return b.String()
}

// Messages with random words of vocabulary in every field are built, and both readers read
// the same words. Fuzzing would rarely make such messages.
func TestRandomMessagesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 22))
	addrs := []string{"ann@example.org", "jürgen@bücher.example", "a.b+c=d@xn--bcher-kva.example", strings.Repeat("x", 200) + "@example.org"}
	built, refused := 0, map[string]int{}
	tries := 1500
	if testing.Short() {
		tries = 300
	}
	for range tries {
		address := func() Address { return Address{Name: text(r, vocabulary, 12), Addr: addrs[r.IntN(len(addrs))]} }
		m := sample()
		m.From, m.Subject, m.Body = address(), text(r, vocabulary, 40), text(r, bodyVocabulary, 120)
		m.Date = time.Unix(r.Int64N(1<<36)-1<<31, 0).In(time.FixedZone("", r.IntN(40*3600)-20*3600))
		m.To = nil
		for range r.IntN(4) {
			m.To, m.BCC = append(m.To, address()), append(m.BCC, address())
		}
		for range r.IntN(3) {
			m.Attachments = append(m.Attachments, Attachment{Name: text(r, bodyVocabulary, 30), Content: []byte(text(r, bodyVocabulary, 50))})
		}
		b, err := Build(m)
		var f *FieldError
		if errors.As(err, &f) {
			refused[f.Field]++
			continue
		}
		built++
		checkBuilt(t, m, b)
		if t.Failed() {
			t.Fatalf("%#v", m)
		}
	}
	if built < tries*2/3 {
		t.Errorf("only %d were built; refused were %v", built, refused)
	}
}
