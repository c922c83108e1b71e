#!/usr/bin/env bash
# Writes the measured parts of docs/kernels.md: the speed of every format's product under each instruction set that this
# machine has, beside its limits, and what the integer path costs in accuracy beside llama.cpp. For a machine that has
# nothing else to do; both parts take about five minutes.
#
#   bench/kernels.sh [speed] [accuracy]     without an argument: the list of formats and both
#
# ROUNDS=3, EACH=60ms     how often everything runs, and how long each benchmark; the best counts
# MODEL=file              SmolLM2-135M as GGUF (default: where the tests look for it)
# TYPES="q4_0,q8_0"       formats of the accuracy part (default: all that can be written)
# DOC=file                another page than docs/kernels.md
# CACHE, PEER             see common.sh; the accuracy part wants PEER/bin/llama-logits, and without it leaves llama.cpp's
#                         column empty
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

DOC=${DOC:-$repo/docs/kernels.md}
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(formats speed accuracy)
args=(-doc "$DOC" -rounds "${ROUNDS:-3}" -each "${EACH:-60ms}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$repo"
CGO_ENABLED=0 go build -o "$bin/" ./bench/kernels
for part in "${parts[@]}"; do
    case $part in
    formats)
        go test ./internal/kernel -run '^TestKernelsDoc$' -docs >&2
        ;;
    speed)
        go test -c -o "$work/kernel.test" ./internal/kernel
        args+=(-bench "$work/kernel.test")
        ;;
    accuracy)
        model=${MODEL:-$CACHE/smollm2-135m-instruct-q4_1/SmolLM2-135M-Instruct.Q4_1.gguf}
        [ -f "$model" ] || { say "SmolLM2-135M is not there: set MODEL"; exit 1; }
        CGO_ENABLED=0 go build -o "$bin/" ./cmd/spillway ./bench/accuracy
        logits=${PEER:-$CACHE/peer}/bin/llama-logits
        flags="-ours"$'\n'"$bin/spillway"$'\n'"-dir"$'\n'"$work"
        if [ -x "$logits" ]; then
            flags+=$'\n'"-peer"$'\n'"$logits"
            args+=(-peer-version "$(head -n 1 "${PEER:-$CACHE/peer}/VERSION" 2>/dev/null || echo llama.cpp)")
        fi
        [ -z "${TYPES:-}" ] || flags+=$'\n'"-types"$'\n'"$TYPES"
        args+=(-accuracy "$bin/accuracy" -accuracy-flags "$flags"$'\n'"$model")
        ;;
    *)
        say "no part is called $part; there are formats, speed and accuracy"
        exit 2
        ;;
    esac
done
if [[ " ${parts[*]} " == *" speed "* || " ${parts[*]} " == *" accuracy "* ]]; then
    "$bin/kernels" "${args[@]}"
fi
