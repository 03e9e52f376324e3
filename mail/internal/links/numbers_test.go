package links_test

import (
	"testing"

	"github.com/postern-mail/postern/mail/internal/links"
)

func TestForeignNumber(t *testing.T) {
	const conversation = "Call 030 123 456 78 or +49 (89) 1234-5678. The invoice is 2026-004711-9, account DE89 3704 0044 0532 0130 00. Ask @ann or bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4."
	for text, foreign := range map[string]bool{
		"Call me at 0160 9876543.":                        true,
		"The new account is DE02 1203 0000 0000 2020 51.": true,
		"GB29NWBK60161331926819":                          true,
		"１２３４５６７８":                                        true,
		"٠١٢٣٤٥٦٧":                                        true,
		"0160\u200b98\u00ad76543":                         true,
		"0160.98.76.543":                                  true,
		"0160–987–6543":                                   true,
		"0160‑987‑6543, or 0160·987·6543":                 true,
		"[0160] [987] [6543]":                             true,
		"0160 | 987 | 6543":                               true,
		"①⑥⓪⑨⑧⑦⑥⑤":                                        true,
		"1️⃣6️⃣0️⃣9️⃣8️⃣7️⃣6️⃣5️⃣":                        true,
		"12:34 56:78 90:12":                               true,
		"01.23.45.67.89":                                  true,
		"06-12-34-56-78":                                  true,
		"06/12/34/56/78":                                  true,
		"12:34:56:78:90":                                  true,
		"1234-56-78":                                      true,
		"0160 98\n76543 22":                               true,
		"16*09*87*65":                                     true,
		"12345678 on 23.11.2026":                          true,
		"030 12345679":                                    true,
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq":      true,
		"0xdeAdbEEf00000000000000000000000000000bad":      true,
		"1a2b3c4d-e5f6-a7b8-c9d0-e1f2a3b4c5d6":            true,
		"DdzFFzCqrhsxkPdwuCiEQnVkNLtHsbFe":                true,
		"Telegram @evil_support.":                         true,
		"Telegram ＠evil\u200b_support":                    true,
		"Cash App $evilcash":                              true,
		"Signal: evil.42":                                 true,
		"Ask @ann. It is bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4": false,
		"The MeetingNotes2026 and Q3-2025-report-final for $100":     false,
		"Internationalization, and 2.5 hours at 14.30":               false,
		"See you on 2026-11-23 14:00, or 23.11.2026 at 14:30.":       false,
		"11/23/26 14:00-15:30, 24/11/2026":                           false,
		"2026-11-23T14:00 to 2026-11-24T15:00":                       false,
		"I call 030/12345678.":                                       false,
		"(+49) 89 12345678 it is":                                    false,
		"We pay to DE89370400440532013000.":                          false,
		"It is 1,250.00 euros for 12 people.":                        false,
		"No number at all":                                           false,
		"1234567":                                                    false,
	} {
		if got := links.ForeignNumber(text, conversation); got != foreign {
			t.Errorf("%q: %v", text, got)
		}
	}
}
