#!/bin/sh
# Registers sites with the SuperLink by their public keys: those named as arguments, or all.
# The node id of a site is stored in registered/NAME; a site that has one is skipped.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
export FLWR_HOME="$here" FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
sites=$(dirname -- "$here")/sites
mkdir -p "$here/registered"

register() {
    if [ -e "$here/registered/$1" ]; then
        echo "$1 is already registered as node $(cat "$here/registered/$1")."
        return
    fi
    answer=$(flwr supernode register "$sites/$1/$1.pub" @CONNECTION@ --name "$1" --format json 2>&1) || true
    node=$(printf '%s\n' "$answer" | sed -n 's/.*"node-id": *"\{0,1\}\([0-9][0-9]*\).*/\1/p')
    if [ -z "$node" ]; then
        echo "$1 could not be registered: $answer" >&2
        failed=1
        return
    fi
    echo "$node" > "$here/registered/$1"
    echo "$1 is registered as node $node."
}

failed=0
if [ $# -eq 0 ]; then
    for folder in "$sites"/*/; do
        register "$(basename -- "$folder")"
    done
fi
for name in "$@"; do
    register "$name"
done
exit $failed
