#!/bin/sh
# Starts the SuperNode of @SITE@. aequa-supernode.service runs this script.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
@ENVIRONMENT@
needs flower-supernode
needs aequa
# Flower would not say which file is wrong.
aequa federation check "$here" --starting --connect

# This site's data, the folder for its rewards, and the local port between the SuperNode and its
# training process.
data=${AEQUA_DATA:-/srv/aequa/data}
rewards=${AEQUA_REWARDS:-$state/rewards}
port=${AEQUA_PORT:-9094}
if [ ! -e "$data" ]; then
    echo "$0: $data does not exist; set AEQUA_DATA to the folder of this site's data." >&2
    exit 1
fi

exec flower-supernode \
    --superlink @ADDRESS@ \
    --root-certificates "$here/ca.crt" \
    --auth-supernode-private-key "$here/@SITE@.key" \
    --host 127.0.0.1 --port "$port" \
    --node-config "participant=\"@SITE@\" data=\"$data\" rewards=\"$rewards\""
