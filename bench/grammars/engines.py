"""Three engines with the same questions: which tokens may come, which bytes of a text, how a text may end."""

import base64
import json
import random
import subprocess
import sys
import types

import numpy as np

BYTES = [bytes([i]) for i in range(256)] + [b"<end>"]
END = 256
# What brings JSON to its end, in the order of preference.
CLOSING = b"}]\"0123456789aeltrufsn:,-."


def without_torch():
    """xgrammar imports torch and transformers for what is not used here: stand-ins where they are not installed."""
    class Anything(types.ModuleType):
        __path__ = []

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    for name in ("torch", "torch.utils", "torch.utils.cpp_extension", "transformers"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = Anything(name)
    torch = sys.modules["torch"]
    if isinstance(torch, Anything):
        torch.cuda = types.SimpleNamespace(is_available=lambda: False)
        torch.version = types.SimpleNamespace(cuda=None, hip=None)
        torch.tensor = lambda *a, **k: None
        torch.compile = lambda *a, **k: (lambda f: f)
        torch.int32 = "int32"


without_torch()
import llguidance  # noqa: E402
import xgrammar  # noqa: E402


class Refused(Exception):
    """A schema that an engine does not take."""


class Ours:
    name = "ours"

    def __init__(self, command, folder, end):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = self.ask(Op="load", Dir=folder, End=end)
        self.tokens = [base64.b64decode(t) if t else b"" for t in said["Tokens"]]
        self.end = said["End"]
        self.known = {}

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        if said.get("Error"):
            raise Refused(said["Error"])
        return said

    def compile(self, schema):
        """The schema whose masks are compared."""
        self.known = {schema: 0}
        self.ask(Op="compile", Slot=0, Schema=schema)
        return self

    def slot(self, schema):
        if schema not in self.known:
            self.ask(Op="compile", Slot=1, Schema=schema)
            self.known = {s: n for s, n in self.known.items() if n == 0}
            self.known[schema] = 1
        return self.known[schema]

    def begin(self):
        self.ask(Op="begin")

    def mask(self):
        raw = np.frombuffer(base64.b64decode(self.ask(Op="mask")["Mask"]), np.uint8)
        return np.unpackbits(raw, bitorder="little")[: len(self.tokens)].astype(bool)

    def accept(self, token):
        self.ask(Op="accept", ID=int(token))

    def refused(self, tokens):
        return self.ask(Op="refused", IDs=[int(t) for t in tokens])["At"]

    def text(self, schema, text):
        """The first byte that is refused (the length where all may come), and whether the text may end there."""
        said = self.ask(Op="text", Slot=self.slot(schema), Text=base64.b64encode(text).decode())
        return said["At"][0], said["Ends"]

    def finish(self, schema, text, seed, soft):
        said = self.ask(Op="write", Slot=self.slot(schema), Text=base64.b64encode(text).decode(), Seed=seed, Soft=soft)
        return base64.b64decode(said["Text"]) if said["Ends"] else None

    def check(self, schema, text):
        """Why the text is not valid, by acceptance mode."""
        slot = self.slot(schema)
        try:
            self.ask(Op="check", Slot=slot, Text=base64.b64encode(text).decode())
        except Refused as e:
            return str(e)


class Peer:
    """An engine in this process. Of texts it is asked through a vocabulary of single bytes."""

    def __init__(self, tokens, end):
        self.tokens, self.end = tokens, end
        self.whole, self.single = self.vocabulary(tokens, end), self.vocabulary(BYTES, END)
        self.grammars = {}

    def compile(self, schema):
        self.grammars = {}
        self.main = self.grammar(schema, self.whole)
        self.of(schema)

    def of(self, schema):
        if schema not in self.grammars:
            try:
                self.grammars[schema] = self.grammar(schema, self.single)
            except Refused as e:
                self.grammars[schema] = e
        if isinstance(self.grammars[schema], Refused):
            raise self.grammars[schema]
        return self.grammars[schema]

    def begin(self):
        self.matcher = self.start(self.main)

    def mask(self):
        return self.mask_of(self.matcher, self.whole, len(self.tokens))

    def accept(self, token):
        if not self.step(self.matcher, int(token)):
            raise Refused("token %d of its own mask" % token)

    def text(self, schema, text):
        m = self.start(self.of(schema))
        for i, b in enumerate(text):
            if not self.step(m, b):
                return i, False
        return len(text), self.ends(m)

    def finish(self, schema, text, seed, soft):
        m, out, r = self.start(self.of(schema)), bytearray(text), random.Random(seed)
        for b in text:
            if not self.step(m, b):
                return None
        while len(out) < len(text) + 4000:
            following = np.flatnonzero(self.mask_of(m, self.single, 257)[:256]) if not self.stopped(m) else []
            soon = len(out) >= soft
            if (len(following) == 0 or soon or r.random() < 0.25) and self.ends(m):
                return bytes(out)
            if len(following) == 0:
                return None
            b = choose(r, set(int(x) for x in following), soon)
            if not self.step(m, b):
                return None
            out.append(b)
        return None

    def refused(self, schema, before, texts):
        """For each text: the byte of it that may not come after before."""
        m = self.start(self.of(schema))
        for b in before:
            if not self.step(m, b):
                return None
        found, open_, dead = {}, b"", None
        for text in sorted(set(texts)):
            if dead is not None and text.startswith(dead):
                found[text] = len(dead) - 1
                continue
            n = 0
            while n < min(len(open_), len(text)) and open_[n] == text[n]:
                n += 1
            if len(open_) > n:
                self.back(m, len(open_) - n)
            open_, dead = text[:n], None
            for b in text[n:]:
                if not self.step(m, b):
                    dead = open_ + bytes([b])
                    break
                open_ += bytes([b])
            found[text] = len(open_) if dead is None else len(dead) - 1
        return found


def choose(r, following, soon):
    if soon and r.random() < 0.95:
        for b in CLOSING if r.random() < 0.5 else b'"' + CLOSING:
            if b in following:
                return b
    plain = [b for b in following if 32 <= b < 127 and b != 92]
    return r.choice(plain if plain and r.random() < 0.94 else sorted(following))


class Words:
    """A vocabulary as llguidance takes it."""
    bos_token_id = None

    def __init__(self, tokens, end):
        self.eos_token_id = end
        self.special_token_ids = [i for i, t in enumerate(tokens) if not t or i == end]
        self.tokens = [t or b"<%d>" % i for i, t in enumerate(tokens)]
        self.ids = {t: i for i, t in enumerate(tokens) if len(t) == 1}

    def __call__(self, text):
        if isinstance(text, str):
            text = text.encode()
        return [self.ids.get(bytes([b]), 0) for b in text]


class LLGuidance(Peer):
    name = "llguidance"
    version = getattr(llguidance, "__version__", "")
    settings = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}

    def vocabulary(self, tokens, end):
        from llguidance import TokenizerWrapper
        return llguidance.LLTokenizer(TokenizerWrapper(Words(tokens, end)))

    def grammar(self, schema, vocabulary):
        try:
            g = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=self.settings)
        except ValueError as e:
            raise Refused(str(e))
        m = llguidance.LLMatcher(vocabulary, g, log_level=0)
        if m.is_error():
            raise Refused(m.get_error())
        return m

    def start(self, grammar):
        return grammar.deep_copy()

    def fill(self):
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros((self.whole.vocab_size + 31) // 32, np.int32)
        self.matcher.unsafe_compute_mask_ptr(self.buffer.ctypes.data, self.buffer.nbytes)

    def mask_of(self, m, vocabulary, n):
        buffer = np.zeros((vocabulary.vocab_size + 31) // 32, np.int32)
        m.unsafe_compute_mask_ptr(buffer.ctypes.data, buffer.nbytes)
        return np.unpackbits(buffer.view(np.uint8), bitorder="little")[:n].astype(bool)

    def step(self, m, token):
        return m.try_consume_tokens([token]) == 1

    def back(self, m, n):
        m.rollback(n)

    def ends(self, m):
        return m.is_accepting()

    def stopped(self, m):
        return m.is_stopped()


class XGrammar(Peer):
    name = "xgrammar"
    version = getattr(xgrammar, "__version__", "")

    def vocabulary(self, tokens, end):
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[end])
        return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=True)

    def grammar(self, schema, vocabulary):
        try:
            return vocabulary.compile_json_schema(schema, any_whitespace=False, separators=(",", ":"), strict_mode=False)
        except RuntimeError as e:
            raise Refused(str(e))

    def start(self, grammar):
        return xgrammar.GrammarMatcher(grammar)

    def fill(self):
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros((1, (len(self.tokens) + 31) // 32), np.int32)
        self.matcher.fill_next_token_bitmask(self.buffer)

    def mask_of(self, m, vocabulary, n):
        buffer = np.zeros((1, (n + 31) // 32), np.int32)
        if not m.fill_next_token_bitmask(buffer):
            return np.ones(n, bool)
        return np.unpackbits(buffer.view(np.uint8).ravel(), bitorder="little")[:n].astype(bool)

    def step(self, m, token):
        return not m.is_terminated() and m.accept_token(token)

    def back(self, m, n):
        m.rollback(n)

    def ends(self, m):
        return m.is_completed()

    def stopped(self, m):
        return m.is_terminated()
