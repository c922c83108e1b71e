# Shared by the scripts of this folder: where things are, and how they are made. Sourced, not run.
#
# CACHE=dir   models, binaries and the peer (default: SPILLWAY_MODELS, else spillway-models in the
#             user's cache folder, which the tests look into too)
# PEER=dir    a folder in which llama.cpp was built already (with bin/llama-bench)

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${CACHE:-${SPILLWAY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/spillway-models}}
bin=$CACHE/bin
mkdir -p "$bin"

say() { printf '%s\n' "$*" >&2; }

build_ours() {
    (cd "$repo" && CGO_ENABLED=0 go build -o "$bin/" ./cmd/spillway ./bench/compare ./bench/streamed)
}

# Sets peer to the folder with llama-bench, building it where the shared material is.
find_peer() {
    peer=${PEER:-$CACHE/peer}
    [ ! -x "$peer/bin/llama-bench" ] || [ ! -x "$peer/bin/llama-batched-bench" ] || return 0
    local build=${SPILLWAY_SHARED:-$repo/../shared}/peer/build.sh
    if [ ! -f "$build" ]; then
        say "llama.cpp is not there: set PEER to a folder with bin/llama-bench and bin/llama-batched-bench"
        exit 1
    fi
    say "building llama.cpp in $peer (about ten minutes)"
    TARGETS="llama-bench llama-batched-bench" sh "$build" "$peer" >&2
}

# make_model SHAPE TYPE prints the path of a model with random weights, made once.
make_model() {
    local path=$CACHE/$1-$2.gguf
    if [ ! -f "$path" ]; then
        say "making $path"
        "$bin/spillway" synth "$1" --type "$2" --out "$CACHE/part-$1-$2.gguf" >&2
        mv "$CACHE/part-$1-$2.gguf" "$path"
    fi
    printf '%s\n' "$path"
}
