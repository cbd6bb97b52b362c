"""User texts: train.tsv and test.tsv, or one .tsv file, with ``label TAB text`` in each line."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aequa_flwr.data.arrays import check_classes, split_off_test
from aequa_flwr.data.examples import DataError, Dataset, Examples
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import UNKNOWN, Schema
from aequa_flwr.data.schema_file import check_vocabulary
from aequa_flwr.data.sources.source import Files, Source
from aequa_flwr.data.sources.user_files import (
    class_numbers,
    find_parts,
    no_labels,
    parts_of,
    schema_of,
)
from aequa_flwr.data.vocabulary import encode_words, make_vocabulary, word_ids, words


@dataclass(frozen=True)
class Text:
    """One example: its class by name, its words, and its file and line."""

    label: str
    words: list[str]
    where: str


def read_lines(path: Path) -> list[tuple[str, str]]:
    """Return (file and line, content) of every line that is not blank."""
    content = path.read_bytes()
    try:
        # "sig": some editors put a byte order mark in front, which would end up in the first label.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line} is not UTF-8; save the file as UTF-8.") from error
    # Not str.splitlines, which also cuts at U+2028 and the like in the middle of a text.
    lines = enumerate(io.StringIO(text, newline=None), 1)
    found = [(f"{path}, line {k}", line.rstrip("\n")) for k, line in lines if line.strip(" \n")]
    if not found:
        raise DataError(f"{path} is empty; write a label, a TAB and a text on each line.")
    return found


def read_tsv(path: Path) -> list[Text]:
    """Read lines of ``label TAB text``. Raises DataError, which names the first bad line."""
    return [_parse(where, line) for where, line in read_lines(path)]


def _parse(where: str, line: str) -> Text:
    label, tab, text = line.partition("\t")
    if not tab or not label.strip():
        lacks = "label" if tab else "TAB"
        raise DataError(f"{where} has no {lacks}; write a label, a TAB and a text.")
    return Text(label.strip(), check_words(text, where), where)


def check_words(text: str, where: str) -> list[str]:
    """Return the words of ``text``. Raises DataError if there are none."""
    found = words(text)
    if not found:
        raise DataError(f"{where} has a text without a word; write one or remove the line.")
    return found


def text_schema(train: Sequence[Text], classes: tuple[str, ...], max_length: int) -> Schema:
    """Return the schema of a whole data set; its vocabulary is that of the training part."""
    length = min(max_length, max(len(text.words) for text in train))
    vocabulary = make_vocabulary(text.words for text in train)
    check_vocabulary(vocabulary, train[0].where.rpartition(",")[0])
    return Schema("tokens", (length,), classes, vocabulary=vocabulary)


def encode(texts: Sequence[Text], schema: Schema, numbers: Mapping[str, int]) -> Examples:
    """Return the texts as token ids. Raises DataError if no word at all is in the vocabulary."""
    if not texts:
        return Examples(np.empty((0, *schema.shape), dtype=np.int32), no_labels())
    ids = word_ids(schema.vocabulary)
    x = encode_words([text.words for text in texts], ids, schema.shape[0])
    if x.max() <= UNKNOWN:
        raise DataError(
            f"{texts[0].where.rpartition(',')[0]} has no word of the vocabulary in any text; check "
            "its language, and that it belongs to this federation."
        )
    return Examples(x, np.array([numbers[text.label] for text in texts], dtype=np.int64))


def _find(path: Path) -> Files:
    return find_parts(path, ".tsv")


def _decode(files: Files, max_length: int, count: Count) -> Dataset:
    parts = parts_of(files, ".tsv")
    train = [] if parts.train is None else read_tsv(parts.train)
    count(1, len(files.paths))
    test = [] if parts.test is None else read_tsv(parts.test)
    schema = schema_of(files, ["tokens"])
    if schema is None:
        classes = check_classes(sorted({text.label for text in [*train, *test]}), files.root)
        if not test:
            labels = np.array([classes.index(text.label) for text in train])
            rows, held = split_off_test("text", labels, parts.train)
            train, test = [train[k] for k in rows], [train[k] for k in held]
        schema = text_schema(train, classes, max_length)
    numbers = class_numbers(((text.label, text.where) for text in [*train, *test]), schema.classes)
    return Dataset("text", encode(train, schema, numbers), encode(test, schema, numbers), schema)


TEXT = Source("text", _find, _decode, sees_length=True, version=2)
