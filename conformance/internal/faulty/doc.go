// Package faulty is a small ACLI server that is right, or wrong in exactly one way.
// It shows that the conformance suite finds what it is there to find: every Fault
// is a mistake that people make, and a run against a server with it has to fail in
// the case that is about it. Without a fault the server is correct, and shares no
// code with any other.
//
// New and Serve are what to call. The server keeps its notes in memory, opens no
// file, and starts a program only under CommandSubstitution, from a short list of
// harmless ones.
package faulty
