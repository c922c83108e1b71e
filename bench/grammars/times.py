"""Times of llguidance (and, with XGRAMMAR=1, of xgrammar, whose compilation takes minutes) for internal/grammar's
TestBesidePeers: compilation, and the masks of an answer of up to 300 tokens. Processor time of one
thread, the mean of the rounds: clocks of processor time are coarse on some machines, sums of many are not.

  python bench/grammars/times.py OURS SCHEMAS TOKENIZER END >peers.json
  SPILLWAY_GRAMMAR_PEERS=$PWD/peers.json go test -run TestBesidePeers -cpu 1 -v ./internal/grammar

SCHEMAS are internal/grammar/schema/testdata/schemas.jsonl, for whose lines answers.jsonl has answers; the other arguments are as of
compare.py. The test has the tokenizer qwen3 of ../shared, whose END is <|im_end|>.
"""

import json
import os
import sys
import time

from engines import LLGuidance, Ours, Refused, XGrammar

TOKENS, ROUNDS = 300, 5


def ids_of(ours, text):
    ids = {t: i for i, t in enumerate(ours.tokens) if t}
    longest, out, at = max(map(len, ids)), [], 0
    while at < len(text):
        n = next(n for n in range(min(longest, len(text) - at), 0, -1) if text[at:at + n] in ids)
        out.append(ids[text[at:at + n]])
        at += n
    return out


def answers(ours, schemas):
    """Schemas with an answer each: of answers.jsonl (words, numbers and dates as people write them), or, with RANDOM=1, random ones."""
    if os.environ.get("RANDOM"):
        for n, schema in enumerate(schemas):
            ours.compile(schema)
            yield schema, ours.finish(schema, b"", n, 400) or b""
        return
    with open(os.path.join(os.path.dirname(__file__), "answers.jsonl")) as f:
        for line in f:
            said = json.loads(line)
            yield schemas[said["schema"]], said["text"].encode()


def measure(peer, schema, ids):
    total = {}
    for _ in range(ROUNDS):
        start = time.thread_time()
        peer.main = peer.grammar(schema, peer.whole)
        compiled = time.thread_time()
        peer.begin()
        masks = accept = 0.0
        for token in ids:
            at = time.thread_time()
            peer.fill()
            masks += time.thread_time() - at
            at = time.thread_time()
            if not peer.step(peer.matcher, token):
                return {"ok": False}
            accept += time.thread_time() - at
        now = {"compile": compiled - start, "mask": masks, "accept": accept}
        total = {k: v / ROUNDS + total.get(k, 0) for k, v in now.items()}
    return {"ok": peer.ends(peer.matcher), **total}


def main(command, schemas, folder, end):
    ours = Ours(command, folder, end)
    peers = {"ll": LLGuidance(ours.tokens, ours.end)}
    if os.environ.get("XGRAMMAR"):
        peers["xg"] = XGrammar(ours.tokens, ours.end)
    out = []
    for schema, text in answers(ours, open(schemas).read().splitlines()):
        case = {"schema": schema, "text": text.decode(), "ids": ids_of(ours, text)[:TOKENS]}
        for name, peer in peers.items():
            try:
                case[name] = measure(peer, schema, case["ids"])
                case[name]["ok"] = case[name]["ok"] or len(case["ids"]) == TOKENS and "mask" in case[name]
            except Refused:
                case[name] = {"ok": False}
        out.append(case)
    json.dump(out, sys.stdout)


main(*sys.argv[1:])
