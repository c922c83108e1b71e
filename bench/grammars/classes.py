"""Names for differences, each by a rule that is tried out on a whole text that one engine takes and the other refuses."""

import copy
import json
import re

from engines import Refused
from judge import Judge, NoJSON, Order, Place, get, load, subschemas, text_of, twice

LEXEMES = re.compile(rb'"(?:\\[\s\S]|[^"\\])*"|[-+0-9.eE]+|[a-z]+|[{}\[\]:,]|\s+|[\s\S]')
KINDS = ("white space", "the character U+007F", "escapes", "spelling of numbers", "more than 16 digits", "more than 6 digits behind the point")
TOGETHER = (("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), ("minLength", "maxLength"), ("minItems", "maxItems"),
            ("pattern", "minLength", "maxLength"), ("format", "minLength", "maxLength"))
NOT_KEYWORDS = ("properties", "$ref", "$defs", "definitions", "type", "title", "description", "default", "examples",
                "$schema", "$id", "$comment", "then", "else")


def each(text, change):
    try:
        return b"".join(change(x) for x in LEXEMES.findall(text))
    except NoJSON:
        return text


def spelled(x, kind):
    if kind == "white space":
        return b"" if x.isspace() else x
    if kind == "the character U+007F" and x[:1] == b'"':
        return x.replace(b"\x7f", b"a")
    if kind == "escapes" and x[:1] == b'"' and len(x) > 1:
        return text_of(load(x)).encode("utf-8", "replace")
    if x[:1] in b"-0123456789" and x:
        if kind == "spelling of numbers":
            return text_of(load(x)).encode()
        if kind == "more than 16 digits":
            return re.sub(rb"(\d{16})\d+", rb"\1", text_of(load(x)).encode())
        if kind == "more than 6 digits behind the point":
            return re.sub(rb"(\.\d{6})\d+", rb"\1", x)
    return x


class Classes:
    """Of one schema."""

    def __init__(self, schema, ours):
        self.schema, self.ours = schema, ours
        self.judge = Judge(schema)
        self.orders = Order(self.judge.schema), Order(self.judge.schema, True)
        self.plain = json.loads(schema)
        self.differ = []     # texts about which the validator and acceptance mode differ

    def valid(self, text):
        """The value, and its faults by the validator; acceptance mode must say the same."""
        value = load(text)
        faults = self.judge.faults(value)
        said = self.ours.check(self.schema, text)
        if faults and not said and all(year_zero(value, f) for f in faults):
            return value, []
        if bool(faults) != bool(said) and not twice(value):
            self.differ.append((self.schema, text, faults, said))
            if not faults:
                found = re.search(r'keyword "(\w+)"', said)
                faults = [((found[1] if found else "text") + ", by acceptance mode alone", ())]
        return value, faults

    def name(self, accepts, refuses, text):
        """The class of a text that one engine takes whole and the other does not."""
        at, _ = refuses.text(self.schema, text)
        place = Place(text[:at])
        place.past = Place(text[: at + 1]).lexemes + (place.kind == "word")
        long = refuses is self.ours and place.kind in ("word", "begin") and number_at(text, at)
        try:
            value, faults = self.valid(text)
        except NoJSON as e:
            return long or "no JSON (%s)" % e, True
        if long and not faults:
            return long, True
        if faults:
            here = [f for f in faults if close(f[1], place.path())]
            return "invalid: " + (here or faults)[0][0], bool(here)
        found = self.respelled(refuses, text, value, place) or self.without(refuses, text, place)
        return found or "unexplained", bool(found)

    def respelled(self, refuses, text, value, place):
        for kind in KINDS:
            if self.further(refuses, self.schema, each(text, lambda x: spelled(x, kind)), place):
                return kind
        if twice(value) and self.further(refuses, self.schema, text_of(value).encode("utf-8", "replace"), place):
            return "a name twice"
        for order in self.orders:
            ordered = text_of(value, order).encode("utf-8", "replace")
            if ordered != text and refuses.text(self.schema, ordered) == (len(ordered), True):
                return "order of properties"
        return None

    def further(self, refuses, schema, text, place):
        """The engine takes the text, or refuses it later than what stands at the place."""
        try:
            at, ends = refuses.text(schema, text)
        except Refused:
            return False
        return at == len(text) and ends or at < len(text) and Place(text[: at + 1]).lexemes > place.past

    def without(self, refuses, text, place):
        """The keyword without which, at that place, the engine takes the text."""
        path = place.path()
        for depth in range(len(path), -1, -1):
            wheres = subschemas(self.plain, path[:depth])
            names = {k for at in wheres for k in get(self.plain, at)}
            singles = [(k,) for k in sorted(names.difference(NOT_KEYWORDS))]
            for keywords in singles + [g for g in TOGETHER if len(names.intersection(g)) > 1] + [tuple(sorted(names.difference(("properties", "$defs", "definitions"))))]:
                if self.further(refuses, self.dropped(wheres, keywords), text, place):
                    said = [get(self.plain, at).get("format", "") for at in wheres] if keywords == ("format",) else []
                    return "narrower: " + " ".join(["all keywords"] if len(keywords) > 4 else [*(k for k in keywords if k in names), *said]).strip()
        return None

    def dropped(self, wheres, keywords):
        changed = copy.deepcopy(self.plain)
        for at in wheres:
            s = get(changed, at)
            for keyword in keywords:
                if isinstance(s, dict) and keyword in s:
                    said = s.pop(keyword)
                    if keyword == "oneOf":
                        s["anyOf"] = s.get("anyOf", []) + said
        return json.dumps(changed)

    def completed(self, accepts, refuses, before):
        """The class of text that one engine goes on from and the other does not."""
        best = None
        for seed in range(6):
            text = accepts.finish(self.schema, before, seed, len(before) + 10 * (seed % 2))
            if text is None:
                continue
            name, sure = self.name(accepts, refuses, text)
            if sure:
                return name, text
            best = best or (name, text)
        return best or ("no end found", before)


def number_at(text, at):
    """What numbers have that grammars for writing leave out, at the place of a byte."""
    for m in re.finditer(rb"[-+0-9.eE]+", text):
        if m.start() <= at < m.end():
            if re.search(rb"[eE]", m[0][: at - m.start() + 1]):
                return "exponents"
            if re.search(rb"\d{17}", m[0]):
                return "more than 16 digits"
    return None


def year_zero(value, fault):
    """Python's dates begin in the year 1, those of RFC 3339 in the year 0."""
    for step in fault[1]:
        value = value[step]
    return fault[0] in ("format date", "format date-time") and str(value).startswith("0000-")


def close(a, b):
    n = min(len(a), len(b))
    return a[:n] == b[:n]
