#!/bin/sh
# The SuperLink: what the sites and the operator connect to. aequa-superlink.service runs this too.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
@ENVIRONMENT@
needs flower-superlink
needs aequa
# Flower would not say which file is to blame.
aequa federation check "$here" --starting

# Which keys are registered, and every message under way, are in the database: with it a restart
# goes on where it stopped, without it every site has to be registered again.
# With --isolation process the run is not a child of this process, and survives its restart.
exec flower-superlink \
    --host @LISTENS_ON@ --port @PORT@ \
    --ssl-ca-certfile "$here/ca.crt" \
    --ssl-certfile "$here/server.pem" \
    --ssl-keyfile "$here/server.key" \
    --enable-supernode-auth \
    --isolation process \
    --superexec-auth-secret-file "$here/superexec.secret" \
    --database "$state/superlink.db" \
    --disable-runtime-dependency-installation
