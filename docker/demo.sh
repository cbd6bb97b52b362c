#!/bin/sh
# Runs ten rounds on the running federation, with the digits of the three hospitals.
set -eu
export FLWR_HOME=/srv/aequa/operator/operator
exec aequa run --connection aequa --dataset arrays --data-dir /srv/aequa/data --network small-cnn \
    --participants 3 --rounds 10 --set learning-rate=0.05 --set join-timeout-s=60 \
    --output "/srv/aequa/runs/demo-$(date -u +%Y%m%d-%H%M%S)" "$@"
