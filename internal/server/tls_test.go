package server_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/servertest"
)

// certificate makes a certificate of 127.0.0.1 that signs itself, and says where it and its key are.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return cert, key, roots
}

// secure starts a server with TLS, and its client with what it trusts.
func secure(t *testing.T, o server.Options) (*servertest.Server, *tls.Config) {
	t.Helper()
	cert, key, roots := certificate(t)
	o.TLSCert, o.TLSKey = cert, key
	s := start(t, o)
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	s.Client.Transport.(*http.Transport).TLSClientConfig = config.Clone()
	return s, config
}

func TestTLS(t *testing.T) {
	s, config := secure(t, server.Options{})
	if !strings.HasPrefix(s.URL, "https://") {
		t.Fatal(s.URL)
	}
	for range 2 { // by one connection
		if status, _, text := s.Do("POST", "/test/story", `{"model":"storyteller","prompt":"Once","tokens":5}`); status != 200 || !strings.HasSuffix(text, "{\"tokens\":5}\n") {
			t.Errorf("%d %s", status, text)
		}
	}
	address := strings.TrimPrefix(s.URL, "https://")
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("it speaks %q; memory is leased for HTTP/1.1", p)
	}
	c.Close()
	old := &tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // to be refused
	if c, err := tls.Dial("tcp", address, old); err == nil {
		c.Close()
		t.Error("TLS 1.1 is let in")
	}
	if c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}); err == nil {
		c.Close()
		t.Error("a client that does not trust the certificate came through")
	}
	if status, err := plainly(address); err != nil || status != http.StatusBadRequest {
		t.Errorf("HTTP without TLS: %d, %v", status, err)
	}
}

// plainly asks without TLS.
func plainly(address string) (status int, err error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// Handshakes that do not come to their end make room, and so do requests behind them.
func TestTLSMakesRoom(t *testing.T) {
	for name, handshake := range map[string]bool{"no handshake": false, "no request": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, config := secure(t, server.Options{Connections: 4, ReadTimeout: time.Hour, IdleTimeout: time.Hour})
			address := strings.TrimPrefix(s.URL, "https://")
			for range 4 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				if !handshake {
					continue
				}
				config := config.Clone()
				config.ServerName = "127.0.0.1"
				if err := tls.Client(c, config).Handshake(); err != nil {
					t.Fatal(err)
				}
			}
			if status, _, text := s.Do("GET", "/health", ""); status != 200 {
				t.Errorf("%d %s", status, text)
			}
			if open, most, reclaimed := s.Connections(); most != 4 || open > most || reclaimed == 0 {
				t.Errorf("%d of %d connections, %d made room", open, most, reclaimed)
			}
		})
	}
}

// Files that make no certificate are found before anything is leased or loaded.
func TestTLSFiles(t *testing.T) {
	cert, key, _ := certificate(t)
	_, other, _ := certificate(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	odd := filepath.Join(t.TempDir(), "odd.pem")
	if err := os.WriteFile(odd, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := spillway.New(spillway.Options{Memory: 64 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for i, pair := range [][2]string{{none, key}, {cert, none}, {odd, key}, {cert, odd}, {cert, other}, {key, cert}} {
		s, err := server.New(rt, server.Options{TLSCert: pair[0], TLSKey: pair[1]})
		if err == nil {
			s.Close()
			t.Errorf("pair %d is taken", i)
		} else if !strings.HasPrefix(err.Error(), "TLS: ") {
			t.Errorf("pair %d: %v", i, err)
		}
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Error(fmt.Sprint(used, " bytes are leased"))
	}
}
