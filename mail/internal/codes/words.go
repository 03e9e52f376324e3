package codes

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// class is what a word speaks of. A word may have several.
type class uint16

const (
	name   class = 1 << iota // a code: "code", "PIN"
	secret                   // a password, which is a code if it is for one time
	strong                   // being verified, security, one time
	login                    // signing in
	access                   // access in a wider sense: confirming, minutes, sharing
	act                      // what is asked for: reset, confirm
	object                   // what that is done to: password, address, account
	click                    // how one signs in by a link: click, button
	opens                    // in a link: it carries what lets its holder in
	leaves                   // in a link: it unsubscribes, orders, invites
	trade                    // what has codes and numbers that let nobody in
	number                   // a number of something
	unit                     // what is counted
	enter                    // what is done with a code
	renew                    // what is done with a password
)

// lexicon holds the words of each class, folded, in English, German, French,
// Spanish, Portuguese, Italian, Dutch and Polish, with a few Russian ones. A star stands
// for any letters.
var lexicon = compile(map[class]string{
	name:          "code codes *code *codes codigo codigos codice codici kod kodem kodu pin pins pincode token passcode passcodes clave senha nip geheimzahl код кода коды digits ziffern chiffres cifras digitos cijfers cifre cyfry",
	name | strong: "otp otps totp tan tans mtan smstan",
	secret:        "password passwords *passwort *kennwort passe contrasena wachtwoord haslo parola парол* *schlussel chave",
	strong: "verif* auth* autent* security sicherheit* securite seguridad seguranca sicurezza beveilig* bezpieczen* onetime einmal* eenmalig* unique unico unica solouso jednoraz* " +
		"identity identitat identite identidad identidade identita 2fa mfa twofactor twostep zweifaktor* freischalt* temporary temporari* provisoire temporal вход* подтвержд* безопасн* initial* activat* activac* aktivierung* recover* recuper* wiederherst* freigabe*",
	login: "signin signingin signon login* loggingin logon logga* einlogg* anmeld* connexion connecter iniciar sesion sessao entrar accedi accedere zalog* logowani* inloggen",
	access: "access acceso acces accesso acesso zugang* zugriff* toegang* dostep confirm* bestatig* bevestig* potwierdz* conferm* activ* aktiv* ativ* attiv* " +
		"minute* minuten minuto* minuti minut share shared weitergeben partag* comparti* condivid* delen udostep* reset* device gerat appareil dispositivo expire* gultig valable valido valid registr* inscri*",
	act: "reset* confirm* verif* activat* bestatig* zurucksetz* reinitialis* restablec* redefin* recover* recuper* reimpost* aktivier* activer activez activar ativar " +
		"conferma* bevestig* potwierdz* unlock entsperr* choose forgot forgotten vergessen oublie olvid* esquec* dimentic* vergeten zapomn* validez valider validate validar valida validieren",
	object: "password passwort kennwort passe contrasena senha wachtwoord haslo email mail *mailadresse adresse address account *konto* compte cuenta conta identity identitat registration registrierung inscription registro subscription abonnement correo courriel endereco indirizzo",
	click:  "link lien enlace ligacao click clicking cliquez cliquer clic klick* clique clica button schaltflache bouton boton botao pulsante knop tap tippe tippen folge folgen suivez suivant appuyez pulsa pulsando siga toque premi volg",
	opens:  "reset* confirm* verif* activat* bestat* login* signin* signon logon magic* token otp auth oauth* authenticate authorize approv* sso passw* passwd recover* unlock validat* einlogg* anmeld* connexion connecter activer activar reinitialis* restablecer redefinir recuperar entrar conferm* bevestig* potwierdz* aktivier* ativar attiva* inloggen zaloguj wachtwoord motdepasse contrasena senha haslo kennwort lostpass* forgot* mdp vergessen oubli* olvid*",
	leaves: "unsubscribe unsub optout preferences order orders booking bookings calendar poll polls survey rsvp event events newsletter abmeld* desabonn* desinscri* baja cancelar invoice",
	trade: "discount rabatt* gutschein* aktions* coupon* voucher* promo* gift off checkout sale save remise reduction descuento desconto cupon* cupom sconto korting* rabat* cadeau regalo postal post zip plz zipcode postcode* " +
		"booking buchung* reservation* reserva reservierung* prenotazione boeking rezerwac* flight vol flug* vuelo voo itinerary pnr record tracking sendung* suivi seguimiento rastre* parcel paket colis error fehler* erreur exit* status http " +
		"source quell* bug review commit commits qr bar barcode ean sku product produkt* artikel* item dress conduct building meeting conference konferenz* dial dialin einwahl* webinar call reunion tax fiscal* fiscale nif iban bic swift sort branch " +
		"referral empfehlung* parrainage order bestell* commande ordine invoice rechnung* facture factura fatura ticket case",
	number: "customer kunden* client cliente number *nummer nr no numero num ref reference referenz id tel phone telefon* telephone telefono telefone fax ending endet endend card karte carte tarjeta cartao terminant terminada final since copyright version line lines referentie pedido",
	unit:   "eur euro euros usd gbp chf points punkte km kg mb gb days tage jours dias hours stunden heures horas users people bytes words lines ms mm",
	enter: "enter type paste copy write submit use gib geben eingeben eintragen tippe tippen trag verwende* nutze* benutze* " +
		"saisi* entrez tapez recopi* compos* utilisez indiquez introdu* ingres* escrib* teclea usa utiliza insira digit* escreva informe utilize inserisci digita voer vul gebruik wpisz podaj wprowadz*",
	renew: "new neu neues nouveau nueva nova nuova nieuw nowe set choose change create festlegen vergeben choisir elegir criar trocar",
})

