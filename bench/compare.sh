#!/usr/bin/env bash
# Speed beside llama.cpp on the same files, in one session, in turn (A B A B …).
#
#   bench/compare.sh [MODEL.gguf …]      without MODEL: the 1.1 B shape in q4_k, q8_0 and f16
#
# PAIRS=5     undisturbed pairs for each test
# THREADS=n   compute threads of both (default: all cores)
# SHAPE, TYPES: tinyllama-1.1b, "q4_k q8_0 f16"
# TESTS       "tg64 pp512"; also tg64x8 (sequences), pp512@d8192, tg64@d8192 (depth)
# FLAGS       further flags of the program bench/compare
# CACHE, PEER: see common.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_ours
find_peer
cat "$peer/VERSION" 2>/dev/null || true
models=("$@")
if [ ${#models[@]} -eq 0 ]; then
    for type in ${TYPES:-q4_k q8_0 f16}; do
        models+=("$(make_model "${SHAPE:-tinyllama-1.1b}" "$type")")
    done
fi
# shellcheck disable=SC2086
"$bin/compare" -ours "$bin/spillway" -peer "$peer/bin" -pairs "${PAIRS:-5}" \
    -threads "${THREADS:-$(getconf _NPROCESSORS_ONLN)}" -tests "${TESTS:-tg64 pp512}" ${FLAGS:-} "${models[@]}"
