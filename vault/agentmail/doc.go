// Package agentmail is the mailbox in which agents leave messages for each other
// (003). It is kept in a Store, which many processes share: any store of records with
// transactions will do.
//
// The mailbox has four buckets. Agents appear in keys as digests, since keys are not
// sealed. seq numbers the messages in order of arrival: when the clock goes back, a new
// message must not get a place that an agent has already passed.
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
//	                 principal              the same, with what the principal has in the mailbox
//
// An agent reads a broadcast like a direct message: the first look at it puts it among the
// agent's unread messages, with an empty mark. agentRecord.Synced is its last one.
// So the cost of a read depends only on its result and the agent's unread messages.
package agentmail
