package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// checkSite refuses what a page of another site may have sent: browsers send it along with requests that its reader
// never meant. An origin must be our own or one of Options.CORSOrigins. The host's name must be one of ours: a page can
// make its own name mean our address.
func (s *Server) checkSite(r *http.Request) error {
	if !s.knownHost(r.Host) {
		return forbidden(fmt.Sprintf("the host %.100q is not a name of this server: use its address, or name the host by --allowed-host", r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" && !s.knownOrigin(origin, r.Host) {
		return forbidden(fmt.Sprintf("pages of %.100q may not use this server: --cors-origin lets them in", origin))
	}
	return nil
}

func forbidden(message string) error {
	return &Error{Status: http.StatusForbidden, Code: CodeForbidden, Message: message}
}

// changes reports whether a method may change something.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

func (s *Server) knownOrigin(origin, host string) bool {
	if slices.Contains(s.options.CORSOrigins, "*") || slices.Contains(s.options.CORSOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return port != "" && strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port))
}

// knownHost reports whether the server may be called by a host's name. Where other machines reach it anyway, every name
// is one unless options say which.
func (s *Server) knownHost(host string) bool {
	if host == "" || !s.loopback.Load() && len(s.options.AllowedHosts) == 0 {
		return true // no browser leaves it out
	}
	name := hostName(host)
	if isLoopbackName(name) || strings.EqualFold(name, s.options.Host) {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil && !s.loopback.Load() {
		return true // no name that could be made to mean something else
	}
	return slices.ContainsFunc(s.options.AllowedHosts, func(h string) bool { return h == "*" || strings.EqualFold(hostName(h), name) })
}

// hostName is a host without its port, and without the brackets of an address.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func isLoopbackName(name string) bool {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.IsLoopback()
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
