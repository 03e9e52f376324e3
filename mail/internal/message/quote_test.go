package message

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail/internal/quoted"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/internal/visible"
)

// textOf returns the text of a plain message.
func textOf(s string, n int) (string, bool) {
	e := Parse([]byte("Content-Type: text/plain; charset=utf-8\n\n" + s))
	return Text(e.Root, e.Raw, n)
}

func textOfHTML(s string, n int) (string, bool) {
	e := Parse([]byte("Content-Type: text/html; charset=utf-8\n\n" + s))
	return Text(e.Root, e.Raw, n)
}

// Whose words are whose, in the ways that programs write answers. Lines that
// begin with ">" in want are history.
func TestTextMarksHistory(t *testing.T) {
	const header = "From: Ann Lee <ann@example.org>\nSent: Monday, 4 May 2026 10:00\nTo: Bob <bob@example.org>\nSubject: Lunch\n\nShall we?\n"
	const marked = "> From: Ann Lee <ann@example.org>\n> Sent: Monday, 4 May 2026 10:00\n> To: Bob <bob@example.org>\n> Subject: Lunch\n>\n> Shall we?"
	for _, tc := range []struct{ name, text, want string }{
		{"nothing quoted", "Hello\n\nBob", "Hello\n\nBob"},
		{"answer above", "Yes.\n\nOn Mon, 4 May 2026 at 10:00, Ann Lee <ann@example.org> wrote:\n> Shall we?\n> Ann\n", "Yes.\n\n> On Mon, 4 May 2026 at 10:00, Ann Lee <ann@example.org> wrote:\n> Shall we?\n> Ann"},
		{"answer below", "Ann wrote:\n> Shall we?\n\nYes.", "> Ann wrote:\n> Shall we?\n\nYes."},
		{"answers between", "> One?\nYes.\n> Two?\n\nNo.\n\n> Three?\n", "> One?\nYes.\n> Two?\n\nNo.\n\n> Three?"},
		{"attribution apart from its quotation", "Yes.\n\nOn 4 May 2026, Ann wrote:\n\n> Shall we?\n\n> Ann", "Yes.\n\n> On 4 May 2026, Ann wrote:\n>\n> Shall we?\n>\n> Ann"},
		{"attribution on two lines", "Yes.\n\nOn Mon, 4 May 2026 at 10:00, Ann Lee\n<ann@example.org> wrote:\n> Shall we?", "Yes.\n\n> On Mon, 4 May 2026 at 10:00, Ann Lee\n> <ann@example.org> wrote:\n> Shall we?"},
		{"attribution cut before its time", "Yes.\nOn Mon, May 4, 2026 at\n10:00 AM Ann Lee <ann@example.org> wrote:\n> Shall we?", "Yes.\n> On Mon, May 4, 2026 at\n> 10:00 AM Ann Lee <ann@example.org> wrote:\n> Shall we?"},
		{"sentence right above an attribution", "On 4 May we meet.\nOn Mon, 4 May 2026 at 10:00, Ann wrote:\n> Shall we?", "On 4 May we meet.\n> On Mon, 4 May 2026 at 10:00, Ann wrote:\n> Shall we?"},
		{"sentence with a colon above a quotation", "Here is what is left of the 5 points:\n> one", "Here is what is left of the 5 points:\n> one"},
		{"nested", "Yes.\n> No?\n>> Yes?\n> > No?\n>>> Why", "Yes.\n> No?\n> > Yes?\n> > No?\n> > > Why"},
		{"nested attribution", "Yes.\n> On 4 May 2026, Ann wrote:\n> > Shall we?", "Yes.\n> On 4 May 2026, Ann wrote:\n> > Shall we?"},
		{"marks without a space", "Yes.\n>one\n>\n>two", "Yes.\n> one\n>\n> two"},
		{"marks behind a space", "Yes.\n > one\n > two", "Yes.\n> one\n> two"},
		{"marks of full width", "はい。\n＞ひとつ\n＞＞ふたつ", "はい。\n> ひとつ\n> > ふたつ"},
		{"mark in a sentence", "a > b\n  >c is code\n5>4", "a > b\n  >c is code\n5>4"},
		{"line that a mailbox file changed", "Dear Bob,\n>From here we see the sea.\nAnn", "Dear Bob,\nFrom here we see the sea.\nAnn"},
		{"quoted line that begins with From", "No.\n> a\n>From here\n> b", "No.\n> a\n> From here\n> b"},
		{"mark far behind a mark", "a\n>    > code", "a\n>    > code"},
		{"very deep", "a\n" + strings.Repeat(">", 5000) + " b", "a\n" + strings.Repeat("> ", 20) + "b"},

		{"Outlook", "Yes.\n\n-----Original Message-----\n" + header, "Yes.\n\n> -----Original Message-----\n" + marked},
		{"Outlook without a line", "Yes.\n\n" + header, "Yes.\n\n" + marked},
		{"Outlook with a rule", "Yes.\n\n________________________________\n" + header, "Yes.\n\n> ________________________________\n" + marked},
		{"Outlook in bold", "Yes.\n\n*From:* Ann <ann@example.org>\n*Sent:* Monday\n*To:* Bob\n*Cc:* Eve\n*Subject:* Lunch\n\nShall we?", "Yes.\n\n> *From:* Ann <ann@example.org>\n> *Sent:* Monday\n> *To:* Bob\n> *Cc:* Eve\n> *Subject:* Lunch\n>\n> Shall we?"},
		{"Outlook with many recipients", "Yes.\n\nFrom: Ann\nSent: Monday\nTo: Bob <bob@example.org>; Eve\n <eve@example.org>; Dan\n <dan@example.org>\nSubject: Lunch\n\nShall we?", "Yes.\n\n> From: Ann\n> Sent: Monday\n> To: Bob <bob@example.org>; Eve\n>  <eve@example.org>; Dan\n>  <dan@example.org>\n> Subject: Lunch\n>\n> Shall we?"},
		{"Outlook twice", "Yes.\n\n-----Original Message-----\nFrom: Ann\nSubject: a\n\nNo.\n\n-----Original Message-----\nFrom: Bob\n\nYes?", "Yes.\n\n> -----Original Message-----\n> From: Ann\n> Subject: a\n>\n> No.\n>\n> -----Original Message-----\n> From: Bob\n>\n> Yes?"},
		{"Outlook's original with marks", "Yes.\n-----Original Message-----\n> Shall we?\n\nBob", "Yes.\n> -----Original Message-----\n> Shall we?\n\nBob"},
		{"Outlook in German", "Ja.\n\nVon: Ann\nGesendet: Montag, 4. Mai 2026\nAn: Bob\nBetreff: Essen\n\nGehen wir?", "Ja.\n\n> Von: Ann\n> Gesendet: Montag, 4. Mai 2026\n> An: Bob\n> Betreff: Essen\n>\n> Gehen wir?"},
		{"Outlook in French", "Oui.\n\nDe : Ann\nEnvoyé : lundi\nÀ : Bob\nObjet : repas\n\nOn y va ?", "Oui.\n\n> De : Ann\n> Envoyé : lundi\n> À : Bob\n> Objet : repas\n>\n> On y va ?"},
		{"Outlook in Chinese", "好。\n\n发件人: 安\n发送时间: 2026年5月4日\n收件人: 鲍勃\n主题: 午饭\n\n去吗？", "好。\n\n> 发件人: 安\n> 发送时间: 2026年5月4日\n> 收件人: 鲍勃\n> 主题: 午饭\n>\n> 去吗？"},
		{"a programme that marks nothing", "Yes.\n\n On Monday, 4 May 2026, 10:00:00 BST, Ann Lee <ann@example.org> wrote:\n \n Shall we?\n Ann", "Yes.\n\n>  On Monday, 4 May 2026, 10:00:00 BST, Ann Lee <ann@example.org> wrote:\n>\n>  Shall we?\n>  Ann"},
		{"a notice of something new", "New comment\n\nOn 4 May 2026 at 10:00, Ann Lee wrote:\n\nShall we?", "New comment\n\nOn 4 May 2026 at 10:00, Ann Lee wrote:\n\nShall we?"},
		{"a journey is no header", "Your ticket\n\nFrom: Berlin\nTo: Munich\nDate: 4 May 2026\nSeat: 12\n\nHave a good trip", "Your ticket\n\nFrom: Berlin\nTo: Munich\nDate: 4 May 2026\nSeat: 12\n\nHave a good trip"},
		{"a journey below a rule", "Your ticket\n\n----------\nFrom: Berlin\nTo: Munich\nDate: 4 May 2026\n\nHave a good trip", "Your ticket\n\n----------\nFrom: Berlin\nTo: Munich\nDate: 4 May 2026\n\nHave a good trip"},
		{"a form is no header", "Somebody wrote to you\n\nFrom: Ann\nDate: today\nSubject: Lunch\n\nShall we?", "Somebody wrote to you\n\nFrom: Ann\nDate: today\nSubject: Lunch\n\nShall we?"},
		{"a notice that names an address", "New comment\n\nOn 4 May 2026 at 10:00, ann@example.org wrote:\n\nShall we?", "New comment\n\nOn 4 May 2026 at 10:00, ann@example.org wrote:\n\nShall we?"},
		{"a digest is no history", "Today's topics\n\nMessage: 1\nDate: Mon, 4 May 2026\nFrom: Ann\nTo: list\nSubject: x\n\nHello", "Today's topics\n\nMessage: 1\nDate: Mon, 4 May 2026\nFrom: Ann\nTo: list\nSubject: x\n\nHello"},

		{"forwarded by Gmail", "See below.\n\n---------- Forwarded message ---------\n" + header, "See below.\n\n---------- Forwarded message ---------\n" + strings.TrimSpace(header)},
		{"forwarded by Apple", "See below.\n\nBegin forwarded message:\n\n> From: Ann\n> Subject: Lunch\n> \n> Shall we?\n>> Perhaps.\n\nBob", "See below.\n\nBegin forwarded message:\n\nFrom: Ann\nSubject: Lunch\n\nShall we?\n> Perhaps.\n\nBob"},
		{"forwarded in German", "Siehe unten.\n\n-------- Weitergeleitete Nachricht --------\nBetreff: Essen\nVon: Ann\nAn: Bob\nDatum: heute\n\nGehen wir?", "Siehe unten.\n\n-------- Weitergeleitete Nachricht --------\nBetreff: Essen\nVon: Ann\nAn: Bob\nDatum: heute\n\nGehen wir?"},
		{"forwarded answer", "See below.\n\n---- Forwarded message ----\nFrom: Ann\n\nYes.\n> No?", "See below.\n\n---- Forwarded message ----\nFrom: Ann\n\nYes.\n> No?"},
		{"a history that holds a forwarded message", "Yes.\n\n-----Original Message-----\nFrom: Ann\n\n---- Forwarded message ----\nHello", "Yes.\n\n> -----Original Message-----\n> From: Ann\n>\n> ---- Forwarded message ----\n> Hello"},
		{"nothing but Outlook's original", "-----Original Message-----\n" + header, "-----Original Message-----\n" + strings.TrimSpace(header)},
		{"nothing but Outlook's originals", "-----Original Message-----\nFrom: Ann\n\nYes.\n\n-----Original Message-----\nFrom: Bob\n\nNo?", "-----Original Message-----\nFrom: Ann\n\nYes.\n\n-----Original Message-----\nFrom: Bob\n\nNo?"},
		{"nothing but a header", header, strings.TrimSpace(header)},
		{"nothing but a quotation", "> one\n> two", "> one\n> two"},
		{"nothing but an attributed quotation", "Ann wrote:\n> one", "> Ann wrote:\n> one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, cut := textOf(tc.text, 10_000); got != tc.want || cut {
				t.Errorf("got, %v:\n%s\nwant:\n%s", cut, got, tc.want)
			}
		})
	}
}

