"""`aequa networks`: the available networks, and what each costs at several widths."""

import argparse
import math

from rich.console import Console
from rich.table import Table

from aequa_flwr.data import Schema
from aequa_flwr.errors import UsageError

_WIDTHS = (0.25, 0.5, 0.75, 1.0)
# The length of a text for which costs are counted.
_WORDS_PER_TEXT = 20


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "List the networks with their parameters, multiply-adds per example and file size at "
        "four widths, on the data that the paper uses them for. With NAME, list only that one; "
        "a user-defined network (package.module:function) is tested first."
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a network, or package.module:function"
    )
    parser.add_argument(
        "--shape", help="shape of an example, e.g. 3,32,32 for images or 13 for a table"
    )
    parser.add_argument("--classes", type=int, help="number of classes (default 10)")
    parser.add_argument("--words", type=int, help="size of the vocabulary, for text")
    parser.set_defaults(command=networks_command)


def networks_command(options: argparse.Namespace, console: Console) -> int:
    """Print the table; return the exit code."""
    from aequa_flwr.slim.networks import BUILDERS, HOMES, build_network, cost_at

    asked = _asked_schema(options)
    names = [options.name] if options.name else list(BUILDERS)
    table = Table(box=None, pad_edge=False)
    for heading in ("Network", "From and to"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Width", "Parameters", "Multiply-adds", "File"):
        table.add_column(heading, justify="right")
    for name in names:
        schema = asked or HOMES.get(name, HOMES["cnn"])
        network = build_network(name, schema)
        head = (name, f"{_describe(schema)} to {schema.num_classes}")
        for width in _WIDTHS:
            cost = cost_at(network, schema, width)
            numbers = (f"{cost.parameters:,}", f"{cost.multiply_adds:,}", _size(cost.file_bytes))
            table.add_row(*head, f"{width:.2f}", *numbers)
            head = ("", "")
    console.print(table)
    return 0


def _asked_schema(options: argparse.Namespace) -> Schema | None:
    if options.shape is None and options.classes is None and options.words is None:
        return None
    num_classes = 10 if options.classes is None else options.classes
    if num_classes < 2:
        raise UsageError(f"--classes {num_classes} is not possible; use at least 2.")
    if options.words is not None:
        if options.shape is not None:
            raise UsageError("--shape and --words cannot be given together; --words is for text.")
        if options.words < 1:
            raise UsageError(f"--words {options.words} is not possible; use at least 1.")
        return Schema.texts(_WORDS_PER_TEXT, options.words, num_classes)
    try:
        shape = tuple(int(part) for part in (options.shape or "1,28,28").split(","))
    except ValueError:
        shape = ()
    # A shape that needs gigabytes for one example is a typo.
    if not shape or min(shape) < 1 or math.prod(shape) > 10**8:
        raise UsageError(f"--shape {options.shape} cannot be read; write 3,32,32 or 13.")
    return Schema.numbered("images" if len(shape) == 3 else "numbers", shape, num_classes)


def _describe(schema: Schema) -> str:
    if schema.kind == "tokens":
        return f"{schema.shape[0]} words"
    return "x".join(str(side) for side in schema.shape)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
