"""`aequa doctor`: report what is missing or wrong on this machine."""

import argparse
import os
import platform
import shutil
import socket
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from rich.console import Console

from aequa_flwr.cli.checks import print_checks
from aequa_flwr.data import found_in
from aequa_flwr.deployment import check_commands
from aequa_flwr.errors import UserError

_GIB = 2**30
_NEEDS_MEMORY, _NEEDS_DISK = 2 * _GIB, 1 * _GIB


class Problem(UserError):  # noqa: N818 - what a check raises is a finding, not a malfunction
    """Something that must be fixed; the text says how."""


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.add_argument("--data-dir", help="also look for data sets in this folder")
    parser.set_defaults(command=doctor_command)


def doctor_command(options: argparse.Namespace, console: Console) -> int:
    """Print a line for each check; return 1 if anything must be fixed, else 0."""
    checks: list[Callable[[], str]] = [
        _python,
        _flower,
        _commands,
        _torch,
        _processors,
        _memory,
        _disk,
        _loopback,
    ]
    if options.data_dir is not None:
        checks.append(lambda: _data(Path(options.data_dir).expanduser()))
    return print_checks(console, checks)


def _python() -> str:
    # pip refuses older versions, so there is nothing to compare here.
    return f"Python is {platform.python_version()}."


def _flower() -> str:
    try:
        flower, ray = version("flwr"), version("ray")
    except PackageNotFoundError as error:
        raise Problem(f"The package {error.name} is missing; run `pip install .`.") from None
    if not flower.startswith("1.41."):
        raise Problem(f"Flower is {flower}, but this version needs 1.41; run `pip install .`.")
    return f"Flower is {flower}, Ray is {ray}."


def _commands() -> str:
    check_commands()
    return "Flower's commands are installed."


def _torch() -> str:
    try:
        import torch
        import torchvision  # noqa: F401 - a torchvision built for another torch fails right here
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise Problem(
            f"torch and torchvision do not load together ({reason}); reinstall both with "
            "`pip install --force-reinstall torch torchvision`."
        ) from None
    if torch.cuda.is_available():
        names = {torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())}
        return f"torch is {torch.__version__} and trains on CUDA ({', '.join(sorted(names))})."
    where = "MPS" if torch.backends.mps.is_available() else "the CPU, because it finds no GPU"
    return f"torch is {torch.__version__} and trains on {where}."


def _processors() -> str:
    return f"{os.cpu_count()} processor core(s)."


def _memory() -> str:
    available = psutil.virtual_memory().available
    if available < _NEEDS_MEMORY:
        raise Problem(
            f"Only {available / _GIB:.1f} GiB of memory are free, but a run needs about "
            f"{_NEEDS_MEMORY / _GIB:.0f} GiB; close other programs or use --workers 1."
        )
    return f"{available / _GIB:.1f} GiB of memory are free."


def _disk() -> str:
    folder = Path(tempfile.gettempdir())
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Problem(f"{folder} cannot be written ({error.strerror}); set TMPDIR.") from None
    free = shutil.disk_usage(folder).free
    if free < _NEEDS_DISK:
        raise Problem(f"{folder} has only {free / _GIB:.1f} GiB free; free some or set TMPDIR.")
    return f"{folder} can be written and has {free / _GIB:.0f} GiB free."


def _loopback() -> str:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        raise Problem(
            f"No port can be opened on 127.0.0.1 ({error.strerror}); check the firewall."
        ) from None
    return "Ports can be opened on 127.0.0.1."


def _data(folder: Path) -> str:
    if not folder.is_dir():
        raise Problem(f"--data-dir {folder} is not a folder; give the folder with the data sets.")
    found = found_in(str(folder))
    if not found:
        raise Problem(
            f"{folder} has no data set that aequa knows; `aequa run --help` lists them, and "
            "`aequa data --dataset NAME --data-dir DIR` says what is missing."
        )
    return f"{folder} has {', '.join(found)}."
