"""The half of tokenize.sh that runs the Rust library, and the table of both."""

import glob
import gzip
import os
import re
import statistics
import sys
import time


def cut(path, size, out):
    """Writes the first whole lines of at most size bytes."""
    data = open(path, "rb").read()[:size]
    data = data.decode("utf-8", "ignore").replace("\r\n", "\n")
    open(out, "w", newline="").write(data[: data.rindex("\n") + 1])


def speed(call, size, seconds):
    """MB/s of calls in a row, after one that is not counted."""
    call()
    count, start = 0, time.perf_counter()
    while True:
        call()
        count += 1
        spent = time.perf_counter() - start
        if spent >= seconds:
            return size * count / spent / 1e6


def run(folder, texts, seconds):
    from tokenizers import Tokenizer

    path = os.path.join(folder, "tokenizer.json")
    data = open(path, "rb").read() if os.path.exists(path) else gzip.open(path + ".gz").read()
    tokenizer = Tokenizer.from_buffer(data)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for file in sorted(glob.glob(os.path.join(texts, "*.txt"))):
        text = open(file, newline="", encoding="utf-8").read()
        size = len(text.encode())
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        # encode_batch_fast leaves out the offsets of the tokens, which we do not make either.
        encode = max(
            speed(lambda: tokenizer.encode(text, add_special_tokens=False), size, seconds / 2),
            speed(lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False), size, seconds / 2),
        )
        decode = speed(lambda: tokenizer.decode(ids), size, seconds)
        name = os.path.basename(folder), os.path.basename(file)[: -len(".txt")]
        print(*name, "encode", encode)
        print(*name, "decode", decode, flush=True)


def table(ours, theirs):
    mine, other = {}, {}
    for line in open(ours):
        found = re.match(r"BenchmarkTokenize/(\S+?)/(\S+?)/(\w+?)(?:-\d+)?\s.*?([\d.]+) MB/s", line)
        if found:
            mine.setdefault(found.groups()[:3], []).append(float(found.group(4)))
    for line in open(theirs):
        *key, value = line.split()
        other.setdefault(tuple(key), []).append(float(value))
    print("| tokenizer | text | what | ours MB/s | theirs MB/s | ratio: median | least | most |")
    print("|---|---|---|---|---|---|---|---|")
    for key, values in other.items():
        pairs = mine.get(key, [])
        if not pairs:
            print("| %s | %s | %s | not supported |" % key)
            continue
        ratios = [a / b for a, b in zip(pairs, values)]
        print("| %s | %s | %s | %.1f | %.1f | %.2f | %.2f | %.2f |" % (
            *key, statistics.median(pairs), statistics.median(values), statistics.median(ratios), min(ratios), max(ratios)))


def main():
    what, *arguments = sys.argv[1:]
    if what == "cut":
        cut(arguments[0], int(arguments[1]), arguments[2])
    elif what == "run":
        unit = {"ms": 1e-3, "s": 1}
        number, name = re.fullmatch(r"([\d.]+)(ms|s)", arguments[2]).groups()
        run(arguments[0], arguments[1], float(number) * unit[name])
    else:
        table(*arguments)


main()
