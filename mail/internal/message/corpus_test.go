package message

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const corpus = "../../testdata/real-emails"

// checkText fails when the text of a message is not fit to be shown.
func checkText(t *testing.T, raw []byte, n int) (text string, truncated bool) {
	t.Helper()
	e := Parse(raw)
	text, truncated = Text(e.Root, e.Raw, n)
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > n {
		t.Errorf("text of %d runes, at most %d: %q", utf8.RuneCountInString(text), n, text)
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("the text holds %U: %q", r, text)
		}
	}
	if Clean(text) != text {
		t.Errorf("the text is not clean: %q", text)
	}
	for _, p := range Attachments(e.Root) {
		if CleanLine(p.Filename) != p.Filename {
			t.Errorf("the name of part %s is not clean: %q", p.ID, p.Filename)
		}
	}
	return text, truncated
}

func TestRealMailIsReadable(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus, "*", "*.eml"))
	if err != nil || len(paths) != 103 {
		t.Fatalf("%d messages, %v", len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimPrefix(path, corpus), func(t *testing.T) {
			for _, n := range []int{0, 1, 50, 100_000} {
				checkText(t, raw, n)
			}
			for n := 0; n < len(raw); n += 1 + len(raw)/50 {
				checkText(t, raw[:n], 1000)
			}
		})
	}
}

