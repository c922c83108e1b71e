"""Compares what grammars of JSON Schemas allow with llguidance and xgrammar: the masks at every step of random
walks, and which texts are taken. Each difference is named by a rule that is tried out (classes.py); what no rule
explains is listed.

  python bench/grammars/compare.py OURS SCHEMAS TOKENIZER END RESULT.json [PART/PARTS]
  python bench/grammars/compare.py table RESULT.json ...

OURS is the command of this folder, SCHEMAS a file with one schema a line, TOKENIZER a folder with tokenizer.json,
END the text of the token that ends an answer; RESULT.json is written anew after each schema. Python needs llguidance, xgrammar, numpy and jsonschema[format-nongpl].
"""

import collections
import decimal
import json
import os
import random
import re
import sys
import traceback

import numpy as np

from classes import Classes
from engines import LLGuidance, Ours, Refused, XGrammar
from judge import NoJSON, Place, load, text_of

STEPS = 32
EXAMINED = 2  # differences of one kind, at one place of one schema


class Comparison:
    def __init__(self, ours, peers):
        self.ours, self.peers = ours, peers
        self.count = {p.name: collections.Counter() for p in peers}
        self.samples = {p.name: {} for p in peers}
        self.unexplained, self.differ, self.wrong = [], [], []
        lengths = {t: i for i, t in enumerate(ours.tokens) if t}
        self.ids, self.longest = lengths, max(map(len, lengths))

    def run(self, number, schema):
        self.classes, self.kinds = Classes(schema, self.ours), {}
        r = random.Random(number)
        self.ours.compile(schema)
        alive = []
        for p in self.peers:
            try:
                p.compile(schema)
                alive.append(p)
                self.count[p.name]["schemas"] += 1
            except Refused as e:
                self.add(p, "schemas refused", "refused: " + str(e).split("\n")[0][:60], schema, b"", 1)
        text = self.ours.finish(schema, b"", number, 100)
        self.walk(r, alive, [])
        self.walk(r, alive, self.greedy(text or b""))
        for text in self.texts(r, schema):
            self.compare(alive, schema, text)
        self.differ += self.classes.differ

    def greedy(self, text):
        out = []
        while text:
            n = next((n for n in range(min(self.longest, len(text)), 0, -1) if text[:n] in self.ids), 0)
            if not n:
                break
            out.append(self.ids[text[:n]])
            text = text[n:]
        return out[:STEPS]

    def result(self, tokenizer, schemas):
        return {
            "tokenizer": tokenizer, "schemas": schemas, "versions": {p.name: p.version for p in self.peers},
            "count": self.count, "samples": self.samples, "unexplained": self.unexplained, "wrong": self.wrong,
            "differ": [(s, shown(t), str(f), str(said)) for s, t, f, said in self.differ],
        }

    def walk(self, r, peers, planned):
        self.ours.begin()
        for p in peers:
            p.begin()
        before, peers = b"", list(peers)
        for i in range(len(planned) or STEPS):
            mask = self.ours.mask()
            common = mask.copy()
            for p in list(peers):
                theirs = p.mask()
                self.masks(p, mask, theirs, before)
                common &= theirs
            token = planned[i] if planned else self.pick(r, mask, common)
            if token == self.ours.end:
                return
            self.ours.accept(token)
            for p in list(peers):
                try:
                    p.accept(token)
                except Refused:
                    peers.remove(p)
            before += self.ours.tokens[token]

    def pick(self, r, mask, common):
        ids = np.flatnonzero(common if common.any() and r.random() < 0.97 else mask)
        if len(ids) > 40 and r.random() < 0.5:
            short = [i for i in ids[:3000] if self.ours.tokens[i] in (b'"', b'",', b'":', b"}", b"]", b",", b'"}', b'","')]
            ids = short or ids
        return int(r.choice(ids))

    def masks(self, peer, ours, theirs, before):
        count = self.count[peer.name]
        count["masks"] += 1
        count["bits"] += len(ours)
        if (ours == theirs).all():
            count["masks equal"] += 1
            return
        end = self.ours.end
        if ours[end] != theirs[end]:
            a, b = (self.ours, peer) if ours[end] else (peer, self.ours)
            self.named(a, b, before, peer, 1, lambda: self.classes.name(a, b, before)[0])
        more, less = np.flatnonzero(theirs & ~ours), np.flatnonzero(ours & ~theirs)
        tokens = self.ours.tokens
        more, less = more[more != end], less[less != end]
        if len(more):
            at = self.ours.refused(more)
            self.group(peer, self.ours, peer, before, more, dict(zip(map(int, more), at)))
        if len(less):
            found = peer.refused(self.classes.schema, before, [tokens[i] for i in less])
            at = {int(i): found[tokens[i]] if found else len(tokens[i]) for i in less}
            self.group(self.ours, peer, peer, before, less, at)

    def group(self, accepts, refuses, peer, before, ids, at):
        """Differences by the byte that one refuses: all tokens that have it there are one."""
        groups = collections.Counter()
        for i in ids:
            text = self.ours.tokens[i]
            if not text:
                groups[None] += 1
            elif at[int(i)] >= len(text):
                groups[b""] += 1
            else:
                groups[text[: at[int(i)] + 1]] += 1
        for text, n in groups.items():
            if text is None:
                self.add(peer, side(accepts), "tokens that are no text", self.classes.schema, before, n)
            elif not text:
                self.add(peer, side(accepts), "the same bytes in other tokens", self.classes.schema, before, n)
            else:
                whole = before + text
                self.named(accepts, refuses, whole, peer, n, lambda: self.classes.completed(accepts, refuses, whole)[0])

    def named(self, accepts, refuses, text, peer, n, find):
        kind = (peer.name, accepts.name, Place(text[:-1]).signature(text[-1] if text else 0))
        known = self.kinds.setdefault(kind, [])
        if len(known) < EXAMINED:
            known.append(find())
            name = known[-1]
        else:
            name = collections.Counter(known).most_common(1)[0][0]
        self.add(peer, side(accepts), name, self.classes.schema, text, n)

    def add(self, peer, side, name, schema, text, n):
        self.count[peer.name][side + "\t" + name] += n
        example = self.samples[peer.name].setdefault(side + "\t" + name, [])
        if len(example) < 2:
            example.append((schema[:3000], shown(text)[-400:]))
        if name in ("unexplained", "no end found") and len(self.unexplained) < 400:
            self.unexplained.append((peer.name, side, name, schema, repr(text)))
        if side.startswith("ours only") and (name.startswith("invalid") or name.startswith("no JSON")):
            self.wrong.append((peer.name, side, name, schema, repr(text)))

    def texts(self, r, schema):
        for seed in range(3):
            text = self.ours.finish(schema, b"", r.randrange(1 << 30), 40 * seed)
            if text is None:
                continue
            yield text
            for _ in range(5):
                try:
                    yield mutated(r, text)
                except (IndexError, UnicodeEncodeError):
                    pass

    def compare(self, peers, schema, text):
        ours = self.ours.text(schema, text) == (len(text), True)
        try:
            if ours and self.classes.valid(text)[1]:
                self.wrong.append(("ours", "text", "", schema, repr(text)))
            if not ours:
                self.classes.valid(text)
        except NoJSON:
            pass
        for p in peers:
            theirs = p.text(schema, text) == (len(text), True)
            self.count[p.name]["texts"] += 1
            if ours == theirs:
                self.count[p.name]["texts, both " + ("accept" if ours else "refuse")] += 1
                continue
            a, b = (self.ours, p) if ours else (p, self.ours)
            self.add(p, side(a) + ", texts", self.classes.name(a, b, text)[0], schema, text, 1)


