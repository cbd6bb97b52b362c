"""Parse the command line, run one command, and turn errors into a sentence and an exit code."""

import argparse
import os
import signal
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType

from rich.console import Console

import aequa_flwr
from aequa_flwr.errors import STOP_SIGNALS, UserError
from aequa_flwr.options import IMPORT_PATH

# From a command to the module that describes and runs it, and its line in the list of commands.
# Only the module of the command that runs is imported: torch alone takes seconds.
_COMMANDS = {
    "run": ("run", "simulate a federation on this machine and reward its participants"),
    "watch": ("watch", "follow a run in progress, whoever started it"),
    "report": ("report", "show the result of a run, or write it to a file"),
    "compare": ("compare", "show runs side by side: methods, settings or seeds"),
    "reward": ("reward", "show a reward, or export it to onnx, torchscript or safetensors"),
    "audit": ("audit", "try attacks on a federation and show what cheating gains"),
    "paper": ("paper", "run or resume a grid of experiments"),
    "deliver": ("deliver", "send rewards to sites that were offline when the run ended"),
    "data": ("data", "prepare a data set and describe it"),
    "networks": ("networks", "list the networks, or check your own"),
    "federation": ("deploy", "create and check the files of a federation on real machines"),
    "doctor": ("doctor", "report what is missing or wrong on this machine"),
}


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0 success, 1 failure, 2 usage error, 130 interrupt."""
    # User-defined code is found where the command was started; the run's processes inherit this.
    os.environ.setdefault(IMPORT_PATH, str(Path.cwd()))
    # Handle every stop signal like Ctrl-C, which leaves nothing behind.
    for stop in STOP_SIGNALS:
        signal.signal(stop, _interrupt)
    arguments = sys.argv[1:] if arguments is None else arguments
    # None of the options before the command takes a value.
    wanted = next((argument for argument in arguments if not argument.startswith("-")), "")
    options = make_parser((wanted,)).parse_args(arguments)
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


def make_parser(described: Collection[str] = tuple(_COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of the command line; only ``described`` commands have their options."""
    parser = argparse.ArgumentParser(
        prog="aequa", description="Fair rewards in federated learning, on Flower."
    )
    parser.add_argument("--version", action="version", version=aequa_flwr.__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (module, says) in _COMMANDS.items():
        command = commands.add_parser(name, help=says)
        if name in described:
            import_module(f"aequa_flwr.cli.{module}").describe(command)
    return parser


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