// wordList holds words whole, or as how words begin or end.
type wordList struct{ whole, begin, end map[string]class }

func compile(lists map[class]string) wordList {
	l := wordList{map[string]class{}, map[string]class{}, map[string]class{}}
	for c, words := range lists {
		for _, w := range strings.Fields(words) {
			bare := strings.Trim(w, "*")
			to := l.whole
			switch {
			case strings.HasPrefix(w, "*"):
				to = l.end
			case strings.HasSuffix(w, "*"):
				to = l.begin
			}
			to[bare] |= c
		}
	}
	return l
}

// maxWord is how long a word of a lexicon may be.
const maxWord = 40

// of returns the classes of a folded word.
func (l wordList) of(w string) class {
	if len(w) > maxWord {
		return 0
	}
	c := l.whole[w]
	for i := 3; i <= len(w); i++ {
		c |= l.begin[w[:i]] | l.end[w[len(w)-i:]]
	}
	return c
}

// word is a run of letters and digits of a text.
type word struct {
	text   string // folded
	typed  string // folded in all but case
	gap    string // what stands between the word before and this one
	line   int    // of those that hold words
	phrase int    // counts sentences
	class  class
	digits int // how many characters are digits
	lower  bool
}

// split returns the words of a text, without those of its links.
func split(s string, links []span) []word {
	var words []word
	line, end, fresh := 0, 0, true
	for i := 0; i < len(s); {
		if len(links) > 0 && i >= links[0].start {
			i, links = max(i, links[0].head), links[1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\n' {
			fresh = true
		}
		if !isAlnum(r) {
			i += n
			continue
		}
		start, ascii := i, true
		w := word{gap: s[end:i]}
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if !isAlnum(r) && (i == start || !unicode.Is(unicode.M, r)) {
				break
			}
			ascii = ascii && r < utf8.RuneSelf
			w.lower = w.lower || unicode.IsLower(r)
			i += n
		}
		w.typed = s[start:i]
		if !ascii {
			w.typed = folded(w.typed)
		}
		for _, c := range []byte(w.typed) {
			if '0' <= c && c <= '9' {
				w.digits++
			}
		}
		if fresh && len(words) > 0 {
			line++
		}
		fresh, end = false, i
		w.line = line
		w.text = strings.ToLower(w.typed)
		if n := len(words); n > 0 {
			w.phrase = words[n-1].phrase
			if strings.ContainsAny(w.gap, ".!?") && strings.Trim(w.gap, ".") != "" {
				w.phrase++
			}
		}
		words = append(words, w)
	}
	for i := range words {
		words[i].class = lexicon.of(words[i].text)
		if i > 0 && words[i].line == words[i-1].line && len(words[i].gap) == 1 {
			pair := words[i-1].text + words[i].text // "sign in", "one-time"
			c := lexicon.whole[pair] | lexicon.begin[pair]
			words[i-1].class |= c & (strong | login)
			words[i].class |= c &^ (trade | number)
		}
	}
	return words
}

