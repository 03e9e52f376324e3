package servertest

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	formField  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// Approve is the person in front of a browser who opens the address of a consent page, logs
// in as the user and agrees. It returns when the client at the redirection URI has
// answered, with any answer.
func (s *OAuthServer) Approve(ctx context.Context, address, user string) error {
	return s.browse(ctx, address, url.Values{"user": {user}, "password": {Password}, "decision": {"approve"}})
}

// Deny is the person who opens the address of a consent page and does not agree.
func (s *OAuthServer) Deny(ctx context.Context, address string) error {
	return s.browse(ctx, address, url.Values{"decision": {"deny"}})
}

// ApproveDevice is the person who opens the verification URI of a device, types
// the code it shows, logs in as the user and agrees.
func (s *OAuthServer) ApproveDevice(ctx context.Context, userCode, user string) error {
	return s.browse(ctx, s.URL+"/device", url.Values{
		"user_code": {userCode}, "user": {user}, "password": {Password}, "decision": {"approve"},
	})
}

// DenyDevice is the person who types the code of a device and does not agree.
func (s *OAuthServer) DenyDevice(ctx context.Context, userCode string) error {
	return s.browse(ctx, s.URL+"/device", url.Values{"user_code": {userCode}, "decision": {"deny"}})
}

// browse opens a page of this server, fills in its form and sends it.
func (s *OAuthServer) browse(ctx context.Context, address string, filled url.Values) error {
	if !strings.HasPrefix(address, s.URL+"/") {
		return errors.New("the address leads to another server")
	}
	client := s.Client()
	defer client.CloseIdleConnections()
	// Once the client has the answer the person is done, even if the client shows an error.
	left := false
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		left = !strings.HasPrefix(r.URL.String(), s.URL+"/")
		if len(via) > 3 {
			return errors.New("too many redirections")
		}
		return nil
	}
	page, err := visit(ctx, client, http.MethodGet, address, nil)
	if left {
		return errors.New("the server sent the person back without asking")
	}
	if err != nil {
		return err
	}
	action, field := formAction.FindSubmatch(page), formField.FindSubmatch(page)
	if action == nil || field == nil {
		return fmt.Errorf("no form but: %s", page)
	}
	if name := html.UnescapeString(string(field[1])); !filled.Has(name) {
		filled.Set(name, html.UnescapeString(string(field[2])))
	}
	_, err = visit(ctx, client, http.MethodPost, s.URL+html.UnescapeString(string(action[1])), filled)
	if left && errors.Is(err, errPage) {
		return nil
	}
	return err
}

// errPage reports an error page.
var errPage = errors.New("the page is an error")

func visit(ctx context.Context, client *http.Client, method, address string, form url.Values) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		return page, fmt.Errorf("%w: %s: %s", errPage, answer.Status, page)
	}
	return page, nil
}
