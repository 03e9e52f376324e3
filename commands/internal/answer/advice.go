package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

// advice is what a person or an agent is told to do about an error of mail: the one
// place where that is put into the words of the command line.
type advice struct {
	words string // {account} and {detail} stand for the error's own, {folder} for a quoted {detail}
	needs string // the command it sends the reader to; empty for one that is always there, or none
}

var advices = map[mail.Advice]advice{
	mail.AdviceListWithoutAnchor:   {"List again without it; --since and --until bound the time instead.", "mail list"},
	mail.AdviceFolders:             {"Run 'mail folders' to list the folders.", "mail folders"},
	mail.AdviceSearchAnew:          {"Begin the search again, without the cursor.", ""},
	mail.AdviceLookIntoFolder:      {"Look into the folder before you try again.", ""},
	mail.AdviceLookIntoBoth:        {"Look into both folders before you try again.", ""},
	mail.AdviceAskOperator:         {"Try again later; if it fails again, ask the operator of the server.", ""},
	mail.AdviceRestart:             {"Start it again.", ""},
	mail.AdviceMailProgram:         {"Open it in a mail program.", ""},
	mail.AdviceGet:                 {"Run 'mail get' to see the message.", "mail get"},
	mail.AdviceNamePart:            {"Name one with --part: {detail}.", ""},
	mail.AdviceContent:             {"Get its content without --as-text, or save it with --save NAME.", ""},
	mail.AdviceNoFolder:            {"Leave --folder out.", ""},
	mail.AdviceList:                {"List its folder for what is there; 'mail search' finds what was moved.", "mail search"},
	mail.AdviceListAgain:           {"List the folder again for ids that are valid now.", ""},
	mail.AdviceSendInstead:         {"Send it with 'mail send', or choose another folder.", "mail send"},
	mail.AdviceMailboxInUse:        {"Try again in a moment: POP3 serves one program at a time.", ""},
	mail.AdviceNoPassword:          {"Another password does not help: what the server wants of the account is for its operator, or its settings on the web.", ""},
	mail.AdviceCheckLogin:          {"Check the user name and password of the account; some providers want an app password.", ""},
	mail.AdviceCheckLoginPassword:  {"Check the user name and password of the account; some providers want an app password. The administrator stores another with 'account edit {account} --password-from stdin'.", ""},
	mail.AdviceCheckLoginOAuth:     {"Check that the account's user name is the one that gave consent; the administrator authorizes it again with 'account authorize {account}'.", ""},
	mail.AdviceCheckLoginHelper:    {"Check what the account's helper program prints, and the user name.", ""},
	mail.AdviceCheckLoginKeyring:   {"Check the user name; the administrator changes what the keyring holds with 'account edit {account} --password-from stdin'.", ""},
	mail.AdviceCertificate:         {"Check host and port; a server with its own authority needs the account's --ca-file.", ""},
	mail.AdviceMoreTime:            {"Try again, or allow more time with --timeout SECONDS (at most 300).", ""},
	mail.AdviceTimeoutVariable:     {"Try again later; the time that ran out is that of {detail}, which the administrator sets.", ""},
	mail.AdviceSlowServer:          {"Try again later; --timeout does not lengthen this wait.", ""},
	mail.AdviceCheckTLS:            {"Check the account's port and whether it needs tls or starttls.", ""},
	mail.AdviceLess:                {"Ask for less at once.", ""},
	mail.AdviceVerify:              {"Check that the server can be reached; 'mail verify' shows what works.", "mail verify"},
	mail.AdviceWatchAnew:           {"Watch it again without --after, and list it to see its messages.", ""},
	mail.AdviceAllowChanges:        {"The administrator allows changes with 'account edit {account} --mode draft'.", ""},
	mail.AdviceAllowCodes:          {"The administrator lets codes be given with 'account edit {account} --codes give'.", ""},
	mail.AdviceWaitForCode:         {"Wait for it with --wait 60s, or look for it with 'mail list'.", "mail list"},
	mail.AdviceAllowDestroy:        {"'mail trash' puts it into the trash; the administrator allows deleting for good with 'account edit {account} --destroy on'.", "mail trash"},
	mail.AdviceTrashInstead:        {"'mail trash' puts it into the trash.", "mail trash"},
	mail.AdviceAllowByVariable:     {"The account comes from the environment: its mailbox can be changed where Postern is started with MAIL_IMAP_WRITE_ENABLED=true.", ""},
	mail.AdviceCheckSetup:          {"Run 'doctor' to see what is wrong.", "doctor"},
	mail.AdviceEditAccount:         {"Change it with 'account edit'.", ""},
	mail.AdviceRunAgain:            {"Run it again when you want its answer.", ""},
	mail.AdviceTryAgain:            {"Try again.", ""},
	mail.AdviceTryLater:            {"Try again later.", ""},
	mail.AdviceEditOAuth:           {"The administrator changes its OAuth settings with 'account edit {account}'.", ""},
	mail.AdviceAuthorize:           {"The administrator authorizes it with 'account authorize {account}'.", ""},
	mail.AdviceProviderCertificate: {"Check the provider's address; one with its own authority needs the account's --ca-file.", ""},
	mail.AdviceCheckOAuthAddresses: {"Check the addresses in the account's OAuth settings.", ""},
	mail.AdviceNoDevice:            {"Authorize in a browser instead, without --device.", ""},
	mail.AdviceAuthorizeInSight:    {"Authorize the account where a person can see it.", ""},
	mail.AdviceGivePassword:        {"Give the account a password with 'account edit'; many providers offer app passwords.", ""},
	mail.AdviceChooseLogin:         {"Set it with 'account edit {account} --auth password'.", ""},
	mail.AdviceStorePassword:       {"The administrator stores one with 'account edit {account} --password-from stdin'.", ""},
	mail.AdviceUnlockKeyring:       {"Unlock it, then run the command again.", ""},
	mail.AdviceNoKeyring:           {"Where nobody is logged in at a desktop, use --auth password or --auth helper instead.", ""},
	mail.AdviceNotInKeyring:        {"Use --auth password instead.", ""},
	mail.AdviceSetHelper:           {"Give it one with 'account edit {account} --helper'.", ""},
	mail.AdviceHelperPath:          {"Name it by its absolute path, or put it in a directory of PATH; then change it with 'account edit {account} --helper'.", ""},
	mail.AdviceCheckHelper:         {"Run the helper by hand to see what it says, and change it with 'account edit {account} --helper'.", ""},
	mail.AdviceHelperGoesOn:        {"The helper keeps running for up to {detail} s: answer it where it asks, and run the command again.", ""},
	mail.AdviceHelperSooner:        {"Answer the helper sooner, where it asks.", ""},
	mail.AdviceHelperPassword:      {"Check what the helper prints.", ""},
	mail.AdviceHelperOnce:          {"If the password was wrong, make the helper print the right one; then restart this server: the helper runs only at the start.", ""},
	mail.AdviceHelperOnceFailed:    {"Run the helper by hand to see what it says; then restart this server: the helper runs only at the start.", ""},
	mail.AdviceOtherAccount:        {"Name another account.", ""},
	mail.AdviceUnsetVariables:      {"Set the variable and start again, or unset all variables of that account.", ""},
	mail.AdviceRejected:            {"Nothing was sent. Change what it names, or ask the operator of the server.", ""},
	mail.AdviceNothingSent:         {"Nothing was sent. Try again later.", ""},
	mail.AdviceSmallerFiles:        {"Send fewer or smaller files.", ""},
	mail.AdviceASCIIAddresses:      {"Use addresses in ASCII, or another account.", ""},
	mail.AdviceChangeMessage:       {"Change it and send it again.", ""},
	mail.AdviceCancelAndResend:     {"Cancel it and send it again.", ""},
	mail.AdviceSetSubmission:       {"Give it one with 'account edit {account} --smtp-host HOST'.", ""},
	mail.AdviceCheckSubmission:     {"Check the account's --smtp-host, --smtp-port and --smtp-security.", ""},
	mail.AdviceApproveDigest:       {"Read the message with 'outbox show {detail}' and approve it with the code given there.", ""},
	mail.AdviceShowEntry:           {"See 'outbox show {detail}'.", "outbox show"},
	mail.AdviceOtherKey:            {"Use another key for another message; 'outbox show {detail}' shows the one this key stands for.", "outbox show"},
	mail.AdviceSendAnew:            {"Send it as a new message if it is still wanted: with another idempotency key.", ""},
	mail.AdviceNameRecipients:      {"Name at least one with --to, --cc or --bcc.", ""},
	mail.AdviceForwardText:         {"Hand it on without --as-attachment.", ""},
	mail.AdviceSendWithoutReply:    {"Send it as a new message.", ""},
	mail.AdviceMakeDrafts:          {"Create a folder named Drafts in a mail program.", ""},
	mail.AdviceMakeTrash:           {"Make one in a mail program; 'mail move' puts them into another folder.", "mail move"},
	mail.AdviceOtherCriteria:       {"Look with 'mail search' first, and give the criteria that find them.", "mail search"},
	mail.AdviceManyChanges:         {"Name fewer messages, or wait ten minutes; or tell the person, who can do it; what 'mail plan' can do waits for them.", "mail plan"},
	mail.AdviceSendNow:             {"Send the message with 'mail send'.", "mail send"},
	mail.AdviceKeyForm:             {"Use something like order-1234-reminder, or a UUID.", ""},
	mail.AdviceNoKey:               {"Send without a key.", ""},
	mail.AdvicePageOn:              {"Show the next page with --before ID.", ""},
	mail.AdviceSeveralMessages:     {"Send it in several messages.", ""},
	mail.AdviceArchiveFiles:        {"Put the files into an archive, or send several messages.", ""},
	mail.AdviceAttachText:          {"Attach the text as a file.", ""},
	mail.AdviceShorten:             {"Shorten it.", ""},
	mail.AdviceOwnAddress:          {"Leave --as out; the administrator names the person's other addresses with 'account edit {account} --own-address'.", ""},
	mail.AdviceReplyFromThere:      {"Send the reply from the account that has the message.", ""},
	mail.AdviceNoBound:             {"Leave one of them out.", ""},
	mail.AdviceKeepIDs:             {"Keep the ids you have dealt with yourself, or bound the time with --since; 'mail ack' needs a vault, which a person makes with 'postern init'.", "mail ack"},
	mail.AdviceShorterText:         {"Search for a shorter piece of plain text.", ""},
	mail.AdviceDates:               {"Give a --since that is before --until.", ""},
	mail.AdviceCursor:              {"Run the command that more names as it is, or begin a new search without --cursor.", ""},
	mail.AdviceNarrow:              {"Narrow the search with --from, --subject, --last-days or --since and --until.", ""},
	mail.AdvicePOP3Read:            {"Use 'mail list', 'mail get' and 'mail thread'; 'mail ack' keeps here which messages you have dealt with.", "mail ack"},
	mail.AdvicePOP3New:             {"Use --new to list messages that were not acknowledged.", ""},
	mail.AdvicePOP3ID:              {"Name a message by its message_id, as 'mail list' shows it.", ""},
	mail.AdvicePOP3Poll:            {"Run 'mail list --new' now and then, not more often than every few minutes: each time costs a login.", ""},
	mail.AdvicePOP3Parts:           {"'mail raw' and 'mail attachment' read what is in a message.", "mail raw"},
	mail.AdviceAllowFolder:         {"Name a folder of the account itself; the administrator allows this one with 'allow folder add {folder} --account {account}'.", ""},
	mail.AdviceChangeDraft:         {"If it is still wanted, change the draft, as 'mail draft --append-to' does, and send the new one.", ""},
	mail.AdviceListDrafts:          {"List the folder for drafts; 'mail draft' answers with the id of a draft.", ""},
	mail.AdviceFileDraft:           {"Leave it where it is, or run 'mail trash'; a person sends or files it in a mail program.", "mail trash"},
	mail.AdviceNameAnswers:         {"If the person wants that, name the address with --to; 'mail send' writes to the sender.", "mail send"},
	mail.AdviceOthersDraft:         {"Leave it to the person, in their mail program; 'mail draft' writes another beside it.", "mail draft"},
	mail.AdviceOutboundOfBoth:      {"Leave it where it is; the administrator decides with 'allow out', 'allow folder' and the accounts' modes what may leave from where.", ""},
	mail.AdviceOtherFolder:         {"Name another folder with --to.", ""},
	mail.AdviceCopyAndRemove:       {"Copy the messages with 'mail copy', and remove them in a mail program.", "mail copy"},
	mail.AdviceSeveralCommands:     {"Name them in several commands.", ""},
	mail.AdviceFolderByFolder:      {"Use one command for each folder.", ""},
	mail.AdviceFlags:               {"Name flags such as seen, flagged or project-x with --add or --remove.", ""},
	mail.AdviceTrash:               {"'mail trash' puts the message into the trash where the server offers MOVE; a mail program deletes it.", "mail trash"},
	mail.AdviceDelete:              {"Use 'mail delete' with --confirm.", "mail delete"},
}

