package mcpserve

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

type nothing struct{}

func TestAClientReadsAnswersInAnyOrder(t *testing.T) {
	release := make(chan struct{})
	wait := discovery.New(discovery.Spec{Path: "wait", Summary: "Wait", Effect: discovery.Read, Examples: []string{"wait"}},
		func(ctx context.Context, call *discovery.Call, _ *nothing) (*nothing, error) {
			call.Announce("waiting")
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &nothing{}, ctx.Err()
		})
	registry, err := discovery.NewRegistry(discovery.Info{Name: "test", Version: "1"}, wait)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Registry: registry, Profile: gateway.FullProfile()})
	if err != nil {
		t.Fatal(err)
	}
	in, there := io.Pipe()
	back, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- (&Server{Gateway: g}).Stdio(t.Context(), in, out) }()

	c := gatewaytest.New(t, there, back)
	c.Progress = true
	first := c.Begin("wait")
	if m := c.Next(); m.Method != "notifications/progress" || m.Params.ProgressToken != first || m.Params.Message != "waiting" {
		t.Errorf("%s", m.Line)
	}
	second, given := c.Begin("version"), c.Begin("wait")
	if m := c.Answer(second); m.IsError() || !strings.HasPrefix(m.Text(), `{"success":true`) {
		t.Errorf("%s", m.Line)
	}
	c.Cancel(given)
	close(release)
	if m := c.Call("no such thing"); !m.IsError() || !strings.Contains(m.Text(), "COMMAND_NOT_FOUND") {
		t.Errorf("%s", m.Line)
	}
	if m := c.Answer(first); m.IsError() || *m.ID != first {
		t.Errorf("%s", m.Line)
	}
	c.Send("nope")
	if m := c.Next(); m.Error == nil || m.Error.Code != -32700 || !m.IsError() || m.Text() != "" {
		t.Errorf("%s", m.Line)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
