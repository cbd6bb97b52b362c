"""Flower's processes and real machines: SuperLinks, following a run, certificates and checks."""

from aequa_flwr.deployment.folder import add_sites, init_federation, renew_certificate
from aequa_flwr.deployment.following import (
    COMPLETED,
    InterruptedRunError,
    View,
    check_end,
    follow_connected,
    how_to_resume,
    watch,
)
from aequa_flwr.deployment.inspection import DueSoon, connection_check, file_checks
from aequa_flwr.deployment.plan import Plan, parse_hosts, parse_sites
from aequa_flwr.deployment.processes import (
    Size,
    check_commands,
    choose_port,
    local_federation,
    stop_carriers,
    undisturbed,
)
from aequa_flwr.deployment.view import (
    Bars,
    ProgressView,
    describe_progress,
    duration,
    progress_line,
)

__all__ = [
    "COMPLETED",
    "Bars",
    "DueSoon",
    "InterruptedRunError",
    "Plan",
    "ProgressView",
    "Size",
    "View",
    "add_sites",
    "check_commands",
    "check_end",
    "choose_port",
    "connection_check",
    "describe_progress",
    "duration",
    "file_checks",
    "follow_connected",
    "how_to_resume",
    "init_federation",
    "local_federation",
    "parse_hosts",
    "parse_sites",
    "progress_line",
    "renew_certificate",
    "stop_carriers",
    "undisturbed",
    "watch",
]