// What Outlook puts below a header is old in an answer and wanted when passed on.
func TestTextOfForwardsByTheirSubject(t *testing.T) {
	const body = "\n\nFYI\n\nFrom: Ann <ann@example.org>\nSent: Monday\nTo: Bob\nSubject: Lunch\n\nShall we?"
	for subject, history := range map[string]bool{"RE: Lunch": true, "Lunch": true, "FW: Lunch": false, "WG: Essen": false, "Re: Fwd: Lunch": true, "=?utf-8?q?Fwd=3A_Lunch?=": false} {
		e := Parse([]byte("Subject: " + subject + body))
		got, _ := Text(e.Root, e.Raw, 1000)
		if strings.Contains(got, "\n> From: Ann") != history || strings.Contains(got, "\nFrom: Ann") == history {
			t.Errorf("%s: history %v in %q", subject, !history, got)
		}
		other := NewPart(Part{ID: "1", Type: "text", Subtype: "plain", Forward: IsForward(rfc5322.DecodeHeader(subject))}, nil)
		if same, _ := Text(other, func(*Part) []byte { return e.Raw(e.Root) }, 1000); same != got {
			t.Errorf("%s: %q of a tree from elsewhere, %q of one made here", subject, same, got)
		}
	}
}

// What is old in one part of a message is what stands below something new in
// another.
func TestHistoryAcrossParts(t *testing.T) {
	const original = "-----Original Message-----\nFrom: Ann\n\nShall we?"
	const marked = "> -----Original Message-----\n> From: Ann\n>\n> Shall we?"
	for name, tc := range map[string]struct{ raw, want string }{
		"mixed":                    {"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nYes.\n--b\n\n" + original + "\n--b--\n", "Yes.\n\n" + marked},
		"mixed in an alternative":  {"Content-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nYes.\n--b\n\n" + original + "\n--b--\n\n--a\nContent-Type: text/html\n\nYes.\n--a--\n", "Yes.\n\n" + marked},
		"nothing new":              {"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n\n--b\n\n" + original + "\n--b--\n", original},
		"a footer in its own part": {"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nYes.\n" + original + "\n--b\n\nList\n--b--\n", "Yes.\n" + marked + "\n\nList"},
	} {
		e := Parse([]byte(tc.raw))
		if got, cut := Text(e.Root, e.Raw, 1000); got != tc.want || cut {
			t.Errorf("%s: %q, %v, want %q", name, got, cut, tc.want)
		}
	}
}