// hint puts the advice of an error into words. A clause that sends the reader to a
// command that does not exist here is left out.
func hint(e *mail.Error, exists func(path string) bool) string {
	a := advices[e.Advice]
	clauses := strings.Split(strings.TrimSuffix(a.words, "."), "; ")
	if e.Fixed && a.words != "" {
		clauses = fixed(clauses)
	}
	if a.needs != "" && !exists(a.needs) {
		clauses = slices.DeleteFunc(clauses, func(c string) bool { return strings.Contains(c, "'"+a.needs) })
	}
	if a.words == "" || len(clauses) == 0 {
		return "Run 'help' for the available commands."
	}
	words := strings.NewReplacer("{account}", e.Account, "{detail}", e.Detail, "{folder}", discovery.Quote(e.Detail)).Replace(strings.Join(clauses, "; ")) + "."
	if near := nearNames(e.Missing, e.Known); near != "" {
		words = near + " " + words
	}
	if e.Retryable && CodeOf(e.Kind) == discovery.ConnectionFailed {
		words = fmt.Sprintf("It is worth trying again in %d s. %s", int64((max(e.Wait, time.Second)+time.Second-1)/time.Second), words)
	}
	return words
}

// fixed are the clauses for an account of the environment, which no command changes.
func fixed(clauses []string) (left []string) {
	for _, c := range clauses {
		switch {
		case strings.Contains(c, "--ca-file"):
			c = "for a server with its own authority, start Postern with SSL_CERT_FILE naming a file of all certificates to trust"
		case strings.Contains(c, "account edit"), strings.Contains(c, "'account authorize"), strings.Contains(c, "'allow "):
			c = "the account comes from the environment, which sets nothing more; the administrator adds one that can be changed with 'account add'"
		}
		left = append(left, c)
	}
	left[0] = Capital(left[0])
	return left
}

