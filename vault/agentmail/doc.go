// Package agentmail is the mailbox in which agents leave messages for each other
// (003). It keeps it in a Store, which many processes share: any store of records that
// lends transactions will do.
//
// It lies in four buckets. Agents appear in keys as digests, since keys are not sealed.
// seq numbers the messages as they come: a clock that goes back must not put a message
// where somebody has looked already.
//
//	agents.messages  created seq            the message, never changed
//	agents.index     i id                   its created and seq
//	                 r id created seq       a message that answers the one with the id
//	                 m seq agent            what the agent did with the message: a mark
//	agents.boxes     agent d seq            a message that came to the agent: an arrival
//	                 agent u seq            the same, while it is unread
//	                 agent h seq            the claim that last held it, while it is unread: a hold
//	                 everyone d seq         a broadcast
//	agents.agents    agent                  an agentRecord
//
// An agent reads a broadcast like a direct message: the first look at it puts it among
// its unread ones, with an empty mark. Up to agentRecord.Synced it has looked at all.
// So what a read costs is what it returns and what is unread there, whatever others have.
package agentmail
