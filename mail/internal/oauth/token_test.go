package oauth

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
)

func TestLifeOfAnAccessToken(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/life.txt") {
		a := answerOf(t, fmt.Sprintf(`{"access_token":"a","token_type":"bearer","expires_in":%s}`, c.In))
		token, err := a.token()
		if err != nil || token.Life.String() != c.Want {
			t.Errorf("expires_in %s: %v, %v; want %v", c.In, token.Life, err, c.Want)
		}
	}
	if token, err := answerOf(t, `{"access_token":"a","token_type":"bearer"}`).token(); err != nil || token.Life != 0 {
		t.Errorf("expires_in left out: %v, %v", token.Life, err)
	}
}

func answerOf(t testing.TB, body string) *answer {
	t.Helper()
	a := &answer{status: 200}
	must(t, json.Unmarshal([]byte(body), &a.fields))
	return a
}

// A rotated token is the only good one left, so no fault in the rest of the answer may
// lose it.
func TestARotatedTokenIsKeptFromAnInvalidAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/rotated.txt") {
		e := startEndpoint(t, reply(200, `{"refresh_token":"canary-new",`+c.Want+`}`))
		token, err := e.config().Refresh(t.Context(), canaryRefresh)
		failed(t, err, wire.KindProtocol)
		if token.Rotated != "canary-new" || token.Access != "" {
			t.Errorf("%s: rotated kept %v, access token %v", c.In, token.Rotated != "", token.Access != "")
		}
	}
}

func TestInvalidAndMissingRefreshTokens(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"a number": `7`, "a list": `["a"]`, "an object": `{}`, "with a line end": `"a\n"`, "with é": `"é"`,
		"too long": `"` + strings.Repeat("a", maxToken+1) + `"`,
	} {
		token, err := answerOf(t, `{"access_token":"canary","token_type":"bearer","refresh_token":`+said+`}`).token()
		failed(t, err, wire.KindProtocol)
		if token != (Token{}) {
			t.Errorf("%s: something is taken", name)
		}
	}
	for name, said := range map[string]string{"missing": ``, "null": `,"refresh_token":null`, "empty": `,"refresh_token":""`, "the same": `,"refresh_token":"` + canaryRefresh + `"`} {
		e := startEndpoint(t, reply(200, strings.TrimSuffix(good, "}")+said+"}"))
		token, err := e.config().Refresh(t.Context(), canaryRefresh)
		if err != nil || token.Rotated != "" || token.Access != canaryAccess {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{good, `{"refresh_token":"a","expires_in":1e400}`, `{"access_token":"a\u0000"}`, `{"token_type":"BEARER","access_token":"x","expires_in":"0x10"}`, oauthCode("invalid_grant"), `[]`, `{"expires_in":1.5e10,"access_token":"~"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := &answer{status: 200}
		if json.Unmarshal(body, &a.fields) != nil {
			return
		}
		token, err := a.token()
		if err == nil && (token.Access == "" || strings.ContainsAny(string(token.Access), " \r\n\x00")) {
			t.Errorf("%q is taken for an access token", string(token.Access))
		}
		if token.Life < 0 || token.Life > maxLife {
			t.Errorf("a life of %v", token.Life)
		}
		if _, err := a.device(); err == nil && len(a.fields) < 3 {
			t.Errorf("%q starts a device authorization", body)
		}
		if a.failure().Error() == "" {
			t.Error("a failure without words")
		}
	})
}

// Where there are two services, the person agrees to both and each token is for one.
func TestScopesOfTwoServices(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, reply(200, `{"access_token":"a","refresh_token":"r","token_type":"bearer"}`))
	c := e.config()
	c.Scopes, c.MoreScopes = []string{"mail"}, []string{"send"}
	_, err := c.Refresh(t.Context(), canaryRefresh)
	must(t, err)
	c.Scopes, c.MoreScopes = c.MoreScopes, c.Scopes
	_, err = c.Refresh(t.Context(), canaryRefresh)
	must(t, err)
	c.MoreScopes = nil
	_, err = c.Refresh(t.Context(), canaryRefresh)
	must(t, err)
	for i, want := range []string{"mail", "send", ""} {
		if got := e.requests[i].Get("scope"); got != want {
			t.Errorf("request %d asks for %q", i, got)
		}
	}
	c.MoreScopes = []string{"mail"}
	if at := c.consentURL(&browser{redirect: "http://localhost:1/"}, "v"); !strings.Contains(at, "scope=send+mail") {
		t.Error(at)
	}
}
