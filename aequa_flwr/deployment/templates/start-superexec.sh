#!/bin/sh
# The SuperExec: starts the server's part of each run. aequa-superexec.service runs this too.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
@ENVIRONMENT@
needs flower-superexec
needs aequa
# Flower would not say which file is to blame.
aequa federation check "$here" --starting --connect

# The address must be one that server.pem is for. The secret keeps others, who reach the same port,
# from taking the server's part of a run.
exec flower-superexec \
    --runtime-api-address @LOCAL_ADDRESS@ \
    --root-certificates "$here/ca.crt" \
    --superexec-auth-secret-file "$here/superexec.secret"
