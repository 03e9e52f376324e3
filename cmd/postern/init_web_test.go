package main

import (
	"errors"
	"net/http"
)

// noWeb is a web without any page.
type noWeb struct{}

func (noWeb) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("there is no web here")
}
