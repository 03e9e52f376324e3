package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/postern-mail/postern/mail/servertest"
)

// smallPDF is a document of one page that says text.
func smallPDF(text string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	show := "BT /F1 12 Tf 72 720 Td (" + text + ") Tj ET"
	var at []int
	for i, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(show), show),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
	} {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}

// TestPDFIsReadByAnotherProcess goes all the way: a message on a server, the
// program's own hidden verb, the text in the answer.
func TestPDFIsReadByAnotherProcess(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	s.Deliver(t, user, "INBOX", []byte("From: a@example.org\r\nSubject: invoice\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"+
		"--b\r\nContent-Type: text/plain\r\n\r\nsee the file\r\n"+
		"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=i.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"+
		base64.StdEncoding.EncodeToString(smallPDF("Amount due: 42 euros"))+"\r\n--b--\r\n"))
	v := newVault(t)
	v.add(t, dovecotAccount(s, user), servertest.Password)
	out, err := program(t, v.environment(false), "mail", "get", "--folder", "INBOX", "--uid", "1", "--attachment-text", "--full", "--fields", "message.attachments").Output()
	if err != nil || !bytes.Contains(out, []byte(`"extracted_text":"Amount due: 42 euros"`)) {
		t.Errorf("%v\n%s", err, out)
	}
}
