package servertest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// The key that signs and checks access tokens; it protects nothing but
// throwaway mailboxes.
const oauthKey = "0123456789abcdef0123456789abcdef"

// writeOAuth lets the server check access tokens: by itself, or by asking at an
// introspection endpoint unless that is empty.
func writeOAuth(dir, introspection string) error {
	conf := "username_attribute = email\n"
	if introspection != "" {
		conf += "introspection_mode = post\nintrospection_url = " + introspection +
			"\nactive_attribute = active\nactive_value = true\n"
		return os.WriteFile(filepath.Join(dir, "oauth2.conf"), []byte(conf), 0o644)
	}
	keys := filepath.Join(dir, "keys", "default", "HS256")
	if err := os.MkdirAll(keys, 0o755); err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString([]byte(oauthKey))
	if err := os.WriteFile(filepath.Join(keys, "default"), []byte(key), 0o644); err != nil {
		return err
	}
	conf += "introspection_mode = local\n" +
		"local_validation_key_dict = fs:posix:prefix=" + dir + "/keys/\n" +
		"active_attribute =\nactive_value =\n"
	return os.WriteFile(filepath.Join(dir, "oauth2.conf"), []byte(conf), 0o644)
}

// OAuthToken returns an access token with which the user logs in by XOAUTH2 or OAUTHBEARER
// until it expires. A time in the past makes a token that the server refuses. No two calls
// return the same token.
func OAuthToken(user string, expires time.Time) string {
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // maps of strings and integers always encode
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	token := encode(map[string]any{"alg": "HS256", "typ": "JWT"}) + "." +
		encode(map[string]any{"email": user, "sub": user, "exp": expires.Unix(), "jti": rand.Text()})
	mac := hmac.New(sha256.New, []byte(oauthKey))
	mac.Write([]byte(token))
	return token + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
