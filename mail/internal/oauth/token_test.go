package oauth

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

func TestLifeOfAnAccessToken(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{
		`3600`:            time.Hour,
		`"3600"`:          time.Hour,
		`3599.5`:          3599*time.Second + 500*time.Millisecond,
		`1`:               time.Second,
		`0`:               0,
		`-1`:              0,
		`"-3600"`:         0,
		`null`:            0,
		`"soon"`:          0,
		`"NaN"`:           0,
		`"-Inf"`:          0,
		`"Inf"`:           maxLife,
		`true`:            0,
		`[3600]`:          0,
		`{"a":1}`:         0,
		`86400`:           maxLife,
		`86401`:           maxLife,
		`9999999999999`:   maxLife,
		`1e300`:           maxLife,
		`"9e999"`:         0,
		`-9e300`:          0,
		`0.0000000000001`: 0,
	} {
		a := answerOf(t, fmt.Sprintf(`{"access_token":"a","token_type":"bearer","expires_in":%s}`, said))
		token, err := a.token()
		if err != nil || token.Life != want {
			t.Errorf("expires_in %s: %v, %v; want %v", said, token.Life, err, want)
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
	for name, rest := range map[string]string{
		"no access token":    `"token_type":"bearer"`,
		"null access token":  `"access_token":null,"token_type":"bearer"`,
		"a number":           `"access_token":7,"token_type":"bearer"`,
		"a space in it":      `"access_token":"canary access","token_type":"bearer"`,
		"a line end in it":   `"access_token":"canary\r\n","token_type":"bearer"`,
		"too long":           `"access_token":"` + strings.Repeat("a", maxToken+1) + `","token_type":"bearer"`,
		"of another type":    `"access_token":"canary","token_type":"mac"`,
		"of no type at all":  `"access_token":"canary","token_type":["bearer"]`,
		"nothing but itself": `"x":1`,
	} {
		e := startEndpoint(t, reply(200, `{"refresh_token":"canary-new",`+rest+`}`))
		token, err := e.config().Refresh(t.Context(), canaryRefresh)
		failed(t, err, wire.KindProtocol)
		if token.Rotated != "canary-new" || token.Access != "" {
			t.Errorf("%s: rotated kept %v, access token %v", name, token.Rotated != "", token.Access != "")
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