func isAlnum(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// folded returns a string with each of its characters folded.
func folded(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(fold(r))
	}
	return b.String()
}

// fold returns a character without accents and width, and a digit of any script
// as an ASCII digit.
func fold(r rune) string {
	if r < utf8.RuneSelf {
		return string(r)
	}
	if d := unicode.Digit; unicode.Is(d, r) {
		for _, t := range d.R16 {
			if rune(t.Lo) <= r && r <= rune(t.Hi) {
				return string('0' + (r-rune(t.Lo))%10)
			}
		}
		for _, t := range d.R32 {
			if rune(t.Lo) <= r && r <= rune(t.Hi) {
				return string('0' + (r-rune(t.Lo))%10)
			}
		}
	}
	switch r {
	case 'ß':
		return "ss"
	case 'ł', 'Ł':
		return "l"
	}
	var b strings.Builder
	for _, c := range norm.NFKD.String(string(r)) {
		if !unicode.Is(unicode.M, c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// namesOf returns, for each word, the nearest word at or before it that names a code,
// -1 for none. A name is sure if a word of security or signing in stands beside it ("login
// PIN", "verification number"). Where a word of trade stands beside another name
// ("booking code"), only sure names count in the whole message.
func namesOf(words []word) []int {
	var sure, others []int
	traded := false
	for i, w := range words {
		switch beside := around(words, i, 3, 3); {
		case w.class&name != 0 && beside&(strong|login) != 0, w.class&secret != 0 && beside&(strong|access) != 0,
			w.class&number != 0 && around(words, i, 1, 0)&strong != 0:
			sure = append(sure, i)
		case w.class&name != 0:
			others = append(others, i)
			traded = traded || around(words, i, 8, 4)&trade != 0
			for _, before := range words[max(0, i-6):i] {
				traded = traded || before.class&trade != 0
			}
		}
	}
	if !traded {
		sure = append(sure, others...)
		slices.Sort(sure)
	}
	names := make([]int, len(words))
	last := -1
	for i := range words {
		if len(sure) > 0 && sure[0] == i {
			last, sure = i, sure[1:]
		}
		names[i] = last
	}
	return names
}

// around returns the classes of a word, and of so many words before and behind it that stand
// on its line.
func around(words []word, i, before, behind int) class {
	var c class
	for j := max(0, i-before); j <= min(len(words)-1, i+behind); j++ {
		if words[j].line == words[i].line {
			c |= words[j].class
		}
	}
	return c
}

// asks reports whether a text asks to reset, confirm or verify something, to choose a
// password, or to sign in by a link, for which a short text needs no more than both words.
func asks(words []word) bool {
	var spoken class
	for i, w := range words {
		if c := around(words, i, 5, 5); c&trade == 0 && (w.class&act != 0 && c&object != 0 || w.class&login != 0 && c&click != 0 || w.class&secret != 0 && c&renew != 0) {
			return true
		}
		spoken |= w.class
	}
	return len(words) <= short && spoken&login != 0 && spoken&click != 0 && spoken&trade == 0
}
