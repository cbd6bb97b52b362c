#!/bin/sh
# Runs once: writes certificates, keys and demo data, each to the volume of its owner.
set -eu
sites="hospital-a hospital-b hospital-c"
if [ -e /volumes/server/server.pem ]; then
    echo "The federation is already prepared."
    exit 0
fi
aequa federation init /tmp/federation --sites "$(echo $sites | tr ' ' ,)" --host superlink
python /docker/demo_data.py /tmp/data
cp -a /tmp/federation/server/. /volumes/server/
cp -a /tmp/data/server/. /volumes/server-data/
# The operator needs the sites' public keys to register them, and none of their secrets.
mkdir -p /volumes/operator/ca /volumes/operator/operator
cp -a /tmp/federation/ca/ca.crt /volumes/operator/ca/
cp -a /tmp/federation/operator/. /volumes/operator/operator/
sed -i 's#^root-certificates = .*#root-certificates = "/srv/aequa/operator/ca/ca.crt"#' /volumes/operator/operator/config.toml
for site in $sites; do
    mkdir -p "/volumes/operator/sites/$site"
    cp -a "/tmp/federation/sites/$site/$site.pub" "/volumes/operator/sites/$site/"
    cp -a "/tmp/federation/sites/$site/." "/volumes/$site/"
    cp -a "/tmp/data/$site/." "/volumes/$site-data/"
done
# The key of the certificate authority is not needed again; it is removed with this container.
chown -R 10001:10001 /volumes