var attributions = []string{
	"On Mon, May 4, 2026 at 10:00 AM Ann Lee <ann@example.org> wrote:",
	"On 4/5/26 10:00, Ann Lee wrote:",
	"At 10:00 4.5.2026, Ann Lee writes:",
	"Ann Lee <ann@example.org> writes:",
	"Ann Lee wrote:",
	"Quoting Ann Lee <ann@example.org>:",
	"Am Mo., 4. Mai 2026 um 10:00 Uhr schrieb Ann Lee <ann@example.org>:",
	"Am 04.05.2026 um 10:00 schrieb Ann Lee:",
	"Zitat von Ann Lee <ann@example.org>:",
	"Le lun. 4 mai 2026 à 10:00, Ann Lee <ann@example.org> a écrit :",
	"Le 04/05/2026 à 10:00, Ann Lee a écrit\u00A0:",
	"El lun, 4 may 2026 a las 10:00, Ann Lee (<ann@example.org>) escribió:",
	"Il giorno lun 4 mag 2026 alle ore 10:00 Ann Lee <ann@example.org> ha scritto:",
	"Il 04/05/2026 10:00, Ann Lee ha scritto:",
	"Op ma 4 mei 2026 om 10:00 schreef Ann Lee <ann@example.org>:",
	"Em seg., 4 de mai. de 2026 às 10:00, Ann Lee <ann@example.org> escreveu:",
	"pon., 4 maj 2026 o 10:00 Ann Lee <ann@example.org> napisał(a):",
	"W dniu 4.05.2026 o 10:00, Ann Lee pisze:",
	"Den mån 4 maj 2026 kl 10:00 skrev Ann Lee <ann@example.org>:",
	"Den man. 4. maj 2026 kl. 10.00 skrev Ann Lee <ann@example.org>:",
	"ma 4. toukok. 2026 klo 10.00 Ann Lee (ann@example.org) kirjoitti:",
	"po 4. 5. 2026 v 10:00 odesílatel Ann Lee <ann@example.org> napsal:",
	"Ann Lee <ann@example.org> ezt írta (időpont: 2026. máj. 4., H, 10:00):",
	"Ann Lee <ann@example.org>, 4 May 2026 Pzt, 10:00 tarihinde şunu yazdı:",
	"пн, 4 мая 2026 г. в 10:00, Ann Lee <ann@example.org>:",
	"04.05.2026 10:00, Ann Lee пишет:",
	"Понедельник, 4 мая 2026, 10:00 +03:00 от Ann Lee <ann@example.org>:",
	"Στις Δευ 4 Μαΐ 2026 στις 10:00 π.μ., ο χρήστης Ann Lee <ann@example.org> έγραψε:",
	"2026年5月4日(月) 10:00 Ann Lee <ann@example.org>:",
	"Ann Leeさんは書きました:",
	"Ann Lee <ann@example.org> 于2026年5月4日周一 10:00写道：",
	"在 2026年5月4日，10:00，Ann Lee <ann@example.org> 写道：",
	"2026년 5월 4일 (월) 오전 10:00, Ann Lee <ann@example.org>님이 작성:",
}