// What a person sees who opens these messages, written down by reading them.
func TestRealMailSaysWhatAPersonSees(t *testing.T) {
	for _, tc := range []struct {
		path        string
		text        []string // phrases in the text, in order; none means no text at all
		attachments string   // names, or types in brackets, separated by commas
		never       string   // not in the text
	}{
		{"attachment_emails/attachment_content_disposition", []string{"This is the first part."}, "api.rb", "hello"},
		{"attachment_emails/attachment_content_location", []string{"This is the first part."}, "[image/jpeg]", ""},
		{"attachment_emails/attachment_message_rfc822", []string{"This is the first part."}, "ForwardedMessage.eml", "PDF"},
		{"attachment_emails/attachment_message_rfc822_inline_image", nil, "img.png,Testmail.eml", ""},
		{"attachment_emails/attachment_nonascii_filename", []string{"This is the first part."}, "ciële.txt", ""},
		{"attachment_emails/attachment_only_email", nil, "blah.gz", ""},
		{"attachment_emails/attachment_pdf", []string{"Just attaching another PDF, here,", "what is going wrong here."}, "broken.pdf", "JVBERi"},
		{"attachment_emails/attachment_with_base64_encoded_name", []string{"We should not include these files", "Test attachments with Base64 encoded filename."}, "This is a test.pdf", ""},
		{"attachment_emails/attachment_with_encoded_name", []string{"oddly encoded with japanese charset."}, "01 Quien Te Dij\uFFFDat. Pitbull.mp3", ""},
		{"attachment_emails/attachment_with_quoted_filename", nil, "Eelanalüüsi päring.jpg", ""},
		{"attachment_emails/attachment_with_unquoted_name", []string{"This is the first part."}, "This is a test.txt", ""},
		{"error_emails/cant_parse_from", []string{"From one solid piece of aluminum comes a MacBook Pro"}, "", "<"},
		{"error_emails/content_transfer_encoding_qp_with_space", []string{"If you're in need of a good RX site", "Lots More Info Here"}, "", "=20"},
		{"error_emails/content_transfer_encoding_text-html", []string{"You have qualified for the lowest rate in years.", "Approval Form (http://www.lenxzc.com/index2.php?refid=malx)", "chianfong cuthbert, Account Manager"}, "", "<"},
		{"error_emails/content_transfer_encoding_with_8bits", []string{"December 04, 2001", "Click here (http://www.provantage.com/scripts/go.dll/e13011_RD/e13011)", "Holiday Gift Ideas for the Computer Professional!", "11Mbps Wireless Cable/DSL Router"}, "", "<td"},
		{"error_emails/content_transfer_encoding_with_semi_colon", []string{"Dear Homeowner,", "pre-approved for a $402,000 Home Loan", "Esteban Tanner"}, "", "\n\n\n\n"},
		{"error_emails/content_transfer_encoding_x_uuencode", []string{"Attached are the comments of the Public Generating Pool.", "Lon L. Peters"}, "PGP_Cmts_on_12-14-01_Pkg.doc", ""},
		{"error_emails/header_fields_with_empty_values", []string{"Jørn Støylen -- http://www.prikkprikkprikk.no"}, "", ""},
		{"error_emails/missing_content_disposition", nil, "[image/jpg]", ""},
		{"error_emails/multiple_content_types", []string{"foo"}, "", "<"},
		{"error_emails/multiple_invalid_content_dispositions", []string{"foo"}, "", "<"},
		{"error_emails/empty_group_lists", []string{"Attention Beneficiary:", "WESTERN UNION Swift Money transfer services"}, "", "="},
		{"mime_emails/email_with_similar_boundaries", []string{"Test"}, "LOGO.png", "NextPart"},
		{"mime_emails/raw_email2", []string{"We should not include these files or vcards as attachments.", "Just started to use my xxxxxxxx account"}, "smime.p7s", ""},
		{"mime_emails/raw_email4", []string{"Some text", "This Orange Multi Media Message was sent wirefree"}, "", ""},
		{"mime_emails/raw_email7", []string{"This is the first part."}, "test.rb,test.pdf,smime.p7s", ""},
		{"mime_emails/raw_email_encoded_stack_level_too_deep", []string{"Nicolas Fouché has accepted your invitation to Gmail", "The Gmail Team"}, "", "=C3"},
		{"mime_emails/raw_email_with_binary_encoded", nil, "2013-08-13_19-08-28-1.jpg", ""},
		{"mime_emails/raw_email_with_illegal_boundary", []string{"Hello", "This is an outlook test", "So there.", "Me."}, "", "NextPart"},
		{"mime_emails/raw_email_with_mimepart_without_content_type", []string{"THIS IS A WARNING MESSAGE ONLY", "Will keep trying until message is 5 days old"}, "[message/delivery-status],Est-ce toi ?.eml", "Reporting-MTA"},
		{"mime_emails/raw_email_with_nested_attachment", []string{"Here is a test of an attachment via email.", "- Jamis"}, "truncated.png,smime.p7s", ""},
		{"mime_emails/sig_only_email", []string{"This is random text, not what has been signed below"}, "signature.asc", "BEGIN PGP"},
		{"multi_charset/japanese", []string{"かきくえこ", "Rails, RSpec and Life blog...."}, "", ""},
		{"multi_charset/japanese_attachment", []string{"testing", "http://lindsaar.net/"}, "てすと.txt", ""},
		{"multi_charset/japanese_attachment_long_name", nil, "かきくけこかきくけこかきくけこかきくけこかきくけこ.txt", ""},
		{"multi_charset/japanese_iso_2022", []string{"すみません。"}, "", ""},
		{"multi_charset/japanese_shift_jis", []string{"あいうえお", "このメールはテスト用のメールです。"}, "", ""},
		{"multi_charset/ks_c_5601-1987", []string{"스티해"}, "", ""},
		{"multipart_report_emails/report_530", []string{"The original message was received at Mon, 24 Dec 2007", "User unknown", "believed to be clean."}, "[message/delivery-status],[text/rfc822-headers]", ""},
		{"plain_emails/basic_email", []string{"Plain email.", "Hope it works well!", "Mikel"}, "", ""},
		{"plain_emails/raw_email", []string{"대부분의 마찬가지로, 우리는 하나님을 믿습니다.", "제 이름은 Jamis입니다."}, "", ""},
		{"plain_emails/raw_email5", []string{"Test test. Hi. Waving. m", "Envoyé par le service de messagerie texte de Bell Mobilité."}, "", ""},
		{"plain_emails/raw_email_quoted_with_0d0a", []string{"A fax has arrived from remote ID ''.", "Elapsed time: 00:58 on channel 11"}, "", "=0D"},
		{"rfc2822/example01", []string{"This is a message just to say hello.\nSo, \"Hello\"."}, "", ""},
	} {
		t.Run(tc.path, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(corpus, tc.path+".eml"))
			if err != nil {
				t.Fatal(err)
			}
			text, cut := checkText(t, raw, 100_000)
			if cut {
				t.Error("the text is cut")
			}
			if tc.text == nil && text != "" {
				t.Errorf("text where there is none: %q", text)
			}
			rest := text
			for _, phrase := range tc.text {
				_, after, ok := strings.Cut(rest, phrase)
				if !ok {
					t.Fatalf("%q is not, or not in its place, in %q", phrase, text)
				}
				rest = after
			}
			if tc.never != "" && strings.Contains(text, tc.never) {
				t.Errorf("%q is in %q", tc.never, text)
			}
			var names []string
			for _, p := range Attachments(Parse(raw).Root) {
				if p.Filename == "" {
					names = append(names, "["+p.MediaType()+"]")
				} else {
					names = append(names, p.Filename)
				}
			}
			if got := strings.Join(names, ","); got != tc.attachments {
				t.Errorf("attachments %q, want %q", got, tc.attachments)
			}
		})
	}
}
