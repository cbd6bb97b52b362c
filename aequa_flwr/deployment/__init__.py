"""What the operator of a real federation needs: certificates, keys, commands; and judging them."""

from aequa_flwr.deployment.folder import add_sites, init_federation, renew_certificate
from aequa_flwr.deployment.inspection import DueSoon, connection_check, file_checks
from aequa_flwr.deployment.plan import Plan, parse_hosts, parse_sites

__all__ = [
    "DueSoon",
    "Plan",
    "add_sites",
    "connection_check",
    "file_checks",
    "init_federation",
    "parse_hosts",
    "parse_sites",
    "renew_certificate",
]
