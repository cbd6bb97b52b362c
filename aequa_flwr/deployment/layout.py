"""The contents of the files in a federation's folder, as pure functions of its plan."""

import json
import re
import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from aequa_flwr.deployment.plan import Plan, split_address

CONNECTION = "aequa"
_PLACE = re.compile(r"@([A-Z_]+)@")


def server_files(plan: Plan) -> dict[str, str]:
    """Return the texts of the files in server/ by name, without certificates and secrets."""
    values = _values(plan)
    names = (
        "start-superlink.sh",
        "start-superexec.sh",
        "aequa-superlink.service",
        "aequa-superexec.service",
    )
    return {name: _filled(name, values) for name in names}


def site_files(plan: Plan, site: str) -> dict[str, str]:
    """Return the texts of the files in sites/``site``/ by name, without certificate and keys."""
    values = _values(plan) | {"SITE": site}
    return {
        "start-supernode.sh": _filled("start-supernode.sh", values),
        "aequa-supernode.service": _filled("aequa-supernode.service", values),
        "README.md": _filled("site-README.md", values),
    }


def operator_files(plan: Plan, folder: Path) -> dict[str, str]:
    """Return the texts of README.md and of operator/ by name, for a federation in ``folder``."""
    values = _values(plan) | {
        # A JSON string is a TOML string.
        "ROOT_CERTIFICATES": json.dumps(str(folder / "ca" / "ca.crt"), ensure_ascii=False),
        "FOLDER": shlex.quote(str(folder)),
        "OPERATOR": shlex.quote(str(folder / "operator")),
    }
    return {
        "README.md": _filled("README.md", values),
        "operator/config.toml": _filled("config.toml", values),
        "operator/register-sites.sh": _filled("register-sites.sh", values),
    }


def address_in(script: str, option: str) -> tuple[str, int]:
    """Return the (host, port) of ``option`` in a start script; raises ValueError if not found."""
    found = re.search(rf"^\s*{option}[ =](\S+)", script, re.MULTILINE)
    if found is None:
        raise ValueError(f"there is no {option}")
    return split_address(found[1])


def _values(plan: Plan) -> dict[str, str]:
    return {
        "ADDRESS": plan.address,
        "LOCAL_ADDRESS": plan.local_address,
        "LISTENS_ON": plan.listens_on,
        "HOST": plan.hosts[0],
        "PORT": str(plan.port),
        "CONNECTION": CONNECTION,
        "ENVIRONMENT": _template("environment.sh").rstrip(),
    }


def _filled(name: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1]], _template(name))


def _template(name: str) -> str:
    return (files("aequa_flwr.deployment") / "templates" / name).read_text(encoding="utf-8")
