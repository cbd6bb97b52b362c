#!/bin/sh
# Starts the SuperExec, which runs the ServerApp. aequa-superexec.service runs this script.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
@ENVIRONMENT@
needs flower-superexec
needs aequa
# Flower would not say which file is wrong.
aequa federation check "$here" --starting --connect

# server.pem must be valid for this address. The secret keeps others that can reach the port from
# running the ServerApp.
exec flower-superexec \
    --runtime-api-address @LOCAL_ADDRESS@ \
    --root-certificates "$here/ca.crt" \
    --superexec-auth-secret-file "$here/superexec.secret"
