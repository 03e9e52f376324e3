package servertest

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
)

// OAuthFault is a fault of one request to an authorization server. With Hold alone the
// request is carried out and answered normally. The first other field that is set decides.
type OAuthFault struct {
	// Hold is called when the request has arrived and before it is carried out.
	// The context ends when the client hangs up or the server stops.
	Hold func(ctx context.Context)
	// Lose carries the request out and closes the connection without an answer.
	Lose bool
	// Error is answered as the error code, the request not carried out.
	Error string
	// Redirect is the address to which status 307 sends the client.
	Redirect string
	// Endless answers with a body of JSON that has no end.
	Endless bool
	// Status and Body are answered unchanged, 200 if only Body is set.
	Status int
	Body   []byte
}

// FailNext orders faults for the next requests to an endpoint, one for each, in
// the order of arrival. Calls add up.
func (s *OAuthServer) FailNext(endpoint OAuthEndpoint, faults ...OAuthFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[endpoint] = append(s.faults[endpoint], faults...)
}

// strike answers with a fault. It returns false where the request is to be
// carried out.
func (s *OAuthServer) strike(w http.ResponseWriter, r *http.Request, record *OAuthRequest, fault OAuthFault) bool {
	switch {
	case fault.Lose:
		return false
	case fault.Error != "":
		s.refuse(w, record, &oauthError{code: fault.Error})
		return true
	case fault.Redirect == "" && !fault.Endless && fault.Status == 0 && fault.Body == nil:
		return false
	}
	s.settle(record, "fault")
	switch {
	case fault.Redirect != "":
		http.Redirect(w, r, fault.Redirect, http.StatusTemporaryRedirect)
	case fault.Endless:
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte(`{"access_token":"`))
		for chunk := bytes.Repeat([]byte("a"), 32<<10); err == nil; {
			_, err = w.Write(chunk)
		}
	default:
		w.WriteHeader(cmp.Or(fault.Status, http.StatusOK))
		_, _ = w.Write(fault.Body)
	}
	return true
}
