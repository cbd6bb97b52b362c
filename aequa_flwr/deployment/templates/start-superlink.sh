#!/bin/sh
# Starts the SuperLink, to which sites and the operator connect. aequa-superlink.service runs this.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
@ENVIRONMENT@
needs flower-superlink
needs aequa
# Flower would not say which file is wrong.
aequa federation check "$here" --starting

# The database holds the registered keys and all pending messages. With it, a restart continues
# where it stopped; without it, every site must be registered again.
# With --isolation process, the run is not a child of this process and survives its restart.
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
