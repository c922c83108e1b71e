"""What a JSON text is under a schema, by a validator of another make, and where in it a byte stands."""

import decimal
import json
import re
import sys

sys.modules["rfc3987_syntax"] = None  # its URIs take seconds; rfc3986-validator is asked instead
import jsonschema  # noqa: E402

decimal.getcontext().prec = 3000
decimal.getcontext().Emax, decimal.getcontext().Emin = 10**6, -10**6


class NoJSON(Exception):
    pass


def number(text):
    try:
        d = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise NoJSON("a number that nothing can hold")
    return int(d) if abs(d.adjusted()) < 2000 and d == d.to_integral_value() else d


class Members(dict):
    """An object that remembers whether a name came twice."""
    twice = False


def members(pairs):
    out = Members(pairs)
    out.twice = len(out) < len(pairs)
    return out


def load(text):
    try:
        s = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(s, parse_float=number, parse_int=number, object_pairs_hook=members, parse_constant=refuse)
    except UnicodeDecodeError:
        raise NoJSON("broken UTF-8")
    except ValueError as e:
        raise NoJSON(re.sub(r":? line.*|\s*\(char.*", "", str(e)))


def refuse(name):
    raise NoJSON(name)


def ecma(pattern):
    """An ECMA-262 pattern in Python's terms: $ is the end alone, classes are ASCII."""
    out = re.sub(r"\\[\s\S]|\[(?:\\.|[^\]])*\]|\$", lambda m: r"\Z" if m[0] == "$" else m[0], pattern)
    return re.compile(out, re.ASCII)


def pattern(validator, want, value, schema):
    if isinstance(value, str) and not ecma(want).search(value):
        yield jsonschema.ValidationError("%r does not match" % value)


class Judge:
    def __init__(self, schema):
        self.schema = load(schema)
        kind = jsonschema.validators.validator_for(self.schema, default=jsonschema.Draft202012Validator)
        kind = jsonschema.validators.extend(kind, {"pattern": pattern})
        self.validator = kind(self.schema, format_checker=kind.FORMAT_CHECKER)

    def faults(self, value):
        """(keyword, path) of what is wrong, innermost first."""
        out = []
        for e in self.validator.iter_errors(value):
            while e.context:
                e = jsonschema.exceptions.best_match([e]) if not e.parent else deepest(e)
                if e.context:
                    e = deepest(e)
            name = e.validator
            if name == "format":
                name = "format " + e.validator_value
            out.append((str(name), tuple(e.absolute_path)))
        return out


def deepest(e):
    return max(e.context, key=lambda c: len(c.absolute_path))


def twice(value):
    if isinstance(value, dict):
        return getattr(value, "twice", False) or any(map(twice, value.values()))
    return isinstance(value, list) and any(map(twice, value))


class Place:
    """Where a byte would stand behind a text: its path, what it is part of, and how much of that there is."""

    def __init__(self, text):
        self.stack = []      # [kind, name or index, waiting for a name]
        self.kind, self.part, self.lexemes = "begin", b"", 0
        for b in text:
            self.byte(b)

    def byte(self, b):
        c = bytes([b])
        if self.kind in ("string", "name"):
            self.part += c
            if self.escaped:
                self.escaped = False
            elif c == b"\\":
                self.escaped = True
            elif c == b'"':
                self.close()
            return
        if c in b" \t\r\n":
            return
        if self.kind == "word" and c not in b",:]}":
            self.part += c
            return
        self.lexemes += 1
        if c in b"{[":
            self.stack.append(["{" if c == b"{" else "[", None if c == b"{" else 0, c == b"{"])
            self.kind = "begin"
        elif c in b"}]":
            if self.stack:
                self.stack.pop()
            self.kind = "after"
        elif c == b",":
            if self.stack and self.stack[-1][0] == "[":
                self.stack[-1][1] += 1
            elif self.stack:
                self.stack[-1][2] = True
            self.kind = "begin"
        elif c == b":":
            self.kind = "begin"
        elif c == b'"':
            naming = self.stack and self.stack[-1][0] == "{" and self.stack[-1][2]
            self.kind, self.part, self.escaped = "name" if naming else "string", c, False
        else:
            self.kind, self.part = "word", c

    def close(self):
        if self.kind == "name":
            try:
                self.stack[-1][1] = json.loads(self.part.decode("utf-8", "replace"), strict=False)
            except ValueError:
                self.stack[-1][1] = self.part.decode("utf-8", "replace")
            self.stack[-1][2] = False
            self.kind = "colon"
        else:
            self.kind = "after"

    def path(self):
        """Of the value at which the byte stands, or of the object whose name or end is due."""
        out = [frame[1] for frame in self.stack]
        if self.stack and (self.kind == "name" or self.stack[-1][0] == "{" and self.stack[-1][2]):
            out.pop()
        return tuple(out)

    def signature(self, b):
        shape = re.sub(rb"[0-9]", b"0", re.sub(rb"[A-Z]", b"A", re.sub(rb"[a-z]", b"a", self.part[-3:])))
        path = tuple("*" if isinstance(p, int) else p for p in self.path())
        return path, self.kind, min(len(self.part), 24) if self.kind != "name" else 0, shape, kind_of(b)


