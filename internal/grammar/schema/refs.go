package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// place is a value of a document in which a schema stands.
type place struct {
	value *Value
	base  string // URI of the resource, no fragment
	draft Draft
	where string
}

// maxPlaces bounds the schemas that are seen in all documents together.
const maxPlaces = 100_000

// registry knows the resources and anchors of the documents that were read.
type registry struct {
	resources map[string]*place
	anchors   map[string]*place   // by URI with fragment
	dynamic   map[string][]*place // by name; "" is $recursiveAnchor
	known     map[*Value]*place
}

func newRegistry() *registry {
	return &registry{
		resources: map[string]*place{}, anchors: map[string]*place{},
		dynamic: map[string][]*place{}, known: map[*Value]*place{},
	}
}

// rootURI is the base of a document that does not name itself.
const rootURI = "json-schema:///"

// addDocument registers a document under uri and under the name that it gives itself.
func (r *registry) addDocument(uri string, v *Value, draft Draft, where string) (*place, error) {
	p := &place{v, uri, draft, where}
	r.resources[uri] = p
	if err := r.scan(p, true); err != nil {
		return nil, err
	}
	return p, nil
}

// scan registers p and the schemas below it.
func (r *registry) scan(p *place, root bool) error {
	if r.known[p.value] != nil {
		return nil
	}
	if len(r.known) >= maxPlaces {
		return &Error{Reason: Limit, Where: p.where, Detail: "more than " + strconv.Itoa(maxPlaces) + " schemas"}
	}
	r.known[p.value] = p
	if p.value.Kind != Object {
		return nil
	}
	if err := r.identify(p, root); err != nil {
		return err
	}
	for _, m := range p.value.Members {
		var err error
		subschemas(m, p.draft, func(v *Value, path string) {
			if err == nil {
				err = r.scan(&place{v, p.base, p.draft, p.where + "/" + path}, false)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// identify reads $schema, $id and the anchors of p.
func (r *registry) identify(p *place, root bool) error {
	v := p.value
	idKey := "$id"
	id := v.Get(idKey)
	if s := v.Get("$schema"); s != nil && (root || id != nil || v.Get("id") != nil) {
		draft, err := draftOf(s, p.where)
		if err != nil {
			return err
		}
		p.draft = draft
	}
	if p.draft == Draft4 {
		idKey = "id"
		id = v.Get(idKey)
	}
	if id != nil && id.Kind == String && (p.draft >= Draft2019 || v.Get("$ref") == nil) {
		if err := r.identifyAs(p, idKey, id.Text); err != nil {
			return err
		}
	}
	if p.draft < Draft2019 {
		return nil
	}
	r.anchor(p, v.Get("$anchor"))
	if a := v.Get("$dynamicAnchor"); a != nil && p.draft == Draft2020 {
		r.anchor(p, a)
		r.dynamic[a.Text] = append(r.dynamic[a.Text], p)
	}
	if a := v.Get("$recursiveAnchor"); a != nil && a.Bool && p.draft == Draft2019 {
		r.dynamic[""] = append(r.dynamic[""], p)
	}
	return nil
}

func (r *registry) anchor(p *place, name *Value) {
	if name != nil && name.Kind == String {
		r.anchors[p.base+"#"+name.Text] = p
	}
}

func (r *registry) identifyAs(p *place, keyword, id string) error {
	uri, fragment, err := resolve(p.base, id)
	if err != nil {
		return &Error{Invalid, keyword, p.where, "is not a URI reference: " + err.Error()}
	}
	if fragment != "" {
		if p.draft >= Draft2019 {
			return &Error{Invalid, keyword, p.where, "has a fragment; use $anchor"}
		}
		r.anchors[uri+"#"+fragment] = p
		if id[0] == '#' {
			return nil
		}
	}
	p.base = uri
	if r.resources[uri] == nil {
		r.resources[uri] = p
	}
	return nil
}

// draftOf reads a $schema.
func draftOf(v *Value, where string) (Draft, error) {
	uri := strings.TrimSuffix(v.Text, "#")
	uri = strings.TrimPrefix(strings.TrimPrefix(uri, "https:"), "http:")
	switch uri {
	case "//json-schema.org/draft-04/schema":
		return Draft4, nil
	case "//json-schema.org/draft-06/schema":
		return Draft6, nil
	case "//json-schema.org/draft-07/schema":
		return Draft7, nil
	case "//json-schema.org/draft/2019-09/schema":
		return Draft2019, nil
	case "//json-schema.org/draft/2020-12/schema", "//json-schema.org/schema", "//spec.openapis.org/oas/3.1/dialect/base":
		return Draft2020, nil
	}
	return 0, &Error{Unsupported, "$schema", where, strconv.Quote(v.Text) +
		" is not known; drafts 4, 6, 7, 2019-09 and 2020-12 are, for example https://json-schema.org/draft/2020-12/schema"}
}

// subschemas calls f with the schemas that the member m of a schema holds.
func subschemas(m Member, d Draft, f func(v *Value, path string)) {
	if !d.has(m.Name) {
		return
	}
	switch m.Name {
	case "additionalProperties", "additionalItems", "not", "propertyNames", "contains", "if", "then", "else",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		f(m.Value, m.Name)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		eachItem(m, f)
	case "items":
		if m.Value.Kind == Array {
			eachItem(m, f)
		} else {
			f(m.Value, m.Name)
		}
	case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
		if m.Value.Kind != Object {
			return
		}
		for _, sub := range m.Value.Members {
			if sub.Value.Kind != Array {
				f(sub.Value, m.Name+"/"+EscapePointer(sub.Name))
			}
		}
	}
}

func eachItem(m Member, f func(v *Value, path string)) {
	for i, item := range m.Value.Items {
		f(item, m.Name+"/"+strconv.Itoa(i))
	}
}

// has says whether the draft has a keyword; keywords of older drafts are read in the newer ones.
func (d Draft) has(keyword string) bool {
	switch keyword {
	case "propertyNames", "contains", "const":
		return d >= Draft6
	case "if", "then", "else":
		return d >= Draft7
	case "$defs", "unevaluatedItems", "unevaluatedProperties", "dependentSchemas", "dependentRequired",
		"contentSchema", "minContains", "maxContains":
		return d >= Draft2019
	case "prefixItems", "$dynamicRef":
		return d >= Draft2020
	case "$recursiveRef":
		return d == Draft2019
	}
	return true
}

// EscapePointer is a name as a JSON pointer spells it (RFC 6901).
func EscapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// resolve gives the absolute URI of ref and its decoded fragment.
func resolve(base, ref string) (uri, fragment string, err error) {
	if strings.HasPrefix(ref, "#") {
		fragment, err = url.PathUnescape(ref[1:])
		return base, fragment, err
	}
	u, err := url.Parse(ref)
	if err != nil {
		return "", "", err
	}
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	if !u.IsAbs() {
		b, err := url.Parse(base)
		if err != nil {
			return "", "", err
		}
		u = b.ResolveReference(u)
	}
	return u.String(), fragment, nil
}

// lookup finds what ref means at p.
func (p *parser) lookup(at *place, keyword, ref string) (*place, error) {
	fail := func(detail string) error { return &Error{Unresolved, keyword, at.where, detail} }
	uri, fragment, err := resolve(at.base, ref)
	if err != nil {
		return nil, fail("is not a URI reference: " + err.Error())
	}
	root, err := p.resource(uri, at.draft)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, fail(strconv.Quote(ref) + " is in no document that is here; only references into the schema itself are followed")
	}
	if fragment == "" {
		return root, nil
	}
	if fragment[0] != '/' {
		if target := p.reg.anchors[uri+"#"+fragment]; target != nil {
			return target, nil
		}
		return nil, fail("no anchor " + strconv.Quote(fragment) + " in the schema")
	}
	target, missing := p.reg.point(root, fragment)
	if target == nil {
		return nil, fail(strconv.Quote(ref) + " leads nowhere: there is no " + strconv.Quote(missing))
	}
	return target, p.reg.scan(target, false)
}

// resource is the root of the resource uri, read from the other documents if need be.
func (p *parser) resource(uri string, draft Draft) (*place, error) {
	if root := p.reg.resources[uri]; root != nil {
		return root, nil
	}
	text, ok := p.others[uri]
	if !ok {
		return nil, nil
	}
	v, err := ParseValue(text)
	if err != nil {
		return nil, &Error{Invalid, "$ref", uri, err.Error()}
	}
	return p.reg.addDocument(uri, v, draft, uri+"#")
}

// point follows a JSON pointer; missing is the token that leads nowhere.
func (r *registry) point(from *place, pointer string) (target *place, missing string) {
	at := *from
	for token := range strings.SplitSeq(pointer[1:], "/") {
		name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next := child(at.value, name)
		if next == nil {
			return nil, name
		}
		if known := r.known[next]; known != nil {
			at = *known
			continue
		}
		at.value = next
		at.where += "/" + token
	}
	if known := r.known[at.value]; known != nil {
		return known, ""
	}
	return &at, ""
}

func child(v *Value, name string) *Value {
	if v.Kind == Array {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v.Items) {
			return nil
		}
		return v.Items[i]
	}
	return v.Get(name)
}
