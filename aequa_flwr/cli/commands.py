"""Parse, run one command, turn every error into a sentence and an exit code."""

import argparse
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

import aequa_flwr
from aequa_flwr.cli.data import add_data
from aequa_flwr.cli.deliver import add_deliver
from aequa_flwr.cli.deploy import add_federation
from aequa_flwr.cli.doctor import add_doctor
from aequa_flwr.cli.federation import STOP_SIGNALS
from aequa_flwr.cli.networks import add_networks
from aequa_flwr.cli.paper import add_paper
from aequa_flwr.cli.run import add_run
from aequa_flwr.cli.show import show_record
from aequa_flwr.errors import UserError
from aequa_flwr.record import load_record
from aequa_flwr.slim.networks.own import IMPORT_PATH


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 well, 1 failed, 2 misused, 130 interrupted)."""
    # A user's own network lies where the command was started; the run's processes inherit this.
    os.environ.setdefault(IMPORT_PATH, str(Path.cwd()))
    # Every way to be stopped leaves as little behind as Ctrl-C.
    for stop in STOP_SIGNALS:
        signal.signal(stop, _interrupt)
    options = _parser().parse_args(arguments)
    console = Console()
    try:
        return int(options.command(options, console))
    except UserError as error:
        if options.debug:
            raise
        _complain(str(error))
        return error.exit_code
    except OSError as error:  # a full disk, a folder that vanished
        if options.debug:
            raise
        _complain(f"{error.filename or 'The system'}: {error.strerror or error}.")
        return 1
    except KeyboardInterrupt:
        _complain("Interrupted before anything was started.")
        return 130


def _complain(text: str) -> None:
    Console(stderr=True).print(f"aequa: {text}", highlight=False, markup=False, soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aequa", description="Fair rewards in federated learning, on Flower."
    )
    parser.add_argument("--version", action="version", version=aequa_flwr.__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_run(commands)
    report = commands.add_parser("report", help="show the result of a run")
    report.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    report.set_defaults(command=_report)
    add_paper(commands)
    add_deliver(commands)
    add_data(commands)
    add_networks(commands)
    add_federation(commands)
    add_doctor(commands)
    return parser


def _report(options: argparse.Namespace, console: Console) -> int:
    record = load_record(options.run)
    show_record(console, record, options.run if options.run.is_dir() else options.run.parent)
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
