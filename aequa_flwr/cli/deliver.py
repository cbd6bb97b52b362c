"""`aequa deliver`: rewards of a finished run go to those who were away when it ended."""

import argparse
from pathlib import Path

from rich.console import Console

from aequa_flwr.deployment import ProgressView, follow_connected
from aequa_flwr.errors import UserError
from aequa_flwr.results import REWARDS_FOLDER, ROSTER_FILE, load_record
from aequa_flwr.settings import RunConfig


def describe(parser: argparse.ArgumentParser) -> None:
    """Say what the command does, and its options."""
    parser.description = (
        "Send every reward that still lies in the folder of a run on a real federation to its "
        "participant's own node, and to no other, and remove it here once it is stored there. "
        "Run it on the server's machine."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument(
        "--connection", required=True, help="name of the SuperLink in Flower's configuration"
    )
    parser.add_argument("--wait", default="120", help="seconds to wait for nodes (default 120)")
    parser.set_defaults(command=deliver_command)


def deliver_command(options: argparse.Namespace, console: Console) -> int:
    """Deliver what is left; returns the exit code."""
    run = options.run.expanduser().absolute()
    record = load_record(run)
    if not (run / ROSTER_FILE).exists():
        raise UserError(f"{run} is a simulation's; its rewards are in {run / REWARDS_FOLDER}.")
    waiting = _waiting(run)
    if not waiting:
        raise UserError(f"No reward of {run} is left to deliver.")
    config = RunConfig.parse(
        # The server needs none of its data for this, and a config has to name some.
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
