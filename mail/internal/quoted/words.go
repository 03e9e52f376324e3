package quoted

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// field is a kind of field in the header of a quoted message.
type field int

const (
	noField field = iota
	ofSender
	ofDate
	ofRecipient
	ofSubject
	ofOther
	classes
)

// fieldNames are the names that mail programs give the fields of a message they
// quote, by language: lower case, as fieldName returns them.
var fieldNames = wordTable(map[field]string{
	ofSender: "from|von|de|da|van|från|fra|lähettäjä|od|nadawca|odesílatel|odosielateľ|от|от кого|від|feladó|kimden|gönderen|από|" +
		"差出人|送信者|发件人|發件人|寄件者|寄件人|보낸 사람|보낸사람|发送人|من|מאת|expéditeur|remitente|mittente|remetente|afzender|absender|saatja|nuo|de la|dari|từ|จาก",
	ofDate: "sent|date|gesendet|datum|envoyé|envoyé le|date d'envoi|enviado|enviado el|enviado em|enviada|enviada em|enviada el|fecha|inviato|data|verzonden|verzonden op|" +
		"skickat|sendt|dato|lähetetty|päivämäärä|päiväys|pvm|wysłano|data wysłania|wysłane|odesláno|odoslané|dátum|elküldve|küldve|gönderildi|gönderme tarihi|tarih|" +
		"отправлено|дата|дата отправки|надіслано|στάλθηκε|ημερομηνία|送信日時|日時|日付|发送时间|發送時間|傳送時間|傳送日期|寄件日期|日期|时间|보낸 날짜|날짜|보낸날짜|תאריך|נשלח|تاريخ|أرسلت|trimis|saadetud|išsiųsta|dikirim|ngày|วันที่",
	ofRecipient: "to|an|à|pour|destinataire|para|a|aan|till|til|vastaanottaja|do|komu|pro|címzett|kime|kimə|alıcı|кому|προς|宛先|收件人|收件者|받는 사람|받는사람|" +
		"אל|إلى|către|destinatario|destinatário|kam|kepada|đến|ถึง",
	ofSubject: "subject|betreff|objet|asunto|oggetto|assunto|onderwerp|ämne|emne|aihe|temat|předmět|predmet|tárgy|konu|тема|θέμα|件名|主题|主題|主旨|제목|נושא|الموضوع|subiect|teema|tema|subjek|chủ đề|เรื่อง",
	ofOther: "cc|bcc|kopie|copie|copie à|kopia|kopi|kopio|dw|udw|копия|копія|抄送|副本|참조|κοιν|másolatot kap|bilgi|" +
		"reply-to|antwort an|répondre à|responder a|rispondi a|attachments|anlagen|anhänge|pièces jointes|archivos adjuntos|allegati|anexos|bijlagen|bifogade filer|" +
		"importance|wichtigkeit|priority|priorität|organization|organisation|resent-from|sent by",
})

func wordTable(words map[field]string) map[string]field {
	table := map[string]field{}
	for f, list := range words {
		for word := range strings.SplitSeq(list, "|") {
			table[word] = f
		}
	}
	return table
}

// originalWords are the line above the answered message.
var originalWords = strings.Split("original message|original mail|original email|original e-mail|original appointment|original|ursprüngliche nachricht|ursprüngliche mail|ursprüngliche e-mail|"+
	"originalnachricht|original-nachricht|original nachricht|ursprünglicher termin|message d'origine|message original|message initial|message d’origine|rendez-vous d'origine|"+
	"mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht|origineel bericht|originalmeddelande|ursprungligt meddelande|ursprungligt mail|"+
	"oprindelig meddelelse|original meddelelse|oprindelig besked|opprinnelig melding|alkuperäinen viesti|oryginalna wiadomość|wiadomość oryginalna|wiadomość pierwotna|"+
	"původní zpráva|pôvodná správa|izvirno sporočilo|izvorna poruka|eredeti üzenet|mesaj original|mesajul original|orijinal mesaj|orjinal mesaj|özgün ileti|"+
	"исходное сообщение|оригинальное сообщение|первоначальное сообщение|вихідне повідомлення|оригінальне повідомлення|αρχικό μήνυμα|"+
	"元のメッセージ|オリジナルメッセージ|原始邮件|邮件原件|原始郵件|原始訊息|원본 메시지|원본 메일|הודעה מקורית|الرسالة الأصلية|reply message|replied message|回复的原邮件", "|")

