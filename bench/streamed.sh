#!/usr/bin/env bash
# A model of 2.2 GB in 1 GiB: spillway under the cap, llama.cpp (mmap) in a memory group of the same
# size, and the drive's bandwidth measured beside both by a reader of its own. Needs Linux and the
# right to make a memory group.
#
#   bench/streamed.sh [MODEL.gguf]       without MODEL: the 1.1 B shape in f16
#
# MEMORY=1024   the cap in MiB
# ROUNDS=3      how often both run
# N=16, THREADS: generated tokens, compute threads
# PEER=none     ours alone; CACHE, PEER: see common.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_ours
llama=
if [ "${PEER:-}" != none ]; then
    find_peer
    llama=$peer/bin/llama-bench
fi
model=${1:-$(make_model tinyllama-1.1b f16)}
printf 'load average: %s\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
"$bin/streamed" -ours "$bin/spillway" -peer "$llama" -model "$model" -memory "${MEMORY:-1024}" \
    -n "${N:-16}" -rounds "${ROUNDS:-3}" -threads "${THREADS:-$(getconf _NPROCESSORS_ONLN)}"
