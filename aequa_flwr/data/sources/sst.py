"""SST-5: sentences of film reviews, labelled from very negative to very positive."""

import re
from pathlib import Path

from aequa_flwr.data.examples import DataError, Dataset
from aequa_flwr.data.saying import Count
from aequa_flwr.data.sources.source import Files, MissingError, Source, check_folder
from aequa_flwr.data.sources.text import (
    Text,
    check_words,
    encode,
    read_lines,
    read_tsv,
    text_schema,
)

_CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
_LABELS = tuple(str(number) for number in range(len(_CLASSES)))
# The trees first: the lines made of them lack the words with a non-breaking space inside
# ("8 1/2", in three training sentences).
_FORMS = (("trees/train.txt", "trees/test.txt"), ("sst5_train.tsv", "sst5_test.tsv"))
_ROOT = re.compile(r"\((\d+) .*\)\Z")
_LEAF = re.compile(r"\(\d+ ([^()]+)\)")


def _find(data_dir: Path) -> Files:
    check_folder(data_dir, "create it and put sst/trees/train.txt and test.txt there")
    for names in _FORMS:
        for root in (data_dir / "sst", data_dir):
            paths = [root / name for name in names]
            if all(path.is_file() for path in paths):
                return Files.below(root, paths)
    raise MissingError(
        f"SST cannot be read from {data_dir / 'sst'}: put trees/train.txt and trees/test.txt "
        "there, or sst5_train.tsv and sst5_test.tsv."
    )


def _decode(files: Files, max_length: int, count: Count) -> Dataset:
    """Return whole sentences only; the dev part is not used, as nothing is tuned on it."""
    train, test = (
        _read(path) for path in sorted(files.paths, key=lambda path: "test" in path.name)
    )
    count(1, 2)
    schema = text_schema(train, _CLASSES, max_length)
    numbers = {label: number for number, label in enumerate(_LABELS)}
    return Dataset("sst", encode(train, schema, numbers), encode(test, schema, numbers), schema)


def _read(path: Path) -> list[Text]:
    if path.suffix == ".tsv":
        texts = read_tsv(path)
    else:
        texts = [_parse(where, line.strip()) for where, line in read_lines(path)]
    for text in texts:
        if text.label not in _LABELS:
            raise DataError(
                f"{text.where} has the label {text.label!r}; allowed labels are 0 to 4."
            )
    return texts


def _parse(where: str, line: str) -> Text:
    """Read ``(3 (2 The) (3 Rock))``: the sentence's label is the root's, its words the leaves."""
    root = _ROOT.match(line)
    if root is None or line.count("(") != line.count(")"):
        raise DataError(
            f"{where} is not a bracketed tree; replace the file, which is truncated or not SST."
        )
    return Text(root[1], check_words(" ".join(_LEAF.findall(line)), where), where)


SST = Source("sst", _find, _decode, sees_length=True, version=2)