func TestAttributionsInManyLanguages(t *testing.T) {
	for _, a := range attributions {
		want := "Yes.\n\n> " + a + "\n> Shall we?"
		if got, _ := textOf("Yes.\n\n"+a+"\n> Shall we?", 1000); got != want {
			t.Errorf("%s is not marked: %q", a, got)
		}
		// Wrapped at any space.
		for i, c := range a {
			if c != ' ' || i < len(a)/4 || i > len(a)-8 || !strings.Contains(a, "@") {
				continue
			}
			wrapped := a[:i] + "\n" + a[i+1:]
			if got := quoted.New(first(textOf("Yes.\n\n"+wrapped+"\n> Shall we?", 1000))); got != "Yes." {
				t.Errorf("%q leaves %q as new", wrapped, got)
			}
		}
	}
}

func first(s string, _ bool) string { return s }

func TestLinesThatAreNoAttribution(t *testing.T) {
	for _, s := range []string{
		"Here is my answer:", "Please note:", "1. Yes:", "Deadline is 4 May:", "https://example.org:", "The code that Ann wrote is fine, see the two changes that I made to it here:",
		"Hello Bob,", "See the mail of 4 May 2026.", "My address is bob@example.org:",
	} {
		if got := quoted.New(first(textOf(s+"\n> Shall we?", 1000))); got != s {
			t.Errorf("%q is taken for an attribution: %q", s, got)
		}
	}
}