def kind_of(b):
    c = chr(b)
    if b >= 0x80:
        return "%x" % (b >> 4)
    if b < 0x20:
        return "control"
    return "0" if c.isdigit() else "a" if c.islower() else "A" if c.isupper() else c


def subschemas(root, path):
    """JSON pointers (tuples) of the schemas that say something about the value at path."""
    found = []

    def follow(at, seen):
        if at in seen:
            return
        seen.add(at)
        s = get(root, at)
        if not isinstance(s, dict):
            return
        found.append(at)
        ref = s.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            follow(tuple(p.replace("~1", "/").replace("~0", "~") for p in ref[1:].split("/")[1:]), seen)
        for k in ("anyOf", "oneOf", "allOf"):
            for i in range(len(s.get(k, []))):
                follow(at + (k, i), seen)
        for k in ("if", "then", "else", "not"):
            if k in s:
                follow(at + (k,), seen)
        for k in s.get("dependentSchemas", {}):
            follow(at + ("dependentSchemas", k), seen)

    follow((), set())
    for step in path:
        here, found = found, []
        seen = set()
        for at in here:
            for child in children(get(root, at), step):
                follow(at + child, seen)
    return found


def children(s, step):
    if isinstance(step, int):
        items = s.get("prefixItems", s["items"] if isinstance(s.get("items"), list) else [])
        where = "prefixItems" if "prefixItems" in s else "items"
        if step < len(items):
            return [(where, step)]
        rest = "items" if isinstance(s.get("items"), dict) else "additionalItems"
        return [(k,) for k in (rest, "contains", "unevaluatedItems") if k in s]
    out = []
    if step in s.get("properties", {}):
        out.append(("properties", step))
    for p in s.get("patternProperties", {}):
        if ecma(p).search(str(step)):
            out.append(("patternProperties", p))
    if not out:
        out += [(k,) for k in ("additionalProperties", "unevaluatedProperties") if k in s]
    return out


def get(root, at):
    for p in at:
        if isinstance(root, list):
            root = root[int(p)]
        elif isinstance(root, dict) and p in root:
            root = root[p]
        else:
            return None
    return root


def text_of(value, order=None):
    """Compact JSON, numbers without exponents, strings with the escapes that JSON needs."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return re.sub(r"(\.\d*?)0+$", r"\1", format(value, "f")).removesuffix(".")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(text_of(v, order and order.down("*")) for v in value) + "]"
    names = list(value)
    if order:
        names = order.sorted(names)
    return "{" + ",".join(text_of(n) + ":" + text_of(value[n], order and order.down(n)) for n in names) + "}"


class Order:
    """The order of properties that a schema has for the object at a path."""

    def __init__(self, root, last=False, path=()):
        self.root, self.last, self.path = root, last, path  # last: of a schema and those that it refers to the last comes first

    def down(self, step):
        return Order(self.root, self.last, self.path + (0 if step == "*" else step,))

    def sorted(self, names):
        known = []
        for at in subschemas(self.root, self.path)[:: -1 if self.last else 1]:
            s = get(self.root, at)
            known += [n for n in s.get("properties", {}) if n not in known]
        return [n for n in known if n in names] + [n for n in names if n not in known]
