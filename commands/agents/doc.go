// Package agents holds the commands of the agent mailbox, one file each. They work on
// that mailbox alone and know nothing of mail.
package agents
