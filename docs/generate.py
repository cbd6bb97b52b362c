"""Write the reference pages from the code: docs/configuration.md and docs/commands.md.

    python docs/generate.py

A test compares the pages with what this would write.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from aequa_flwr.cli.commands import make_parser
from aequa_flwr.settings.config import RunConfig

DOCS = Path(__file__).parent
_LIMITS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
_SETTINGS = """# Settings

All settings of a run. In a shell, use `aequa run --set KEY=VALUE`; the most used ones have their own option (`aequa run --help`). In
Python, they are keywords of `simulate` and `AequaStrategy`, in snake case. With plain Flower, use `flwr run --run-config`.
`auto` depends on the data set and the method; the record has the value that was used. Written by `python docs/generate.py`.
"""  # noqa: E501 - a line of the page


def configuration() -> str:
    """Return the page of all settings."""
    lines = [_SETTINGS, "| key | kind | default | meaning | more |", "|---|---|---|---|---|"]
    for name, field in RunConfig.model_fields.items():
        value = "auto" if field.is_required() else field.default
        text = str(value).lower() if isinstance(value, bool) else f"{value}"
        default = f"`{text}`" if text else ""
        words = (field.description or "").replace("|", "\\|")
        page = field.json_schema_extra["page"]  # type: ignore[index]  # a dict, of our own
        more = f"[{page.partition('.')[0]}]({page})"
        key = name.replace("_", "-")
        lines.append(f"| `{key}` | {_kind(field)} | {default} | {words} | {more} |")
    return "\n".join([*lines, ""])


def _kind(field: Any) -> str:
    choices = [str(choice) for choice in get_args(field.annotation) if isinstance(choice, str)]
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    limits = [
        f"{words} {getattr(limit, attribute):,}".removesuffix(".0")
        for limit in field.metadata
        for attribute, words in _LIMITS
        if hasattr(limit, attribute)
    ]
    kind = {"int": "whole number", "float": "number", "bool": "true or false", "str": "text"}
    name = getattr(field.annotation, "__name__", "text")
    return ", ".join([kind.get(name, "text"), *limits])


def commands() -> str:
    """Return the page of all commands."""
    # Help is wrapped to the terminal; a page has one width, and no colours.
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    text = ["# Commands", "", "As `--help` prints them. Written by `python docs/generate.py`.", ""]
    for name, parser in _all(make_parser()):
        text += [f"## {name}", "", "```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(text)


def _all(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _all(below)


PAGES = {"configuration.md": configuration, "commands.md": commands}


def main() -> None:
    """Write them."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{', '.join(PAGES)} written.\n")


if __name__ == "__main__":
    main()