// forwardWords are the line above a forwarded message.
var forwardWords = strings.Split("forwarded message|begin forwarded message|forwarded mail|forwarded email|forward message|original message forwarded|start of forwarded message|fwd|"+
	"weitergeleitete nachricht|anfang der weitergeleiteten nachricht|anfang der weitergeleiteten e-mail|weitergeleitete mail|weitergeleitete e-mail|"+
	"message transféré|message transmis|message réexpédié|début du message transféré|début du message réexpédié|début de message transféré|"+
	"mensaje reenviado|inicio del mensaje reenviado|inicio del mensaje|messaggio inoltrato|inizio messaggio inoltrato|inizio del messaggio inoltrato|"+
	"mensagem encaminhada|mensagem reencaminhada|início da mensagem encaminhada|início da mensagem reencaminhada|"+
	"doorgestuurd bericht|begin doorgestuurd bericht|begin van doorgestuurd bericht|vidarebefordrat meddelande|vidarebefordrat mail|vidarebefordrat brev|"+
	"påbörjat vidarebefordrat meddelande|videresendt meddelelse|videresendt besked|videresendt mail|start på videresendt besked|start på videresendt meddelelse|begynd videresendt besked|"+
	"videresendt melding|videresendt e-post|start på videresendt melding|välitetty viesti|edelleenlähetetty viesti|alkaa edelleenlähetetty viesti|välitetyn viestin alku|"+
	"przekazana wiadomość|wiadomość przekazana|treść przekazanej wiadomości|początek przekazywanej wiadomości|początek wiadomości przekazanej dalej|"+
	"přeposlaná zpráva|začátek přeposlané zprávy|preposlaná správa|začiatok preposlanej správy|továbbított üzenet|továbbított levél|továbbított üzenet kezdete|"+
	"mesaj redirecționat|mesaj redirectionat|iletilmiş mesaj|iletilen ileti|iletilen mesaj|yönlendirilmiş ileti|yönlendirilen mesaj|"+
	"пересылаемое сообщение|пересланное сообщение|перенаправленное сообщение|начало переадресованного сообщения|начало пересылаемого сообщения|переслане повідомлення|початок пересланого повідомлення|"+
	"προωθημένο μήνυμα|αρχή προωθημένου μηνύματος|転送メッセージ|転送されたメッセージ|転送メール|以下は転送されたメールです|転送された電子メール|"+
	"转发邮件信息|转发的邮件|转发邮件|转发的消息|转发信息|已转发的邮件|下面是被转发的邮件|开始转发的邮件|轉寄郵件|轉寄的郵件|已轉寄的郵件|以下是轉寄的郵件|開始轉寄郵件|"+
	"전달된 메시지|전달된 메일|전달된 이메일|הודעה שהועברה|רسالة معاد توجيهها|رسالة معاد توجيهها", "|")

// verbs of writing, as in attributions, in lower case.
var verbs = strings.Split("wrote|writes|has written|schrieb|schreibt|hat geschrieben|a écrit|écrit|a ecrit|escribió|escribio|escribe|ha escrit|va escriure|ha scritto|scrisse|scrive|"+
	"schreef|schreef op|heeft geschreven|het volgende geschreven|escreveu|escreve|napisał|napisał(a)|napisała|napisal|pisze|skrev|skriver|kirjoitti|napsal|napísal|napsala|napsal(a)|"+
	"написал|написала|написал(а)|пишет|писал|писал(а)|пише|написав|написа|ezt írta|írta|yazdı|şunu yazdı|έγραψε|a scris|napisao|je napisao|je napisal|kirjutas|rašė|rakstīja|skrifaði|"+
	"menulis|đã viết|viết|เขียนว่า|写道|寫道|书きました|書きました|さんは書きました|のメール|のメッセージ|작성|님이 작성|님이 쓴 글|كتب|כתב|כתבה|"+quotingWords, "|")

// quotingWords begin an attribution, before the name.
const quotingWords = "quoting|zitat von|zitiere|citando|citazione|cytowanie|citat von|citat från"

var quoting = regexp.MustCompile(`^(?:` + quotingWords + `)(?: |$)`)

// openers begin attributions, in lower case.
var openers = strings.Split("on |am |le |el |il |op |em |a |w dniu |dnia |den |på |d. |at |as of |в |от |у |dne |dňa |v |la |data |in data |pe |în |στις |στην |kl. |ב|ในวันที่|vào |pada |tarihinde |在|于|於|el dia |el día ", "|")

// weekday matches the name of a day at the beginning of an attribution, shortened or
// not, in lower case, with more text behind it.
var weekday = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + "mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim|mié|jue|vie|sáb|dom|gio|seg|ter|qua|qui|sex|" +
		"pn|wt|śr|czw|pt|sob|niedz|pon|ma|ti|ke|to|pe|la|su|mån|tis|ons|tor|fre|lör|sön|man|lør|søn|po|út|st|čt|pá|ne|пн|вт|ср|чт|пт|сб|вс|нд|пон|чет|пят|суб|вос|pzt|sal|çar|per|cum|cmt|paz" + `)\pL*(?:[,.]| +[0-9])`)
})

// verbOfWriting returns where a verb of writing ends in a text in lower case,
// or -1. It is a word of its own in scripts that separate words.
func verbOfWriting(low string) int {
	last := -1
	for _, v := range verbs {
		for at := 0; ; {
			i := strings.Index(low[at:], v)
			if i < 0 {
				break
			}
			start, end := at+i, at+i+len(v)
			before, _ := utf8.DecodeLastRuneInString(low[:start])
			after, _ := utf8.DecodeRuneInString(low[end:])
			if !spacedLetter(v) || !(start > 0 && unicode.IsLetter(before)) && !(end < len(low) && unicode.IsLetter(after)) {
				last = max(last, end)
			}
			at = end
		}
	}
	return last
}

// spacedLetter reports whether a word is in a script that separates words.
func spacedLetter(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// opensAttribution reports whether a text begins as attributions do.
func opensAttribution(s string) bool {
	low := strings.ToLower(s[:min(len(s), 64)])
	return slices.ContainsFunc(openers, func(o string) bool { return strings.HasPrefix(low, o) })
}
