#!/usr/bin/env bash
# Speed of the tokenizers beside the Rust library "tokenizers" (through Python), in turn (A B A B …), on one
# thread: encode and decode of English and code, 4 KB and about 200 KB a call. The texts are made of Go's
# own documentation and source code, which every machine that builds this has.
#
#   bench/tokenize.sh [TOKENIZER …]      folders of ../shared/tokenizers; without: eight kinds
#
# PAIRS=5         pairs of runs
# TIME=100ms      how long one of them measures each text
# PYTHON=python3  an interpreter with the package "tokenizers"
# SPILLWAY_SHARED as for the tests
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(dirname "$here")
shared=${SPILLWAY_SHARED:-$repo/../shared}
python=${PYTHON:-python3}
sets=("$@")
[ ${#sets[@]} -gt 0 ] || sets=(qwen3 llama3 deepseek_v3 gptoss gemma3 llama2 bert_minilm xlmr_unigram)
"$python" -c 'import tokenizers' || { echo "PYTHON has no package tokenizers: pip install tokenizers" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(go env GOROOT)
mkdir "$work/texts"
find "$root" -type f -name '*.md' -not -path '*/testdata/*' | LC_ALL=C sort | tr '\n' '\0' | xargs -0 cat >"$work/english"
cat "$root/src/net/http/server.go" "$root/src/runtime/proc.go" >"$work/code"
for kind in english code; do
    # Whole lines: the first 4 KB, and up to 200 KB.
    for size in 4 200; do
        "$python" "$here/tokenize.py" cut "$work/$kind" "$((size * 1024))" "$work/texts/$kind-${size}k.txt"
    done
done
wc -c "$work"/texts/*.txt | sed '$d' | awk '{ n = $2; sub(/.*\//, "", n); print "text " n ": " $1 " bytes a call" }'

(cd "$repo" && go test -c -o "$work/ours" ./internal/tokenizer)
export SPILLWAY_SHARED=$shared SPILLWAY_BENCH_TEXT=$work/texts TOKENIZERS_PARALLELISM=false
for pair in $(seq "${PAIRS:-5}"); do
    for set in "${sets[@]}"; do
        echo "pair $pair: $set" >&2
        (cd "$repo/internal/tokenizer" && "$work/ours" -test.run '^$' -test.cpu 1 -test.benchtime "${TIME:-100ms}" \
            -test.bench "^BenchmarkTokenize\$/^$set\$") >>"$work/ours.log"
        "$python" "$here/tokenize.py" run "$shared/tokenizers/$set" "$work/texts" "${TIME:-100ms}" >>"$work/theirs.log"
    done
done
"$python" "$here/tokenize.py" table "$work/ours.log" "$work/theirs.log"
