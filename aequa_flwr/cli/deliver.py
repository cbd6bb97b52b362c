"""`aequa deliver`: send the rewards of a finished run to sites that were offline at its end."""

import argparse
from pathlib import Path

from rich.console import Console

from aequa_flwr.deployment import ProgressView, follow_connected
from aequa_flwr.errors import UserError
from aequa_flwr.results import REWARDS_FOLDER, ROSTER_FILE, load_record
from aequa_flwr.settings import RunConfig


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Send the rewards that are still in the folder of a deployed run to the nodes of their "
        "participants. A reward is removed here once its node has stored it. Run this on the "
        "server's machine."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run folder")
    parser.add_argument(
        "--connection", required=True, help="name of the SuperLink in Flower's configuration"
    )
    parser.add_argument("--wait", default="120", help="seconds to wait for nodes (default 120)")
    parser.set_defaults(command=deliver_command)


def deliver_command(options: argparse.Namespace, console: Console) -> int:
    """Deliver the remaining rewards; return the exit code."""
    run = options.run.expanduser().absolute()
    record = load_record(run)
    if not (run / ROSTER_FILE).exists():
        raise UserError(f"{run} is a simulation; its rewards are in {run / REWARDS_FOLDER}.")
    waiting = _waiting(run)
    if not waiting:
        raise UserError(f"All rewards of {run} have been delivered.")
    config = RunConfig.parse(
        # The server needs no data for this, but the settings must name some.
        {**record.config, "data-dir": str(run), "deliver": str(run), "join-timeout-s": options.wait}
    )
    with ProgressView(console) as view:
        status, log = follow_connected(config, options.connection, run, view)
    left = _waiting(run)
    for name in waiting:
        how = "is still here" if name in left else "was delivered"
        console.print(f"The reward of {name} {how}.", highlight=False, markup=False)
    if left:
        raise UserError(
            f"{len(left)} of {len(waiting)} rewards could not be delivered (the run ended as "
            f"{status}); Flower's log is {log}."
        )
    return 0


def _waiting(run: Path) -> list[str]:
    return sorted(path.name for path in (run / REWARDS_FOLDER).glob("*") if path.is_dir())