def shown(text):
    return text.decode("utf-8", "backslashreplace")


def side(accepts):
    return "ours only" if accepts.name == "ours" else "peer only"


def mutated(r, text):
    """The text with one thing changed: a value, a name, a spelling."""
    if r.random() < 0.3:
        s = text.decode("utf-8")
        at = [i for i, c in enumerate(s) if c in ',:{}[]'] if r.random() < 0.3 else range(len(s))
        i = r.choice(list(at) or [0])
        return (s[:i] + r.choice(["", " ", "\\u0041", "0", "e1", ".0", '"', s[i:i + 1] * 2, "x"]) + s[i + r.randrange(2):]).encode()
    value = load(text)
    return text_of(changed(r, value)).encode()


def changed(r, v):
    if isinstance(v, dict) and v and r.random() < 0.8:
        name, out = r.choice(list(v)), dict(v)
        what = r.randrange(6)
        if what == 0:
            del out[name]
        elif what == 1:
            out["extra"] = 1
        elif what == 2:
            out[name] = out.pop(name)
        else:
            out[name] = changed(r, v[name])
        return out
    if isinstance(v, list) and v and r.random() < 0.8:
        i = r.randrange(len(v))
        return r.choice([v + [v[i]], v[:i] + v[i + 1:], v[:i] + [changed(r, v[i])] + v[i + 1:]])
    if isinstance(v, str):
        return r.choice([v + "x", v[1:], v.upper(), v * 9, v[: len(v) // 2], None, 1, ""])
    if isinstance(v, bool) or v is None:
        return r.choice([True, False, None, 0, "true"])
    if isinstance(v, (dict, list)):
        return r.choice([{}, [], "x", 3, [v], {"a": v}])
    return r.choice([v + 1, -v, v * 1000, 0, -1, str(v), v + decimal.Decimal("0.25"), 10**17])


def compare(command, schemas, folder, end, out, part="0/1"):
    first, step = map(int, part.split("/"))
    ours = Ours(command, folder, end)
    c = Comparison(ours, [kind(ours.tokens, ours.end) for kind in (LLGuidance, XGrammar)])
    lines = open(schemas).read().splitlines()
    for done, number in enumerate(range(first, len(lines), step), 1):
        try:
            c.run(number, lines[number])
        except Exception as e:  # listed, and looked at one by one
            traceback.print_exc()
            c.unexplained.append(("", "", "failed: %r" % e, lines[number], ""))
        with open(out + ".part", "w") as f:
            json.dump(c.result(os.path.basename(folder.removesuffix("/")), done), f)
        os.replace(out + ".part", out)


GROUPS = (
    (r"(format|by acceptance mode alone).*", r"\1"),
    (r"format, by acceptance.*", "format"),
    (r"\b(exclusiveM|m)(inimum|aximum)\b.*", "bounds of numbers"),
    (r"\b(min|max)Length\b.*", "length"),
    (r"\b(min|max)Items\b.*", "length of arrays"),
    (r"\(Invalid control character at\)", "(control characters)"),
    (r"refused: \[.*", "an error of the engine"),
    (r"refused: Unimplemented keys.*", "keywords that it does not know"),
    (r"no end found", "a dead end: from there it writes no text"),
)


def table(files):
    """One table: for each tokenizer and engine the number of differences by class."""
    columns = {}
    for name in files:
        said = json.load(open(name))
        for peer, count in said["count"].items():
            column = columns.setdefault((peer, said["tokenizer"].removesuffix(".gguf")), collections.Counter())
            for n, value in count.items():
                for pattern, group in GROUPS:
                    n = re.sub(pattern, group, n)
                column[n] += value
    names = sorted({n for c in columns.values() for n in c}, key=lambda n: ("\t" in n, "texts" in n, n))
    print("| | %s |\n|---|%s" % (" | ".join("%s, %s" % c for c in sorted(columns)), "---:|" * len(columns)))
    for n in names:
        print("| %s | %s |" % (n.replace("\t", ": "), " | ".join("{:,}".format(columns[c][n]) for c in sorted(columns))))


if __name__ == "__main__":
    table(sys.argv[2:]) if sys.argv[1] == "table" else compare(*sys.argv[1:])
