"""User arrays: train.npz and test.npz, or one .npz file, with ``x``, ``y`` and maybe ``groups``."""

from pathlib import Path

from aequa_flwr.data.arrays import describe, examples_of, split_off_test
from aequa_flwr.data.examples import DataError, Dataset, Examples, no_examples
from aequa_flwr.data.saying import Count
from aequa_flwr.data.sources.npz import read_npz
from aequa_flwr.data.sources.source import Files, Source, check_examples
from aequa_flwr.data.sources.user_files import find_parts, parts_of, schema_of


def _find(path: Path) -> Files:
    return find_parts(path, ".npz")


def _decode(files: Files, _max_length: int, count: Count) -> Dataset:
    parts = parts_of(files, ".npz")
    train = None if parts.train is None else _read(parts.train)
    count(1, len(files.paths))
    test = None if parts.test is None else _read(parts.test)
    schema = schema_of(files, ["images", "numbers"])
    if schema is None and train is not None and test is None:
        rows, held = split_off_test("arrays", train.y, parts.train)
        train, test = train.take(rows), train.take(held)
    if schema is None:
        schema = describe([part for part in (train, test) if part is not None], files.root)
    found = []
    for part, path in ((train, parts.train), (test, parts.test or parts.train)):
        filled = no_examples(schema) if part is None else part
        check_examples(filled, schema, str(path))
        found.append(filled)
    return Dataset("arrays", found[0], found[1], schema)


def _read(path: Path) -> Examples:
    arrays = read_npz(path, ("x", "y", "groups"))
    for key in ("x", "y"):
        if key not in arrays:
            raise DataError(f"{path} has no array {key}; save it with x and y.")
    return examples_of(arrays["x"], arrays["y"], arrays.get("groups"), path)


ARRAYS = Source("arrays", _find, _decode)
