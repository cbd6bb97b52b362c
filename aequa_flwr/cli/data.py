"""`aequa data`: prepare and describe a data set, and write the schema that sites share."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aequa_flwr.data import Dataset, Schema, cache_folder, load_dataset, save_schema
from aequa_flwr.deployment import ProgressView
from aequa_flwr.errors import UserError
from aequa_flwr.settings import DATASETS, RunConfig

# More classes than this are summed up in one row.
_MOST_CLASSES = 20


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Decode a data set into the cache that all runs use, and describe it. With --schema, also "
        "write what all sites of a federation must agree on: classes, form of the examples, "
        "normalisation, vocabulary."
    )
    add = parser.add_argument
    add("--dataset", required=True, help=f"one of {', '.join(DATASETS)}")
    add("--data-dir", default="", help="folder that holds the data set, or your own file")
    add("--cache-dir", default="", help="folder of prepared data sets")
    add("--download", action="store_true", help="download the data set if missing")
    add("--max-length", default="60", help="longest text in words (default 60)")
    add("--schema", type=Path, help="new file to write the schema to")
    parser.set_defaults(command=data_command)


def data_command(options: argparse.Namespace, console: Console) -> int:
    """Prepare and describe the data set; return the exit code."""
    if options.schema is not None and options.schema.exists():
        raise UserError(f"{options.schema} exists already; choose another file for --schema.")
    spec = RunConfig.parse(
        {
            "dataset": options.dataset,
            "data-dir": options.data_dir,
            "cache-dir": options.cache_dir,
            "download": options.download,
            "max-length": options.max_length,
        }
    ).data_spec
    with ProgressView(console) as view:
        view.say("Checking the data")
        dataset = load_dataset(spec, view.say)
    console.print(_class_table(dataset))
    for line in _facts(dataset):
        _print(console, line)
    if isinstance(dataset.train.x, np.memmap) or isinstance(dataset.test.x, np.memmap):
        _print(console, f"The prepared data is in {cache_folder(spec.cache_dir)}.")
    if options.schema is not None:
        save_schema(options.schema, dataset.schema)
        _print(console, f"The schema is in {options.schema}.")
    return 0


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _class_table(dataset: Dataset) -> Table:
    classes = dataset.schema.classes
    counts = [np.bincount(part.y, minlength=len(classes)) for part in (dataset.train, dataset.test)]
    table = Table()
    table.add_column("Class")
    table.add_column("Training", justify="right")
    table.add_column("Test", justify="right")
    for name, *numbers in zip(classes[:_MOST_CLASSES], *counts, strict=False):
        # Names are text, not rich markup.
        table.add_row(Text(name), *(f"{number:,}" for number in numbers))
    if len(classes) > _MOST_CLASSES:
        rest = (f"{int(count[_MOST_CLASSES:].sum()):,}" for count in counts)
        table.add_row(f"{len(classes) - _MOST_CLASSES} more", *rest)
    table.add_section()
    table.add_row(f"{len(classes)} classes", f"{len(dataset.train):,}", f"{len(dataset.test):,}")
    return table


def _facts(dataset: Dataset) -> Iterator[str]:
    schema = dataset.schema
    if schema.kind == "tokens":
        yield (
            f"Texts have up to {schema.shape[0]} words; the vocabulary has "
            f"{len(schema.vocabulary):,} words."
        )
    else:
        yield f"Examples are {schema.kind} of shape {schema.shape}{_normalisation(schema)}."
    if dataset.train.groups is not None:
        groups = len(np.unique(dataset.train.groups))
        yield f"The training examples come from {groups:,} groups; see --partition natural."
    counts = np.bincount(dataset.train.y, minlength=schema.num_classes)
    empty = [name for name, count in zip(schema.classes, counts, strict=True) if not count]
    if empty and len(dataset.train):
        names = ", ".join(repr(name) for name in empty[:5]) + (", ..." if len(empty) > 5 else "")
        yield f"Note: {len(empty)} class(es) have no training example: {names}."


def _normalisation(schema: Schema) -> str:
    if not schema.mean or len(schema.mean) > 3:
        return ""
    mean, std = (", ".join(f"{v:.4f}" for v in values) for values in (schema.mean, schema.std))
    return f", mean {mean}, standard deviation {std}"
