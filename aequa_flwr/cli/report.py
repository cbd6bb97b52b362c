"""`aequa report`: the result of a run again, from its folder."""

import argparse
from pathlib import Path

from rich.console import Console

from aequa_flwr.cli.show import show_record
from aequa_flwr.record import load_record


def describe(parser: argparse.ArgumentParser) -> None:
    """Say what the command does, and its options."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.set_defaults(command=report_command)


def report_command(options: argparse.Namespace, console: Console) -> int:
    """Print the result; returns the exit code."""
    record = load_record(options.run)
    show_record(console, record, options.run if options.run.is_dir() else options.run.parent)
    return 0