// LoginHint is what to do about a login of an account that failed; empty for another issue.
func LoginHint(i mail.Issue, account string) string {
	if i.Kind != mail.KindAuth {
		return ""
	}
	return Faults(&mail.Error{Kind: i.Kind, Account: account, Advice: i.Advice}).Hint
}

// nearNames asks whether one of the names that exist was meant: one that is spelt nearly like
// the missing one, or that ends or begins with it where names have levels.
func nearNames(missing string, known []string) string {
	levels := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '/' || r == '.' || r == '\\' })
	}
	wanted := levels(missing)
	if len(wanted) == 0 {
		return ""
	}
	var near, lasts []string
	of := map[string]string{}
	for _, name := range known {
		if l := levels(name); len(l) > 0 && (slices.Equal(l, wanted) || l[len(l)-1] == wanted[len(wanted)-1]) {
			near = append(near, name)
		} else if len(l) > 1 {
			lasts = append(lasts, l[len(l)-1])
			of[l[len(l)-1]] = name
		}
	}
	if len(near) == 0 {
		near = discovery.Nearest(missing, known, 3)
	}
	if len(near) == 0 {
		for _, last := range discovery.Nearest(wanted[len(wanted)-1], lasts, 3) {
			near = append(near, of[last])
		}
	}
	if len(near) == 0 {
		return ""
	}
	slices.SortStableFunc(near, func(a, b string) int { return len(a) - len(b) })
	quoted := make([]string, min(3, len(near)))
	for i := range quoted {
		quoted[i] = discovery.Quote(plain.Excerpt(near[i], 256))
	}
	return "Did you mean " + strings.Join(quoted, " or ") + "?"
}