func TestHTMLMarksHistory(t *testing.T) {
	const outlook = `<p><b>From:</b> Ann &lt;ann@example.org&gt;<br><b>Sent:</b> Monday<br><b>To:</b> Bob<br><b>Subject:</b> Lunch</p></div><p>Shall we?</p>`
	const marked = "> From: Ann <ann@example.org>\n> Sent: Monday\n> To: Bob\n> Subject: Lunch\n>\n> Shall we?"
	for _, tc := range []struct{ name, html, want string }{
		{"blockquote", "<p>Yes.</p><blockquote><p>Shall we?</p><p>Ann</p></blockquote>", "Yes.\n\n> Shall we?\n>\n> Ann"},
		{"nested", "Yes.<blockquote type=cite>No?<blockquote type=cite>Yes?</blockquote></blockquote>", "Yes.\n\n> No?\n>\n> > Yes?"},
		{"Gmail", `<div dir="ltr">Yes.</div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">On Mon, 4 May 2026 at 10:00, Ann &lt;<a href="mailto:ann@example.org">ann@example.org</a>&gt; wrote:<br></div><blockquote class="gmail_quote" style="margin:0 0 0 .8ex;border-left:1px #ccc solid">Shall we?</blockquote></div>`,
			"Yes.\n\n> On Mon, 4 May 2026 at 10:00, Ann <ann@example.org> wrote:\n>\n> Shall we?"},
		{"Gmail in a language that is not known", `<div>Bai.</div><div class="gmail_quote"><div class="gmail_attr">Ann-ek idatzi zuen<br></div><blockquote class="gmail_quote">Bagoaz?</blockquote></div>`, "Bai.\n> Ann-ek idatzi zuen\n>\n> Bagoaz?"},
		{"Gmail, answers between", `<div class="gmail_quote"><div class="gmail_attr">On Monday Ann wrote:</div><blockquote class="gmail_quote">One?</blockquote><div>Yes.</div><blockquote class="gmail_quote">Two?</blockquote><div>No.</div></div>`,
			"> On Monday Ann wrote:\n>\n> One?\n\nYes.\n\n> Two?\n\nNo."},
		{"Gmail, forwarded", `<div>See below.</div><div class="gmail_quote"><div class="gmail_attr">---------- Forwarded message ---------<br>From: Ann<br>Date: today<br>Subject: Lunch<br>To: Bob</div><br>Shall we?</div>`,
			"See below.\n---------- Forwarded message ---------\nFrom: Ann\nDate: today\nSubject: Lunch\nTo: Bob\n\nShall we?"},
		{"Gmail without a blockquote", `<div>Yes.</div><div class="gmail_quote">On Mon, 4 May 2026 at 10:00, Ann &lt;ann@example.org&gt; wrote:<br><div>Shall we?</div></div>`,
			"Yes.\n> On Mon, 4 May 2026 at 10:00, Ann <ann@example.org> wrote:\n> Shall we?"},
		{"Thunderbird", `<p>Yes.</p><div class="moz-cite-prefix">Le 04/05/2026, Ann a écrit :</div><blockquote type="cite" cite="mid:1@example.org"><pre class="moz-quote-pre">Shall
we?</pre></blockquote>`, "Yes.\n\n> Le 04/05/2026, Ann a écrit :\n>\n> Shall\n> we?"},
		{"Yahoo", `<div>Yes.</div><div class="yahoo_quoted"><div>On Monday, Ann wrote:</div><div>Shall we?</div></div>`, "Yes.\n> On Monday, Ann wrote:\n> Shall we?"},
		{"Yahoo, forwarded", `<div>See below.</div><div class="yahoo_quoted"><div>----- Forwarded Message -----</div><div>From: Ann</div><div>Shall we?</div></div>`, "See below.\n----- Forwarded Message -----\nFrom: Ann\nShall we?"},
		{"Apple, forwarded", `<div>See below.</div><div><div>Begin forwarded message:</div><br><blockquote type="cite"><div><b>From: </b>Ann</div><div><b>Subject: </b>Lunch</div><br><div>Shall we?<blockquote type="cite">Perhaps.</blockquote></div></blockquote></div>`,
			"See below.\nBegin forwarded message:\n\nFrom: Ann\nSubject: Lunch\n\nShall we?\n\n> Perhaps."},
		{"Outlook on the web", `<div>Yes.</div><div id="appendonsend"></div><hr><div id="divRplyFwdMsg">` + outlook, "Yes.\n> ---\n>\n" + marked},
		{"Outlook", `<p class=MsoNormal>Yes.</p><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'>` + outlook, "Yes.\n\n" + marked},
		{"Outlook in a language that is not known", `<p>Bai.</p><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0in 0in 0in"><p>Nork: Ann<br>Noiz: bihar<br>Nori: Bob<br>Gaia: bazkaria</p></div><p>Bagoaz?</p>`, "Bai.\n\n> Nork: Ann\n> Noiz: bihar\n> Nori: Bob\n> Gaia: bazkaria\n>\n> Bagoaz?"},
		{"new Outlook", `<div>Yes.</div><div id="mail-editor-reference-message-container"><div><hr><p>Nork: Ann<br>Noiz: bihar<br>Nori: Bob<br>Gaia: bazkaria</p><p>Bagoaz?</p></div></div>`, "Yes.\n> ---\n>\n> Nork: Ann\n> Noiz: bihar\n> Nori: Bob\n> Gaia: bazkaria\n>\n> Bagoaz?"},
		{"a line that is only a line", `<p>Hello.</p><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0in 0in 0in"><p>Our shop</p></div><p>Bye.</p>`, "Hello.\n\nOur shop\n\nBye."},
		{"attribution without a class", `Yes.<br>On 4 May 2026, Ann wrote:<br><blockquote>Shall we?</blockquote>`, "Yes.\n> On 4 May 2026, Ann wrote:\n>\n> Shall we?"},
		{"indented", `<p>Note</p><blockquote style="margin: 0 0 0 40px; border: none; padding: 0px;">indented<br>text</blockquote>`, "Note\n\n  indented\n  text"},
		{"quotation in a list", `<ul><li>one<blockquote>old</blockquote>new</li></ul>`, "- one\n\n> old\n\n  new"},
		{"quotation in a table that lays out", strings.Repeat("<table><tr><td>", 16) + "Yes.<blockquote>Shall we?</blockquote>" + strings.Repeat("</td></tr></table>", 16), "Yes.\n\n> Shall we?"},
		{"quotation beside text", `<table><tr><td><blockquote>old</blockquote></td><td>new</td></tr></table>`, "> old\nnew"},
		{"mark in a list", `<ul><li>&gt; 5 items</li></ul>`, "- > 5 items"},
		{"marks of plain text", `Yes.<br>&gt; Shall we?<br>&gt; Ann`, "Yes.\n> Shall we?\n> Ann"},
		{"line ends that are no line ends", "Yes.<blockquote><pre>one\u2028two&#x2029;three</pre></blockquote>", "Yes.\n\n> one\n> two\n> three"},
		{"marks of the renderer in the text", "a\uFDD0b<pre>\uFDD0c\n\uFDD1d</pre>", "ab\n\nc\nd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, cut := textOfHTML(tc.html, 10_000); got != tc.want || cut {
				t.Errorf("got, %v:\n%s\nwant:\n%s", cut, got, tc.want)
			}
			if got := visible.Text(tc.html, 10_000); got != tc.want {
				t.Errorf("visible.Text:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// Below so many elements that a parser which makes a tree ends the document.
func TestHistoryInDeepNesting(t *testing.T) {
	got, cut := textOfHTML("<p>Yes.</p><blockquote><p>Shall we?</p></blockquote>"+strings.Repeat("<div>", 600)+"x", 1000)
	if want := "Yes.\n\n> Shall we?"; got != want || !cut {
		t.Errorf("%q, cut %v, want %q", got, cut, want)
	}
	got, _ = textOfHTML("Yes."+strings.Repeat("<blockquote>a", 400), 100_000)
	if quoted.New(got) != "Yes." {
		t.Errorf("text in deep quotations is new: %q", quoted.New(got))
	}
}

func TestNewTextGoesFirst(t *testing.T) {
	history := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "> line %02d\n", i)
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, text string
		n          int
		want       string
	}{
		{"all fits", "Yes.\n" + history(2), 26, "Yes.\n> line 00\n> line 01"},
		{"answer below", history(34) + "\nYes.", 45, "> [quoted text: 34 lines left out]\n\nYes."},
		{"no room for the note", history(34) + "\nYes.", 38, "Yes."},
		{"not even for the answer", history(34) + "\nYes, of course.", 5, "Yes, "},
		{"room for some", history(34) + "\nYes.", 63, "> line 00\n> line 01\n> [quoted text: 32 lines left out]\n\nYes."},
		{"all but one", "Yes.\n" + history(10), 62, "Yes.\n> line 00\n> line 01\n> [quoted text: 8 lines left out]"},
		{"two runs", history(20) + "a\n" + history(20) + "b", 80, "> [quoted text: 20 lines left out]\na\n> [quoted text: 20 lines left out]\nb"},
		{"room for one note of two", history(20) + "a\n" + history(20) + "b", 50, "> line 00\n> [quoted text: 19 lines left out]\na\nb"},
		{"a short run is shown", "> x\na\n" + history(20) + "b", 50, "> x\na\n> [quoted text: 20 lines left out]\nb"},
		{"a long line is cut", "a\n> " + strings.Repeat("word ", 100), 120, "a\n> word word word word word word word word word word word word word word word word …\n> [quoted text: 1 line left out]"},
		{"nothing but history", history(20), 15, "> line 00\n> lin"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, cut := textOf(tc.text, tc.n)
			whole, _ := textOf(tc.text, 1_000_000)
			if got != tc.want || cut != (got != whole) {
				t.Errorf("of %d runes, %v:\n%s\nwant:\n%s", tc.n, cut, got, tc.want)
			}
		})
	}
}

// At every length what is new is there if it fits, nothing is cut that need not
// be, and the shortest text with all its notes is given as soon as it fits.
func TestEveryLength(t *testing.T) {
	old := strings.Repeat("> some words that were said before\n", 5)
	for _, tc := range []struct{ text, notes string }{
		{"a\n" + old + "b", "a\n> [quoted text: 5 lines left out]\nb"},
		{"a\n\n" + old + "\nb", "a\n\n> [quoted text: 5 lines left out]\n\nb"},
		{"a\n\n" + old + "b", "a\n\n> [quoted text: 5 lines left out]\nb"},
		{old + "\na", "> [quoted text: 5 lines left out]\n\na"},
		{"a\n\n\n" + old, "a\n\n\n> [quoted text: 5 lines left out]"},
		{old + "a\n\n" + old + "b\n" + old + "\n\nc\n> x", "> [quoted text: 5 lines left out]\na\n\n> [quoted text: 5 lines left out]\nb\n> [quoted text: 5 lines left out]\n\n\nc\n> x"},
	} {
		full, _ := textOf(tc.text, 10_000)
		fresh := quoted.New(full)
		for n := range utf8.RuneCountInString(full) {
			got, cut := textOf(tc.text, n)
			if !cut || utf8.RuneCountInString(got) > n {
				t.Errorf("%d runes of %q: %q, %v", n, full, got, cut)
			}
			if n >= len(fresh) && quoted.New(got) != fresh {
				t.Errorf("%d runes of %q: %q", n, full, got)
			}
			if n < len(fresh) && got != fresh[:n] {
				t.Errorf("%d runes of %q: %q", n, full, got)
			}
		}
		if got, _ := textOf(tc.text, len(tc.notes)); got != tc.notes {
			t.Errorf("%q, want %q", got, tc.notes)
		}
	}
}

// New text below a long history is found.
func TestNewTextBelowLongHistory(t *testing.T) {
	long := strings.Repeat("> what was said before, at some length\n", 5000)
	got, cut := textOf(long+"\nYes.", 100)
	if !strings.HasSuffix(got, "lines left out]\n\nYes.") || !cut {
		t.Errorf("%q, %v", got, cut)
	}
	got, cut = textOfHTML("<blockquote>"+strings.Repeat("<p>what was said before, at some length</p>", 3000)+"</blockquote><p>Yes.</p>", 100)
	if !strings.HasSuffix(got, "lines left out]\n\nYes.") || !cut {
		t.Errorf("%q, %v", got, cut)
	}
}

// A prefix that holds as much new text as is asked for gives what the whole gives.
func TestPrefixGivesTheSame(t *testing.T) {
	answer := strings.Repeat("This is what I think of it. ", 10)
	for _, a := range append([]string{"-----Original Message-----"}, attributions...) {
		text := answer + "\n\n" + a + "\n> Shall we?\n" + strings.Repeat("> and more of that\n", 50)
		e := Parse([]byte("Content-Type: text/plain; charset=utf-8\n\n" + text))
		want, _ := Text(e.Root, e.Raw, 200)
		for n := 250; n < len(text); n += 7 {
			got, cut := Text(e.Root, func(p *Part) []byte { return e.Raw(p)[:n] }, 200)
			if got != want || !cut {
				t.Errorf("%d octets give %q, %v, the whole %q", n, got, cut, want)
			}
		}
	}
}

func TestNewText(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"a\nb":             "a\nb",
		"> a\n\nb\n> c\nd": "b\nd",
		"a\n\n> b\n\nc":    "a\n\nc",
		"a\n\n\n> b\n\nc":  "a\n\n\nc",
		">\n> a":           "",
		"a\n> [quoted text: 3 lines left out]\n\nb": "a\n\nb",
		" >a": " >a",
	} {
		if got := quoted.New(text); got != want {
			t.Errorf("quoted.New(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSnippet(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{
		{"", 10, ""},
		{"Hello", 10, "Hello"},
		{"Hello\n\n  there\t\tAnn\u00A0Lee", 100, "Hello there Ann Lee"},
		{"> old\n\nnew\n> old", 100, "new"},
		{"> Ann wrote:\n> old\n>\n> > older", 100, "Ann wrote: old older"},
		{"one two three", 10, "one two"},
		{"one two three", 7, "one two"},
		{"one two three", 8, "one two"},
		{"one two three", 0, ""},
		{"one two three", -1, ""},
		{"Donaudampfschifffahrt", 10, "Donaudampf"},
		{"a Donaudampfschifffahrt", 10, "a Donaudam"},
		{"日本語の文章です", 4, "日本語の"},
		{"cafe\u0301s", 4, "caf"},
		{"family \U0001F468\u200D\U0001F469\u200D\U0001F467 x", 9, "family"},
		{strings.Repeat("word ", 100_000), 12, "word word"},
	} {
		if got := quoted.Snippet(tc.text, tc.n); got != tc.want {
			t.Errorf("quoted.Snippet(%.40q, %d) = %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("Yes.\n\nOn Mon, 4 May 2026 at 10:00, Ann Lee <ann@example.org> wrote:\n> Shall we?\n", 20, false)
	f.Add("a\n-----Original Message-----\nFrom: x\nSent: y\nTo: z\nSubject: w\n\nb\n>>c", 40, true)
	f.Add("> a\n\nb\n\n\n> c\n> d\ne", 9, false)
	f.Fuzz(func(t *testing.T, s string, n int, html bool) {
		n = min(max(n, 0), 2000)
		read := func(n int) (string, bool) {
			if html {
				return textOfHTML(s, n)
			}
			return textOf(s, n)
		}
		full, _ := read(1_000_000)
		got, cut := read(n)
		if utf8.RuneCountInString(got) > n || !utf8.ValidString(got) || Clean(got) != got {
			t.Fatalf("%q of at most %d runes", got, n)
		}
		if !cut && got != full {
			t.Errorf("%q is not cut, but the whole is %q", got, full)
		}
		fresh := quoted.New(full)
		switch {
		case fresh == "":
		case utf8.RuneCountInString(fresh) <= n && quoted.New(got) != fresh:
			t.Errorf("new text is lost: %q of %q, where %q is new", got, full, fresh)
		case utf8.RuneCountInString(fresh) > n && !strings.HasPrefix(fresh, got):
			t.Errorf("%q stands for %q, where %q is new", got, full, fresh)
		}
		if quoted.New(fresh) != fresh {
			t.Errorf("NewText changes %q", fresh)
		}
		one := quoted.Snippet(full, n)
		if utf8.RuneCountInString(one) > n || strings.ContainsAny(one, "\n\t") || !utf8.ValidString(one) {
			t.Errorf("Snippet = %q, at most %d", one, n)
		}
		if html {
			return
		}
		// What is marked reads the same again, but for what is taken out of a
		// forwarded message's quotation.
		if again, _ := textOf(full, 1_000_000); !strings.Contains(s, "orward") && len(quoted.New(again)) > len(fresh) {
			t.Errorf("history becomes new: %q, then %q", full, again)
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(Clean(s), "\u00A0", " "), "\n") {
			if body := strings.TrimSpace(strings.TrimLeft(line, "> ")); strings.HasPrefix(line, "> ") && body != "" && !strings.ContainsAny(body, "＞") && !strings.Contains(s, "orward") && utf8.ValidString(s) {
				if strings.Contains("\n"+fresh+"\n", "\n"+line+"\n") {
					t.Errorf("history is new: %q", line)
				}
			}
		}
	})
}

func TestCorpusNewTextFits(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus, "*", "*.eml"))
	if err != nil || len(paths) == 0 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		e := Parse(raw)
		full, _ := Text(e.Root, e.Raw, 1_000_000)
		fresh := quoted.New(full)
		n := utf8.RuneCountInString(fresh)
		if got, _ := Text(e.Root, e.Raw, n); fresh != "" && quoted.New(got) != fresh {
			t.Errorf("%s: new text is lost in %d runes", path, n)
		}
	}
}

func BenchmarkText(b *testing.B) {
	answer := strings.Repeat("This is what I think of it, at some length.\n", 20)
	history := strings.Repeat("> and this is what was said before: it was long.\n", 400)
	for name, raw := range map[string]string{
		"letter":  "Content-Type: text/plain; charset=utf-8\n\n" + answer,
		"history": "Content-Type: text/plain; charset=utf-8\n\n" + answer + "\nAnn wrote:\n" + history,
		"colons":  "Content-Type: text/plain; charset=utf-8\n\n" + strings.Repeat("On 4 May 2026 at 10:00 <a@b> said this to them:\n", 2000),
		"HTML":    "Content-Type: text/html; charset=utf-8\n\n<p>" + strings.ReplaceAll(answer, "\n", "<p>") + "<blockquote>" + strings.ReplaceAll(history, "\n", "<p>"),
	} {
		e := Parse([]byte(raw))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				Text(e.Root, e.Raw, 2000)
			}
		})
	}
}
