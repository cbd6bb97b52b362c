"""`aequa report`: show the result of a run, or write it to a file in one of several formats."""

import argparse
import webbrowser
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from aequa_flwr.cli.show import show_record
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.files import SAFE_CHARACTERS, is_safe_name, write_whole
from aequa_flwr.report import (
    render_csv,
    render_json,
    render_markdown,
    render_page,
    render_personal_page,
    render_picture,
)
from aequa_flwr.results import RunRecord, load_record

_FORMATS: dict[str, Callable[[RunRecord], str | bytes]] = {
    "html": render_page,
    "md": render_markdown,
    "json": render_json,
    "csv": render_csv,
    "png": render_picture,
}


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Show the result of a run, or write it to a file with --format. Only record.json is "
        "needed, so this also works for runs of older versions."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run folder")
    parser.add_argument(
        "--format",
        choices=tuple(_FORMATS),
        help="html: the whole page; md: a summary with tables; json: measures and participants; "
        "csv: the participants; png: rewards against contributions",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="where to write it (default: report.FORMAT in the run folder; - prints it)",
    )
    parser.add_argument(
        "--open", action="store_true", help="write the HTML page and open it in the browser"
    )
    parser.add_argument(
        "--personal",
        type=Path,
        metavar="DIR",
        help="write a page for each participant to DIR that reveals nothing about the others; "
        "existing pages are never overwritten",
    )
    parser.set_defaults(command=report_command)


def report_command(options: argparse.Namespace, console: Console) -> int:
    """Print or write the result; return the exit code."""
    _check_options(options)
    record = load_record(options.run)
    folder = options.run if options.run.is_dir() else options.run.parent
    if options.personal is not None:
        if options.personal.is_file():
            raise UserError(f"--personal {options.personal} is a file; give a folder.")
        number = write_personal_pages(record, options.personal)
        _say(console, f"Wrote {number:,} pages to {options.personal}, one for each participant.")
    if options.format is not None or options.open:
        _write(record, folder, options, console)
    elif options.personal is None:
        show_record(console, record, folder)
    return 0


def _check_options(options: argparse.Namespace) -> None:
    if options.open and options.format not in (None, "html"):
        raise UsageError("--open shows the HTML page; leave --format out, or use --format html.")
    if options.open and options.output == "-":
        raise UsageError("--open needs a file; give --output a file instead of -.")
    if options.output is not None and options.format is None and not options.open:
        raise UsageError(f"--output needs a --format: one of {', '.join(_FORMATS)}.")
    if options.output == "-" and options.format == "png":
        raise UsageError("A PNG cannot be printed; give --output a file.")


def _write(record: RunRecord, folder: Path, options: argparse.Namespace, console: Console) -> None:
    form = options.format or "html"
    content = _FORMATS[form](record)
    if options.output == "-":
        print(content if isinstance(content, str) else "", end="")
        return
    path = Path(options.output) if options.output else folder / f"report.{form}"
    # A name may hold a lone surrogate, which UTF-8 cannot encode.
    write_whole(path, content.encode("utf-8", "replace") if isinstance(content, str) else content)
    _say(console, f"{path}")
    if options.open and not webbrowser.open(path.absolute().as_uri()):
        raise UserError(f"No browser was found; open {path} yourself.")


def _say(console: Console, text: str) -> None:
    # soft_wrap: a path must stay in one piece to be copied.
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def write_personal_pages(record: RunRecord, folder: Path) -> int:
    """Write a page <participant>.html for each participant to ``folder``; return their number.

    Raises UserError, and writes nothing, if a name is not safe as a file name or a file exists.
    """
    paths: dict[str, Path] = {}
    for name in (p.name for p in record.participants):
        if not is_safe_name(name):
            raise UserError(f"The name {name!r} cannot be a file name; use {SAFE_CHARACTERS}.")
        # Some file systems do not distinguish A from a.
        if name.casefold() in paths:
            raise UserError(f"Two participants would have the file name {name}; rename one.")
        paths[name.casefold()] = folder / f"{name}.html"
    if not paths:
        raise UserError("No participant joined this run, so there is no page to write.")
    if there := next((path for path in paths.values() if path.exists()), None):
        raise UserError(f"{there} exists already; choose another folder, or remove it first.")
    folder.mkdir(parents=True, exist_ok=True)
    for line, path in zip(record.participants, paths.values(), strict=True):
        write_whole(path, render_personal_page(record, line.name))
    return len(paths)
