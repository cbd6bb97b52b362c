# Other users of this machine must not read models and messages.
umask 027
# systemd sets this to the folder in which the service may write.
state=${STATE_DIRECTORY:-$here/state}
mkdir -p "$state"
cd "$state"
export FLWR_HOME="${FLWR_HOME:-$state/flwr}"
# No telemetry, no update checks, and nothing is installed when a run starts.
export FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
needs() {
    if ! command -v "$1" >/dev/null; then
        echo "$0: $1 is not on the PATH; activate the environment with aequa-flwr." >&2
        exit 127
    fi
}
