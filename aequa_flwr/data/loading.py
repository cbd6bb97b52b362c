"""Load a data set by name and folder: from the cache, or decoded and added to the cache."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aequa_flwr.data.cache import FORMAT, Bundle, Cache, Codec, cache_folder
from aequa_flwr.data.examples import DataError, Dataset, Examples, no_examples
from aequa_flwr.data.fingerprint import Label, content_key, state_of
from aequa_flwr.data.saying import Say, counting, quiet
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.schema_file import SCHEMA_FILE, load_schema
from aequa_flwr.data.sources import SOURCES, USER_FILES, Files, MissingError, Source, check_examples
from aequa_flwr.data.spec import DataSpec


@dataclass(frozen=True)
class Loaded:
    """A data set, the key of its content, and the cache it came from."""

    dataset: Dataset
    key: str
    cache: Cache


def load_dataset(spec: DataSpec, say: Say = quiet) -> Dataset:
    """Return ``spec.dataset``, loaded from the folder or user's file ``spec.data_dir``.

    Digits needs no files. The arrays are mapped from the cache, copy-on-write. They are in memory
    only if the cache cannot be written. ``say`` receives a sentence now and then while a data set
    is prepared. Raises DataError, which says which file is missing or wrong and what to do.
    """
    return load(spec, say).dataset


def site_data(
    dataset: str, folder: str, *, cache_dir: str, max_length: int, say: Say = quiet
) -> Loaded:
    """Load the data of a deployed participant, whose folder holds the federation's schema.json.

    Only the training part is needed; a missing test part is empty.
    """
    if dataset not in USER_FILES:
        raise DataError(
            f"A participant's data set cannot be {dataset}; use one of {', '.join(USER_FILES)}."
        )
    path = Path(folder).expanduser()
    root = path.parent if path.is_file() else path
    # The source itself reports a missing folder.
    if root.is_dir() and not (root / SCHEMA_FILE).is_file():
        raise DataError(
            f"{root} has no {SCHEMA_FILE}; copy the federation's there, so that all sites agree on "
            "the classes and the form of the examples."
        )
    cache = Cache(cache_folder(cache_dir))
    found = _load(SOURCES[dataset], path, False, max_length, cache, say)
    if not len(found.dataset.train):
        raise DataError(f"{path} holds no training part; a participant needs one.")
    return found


def schema_alone(spec: DataSpec) -> Dataset | None:
    """Return an empty data set if the folder holds a schema.json and no examples, else None.

    That is enough for the server of a deployed federation that measures nothing itself.
    """
    path = Path(spec.data_dir).expanduser()
    schema_file = path / SCHEMA_FILE
    if spec.dataset not in USER_FILES or not schema_file.is_file() or _is_in(spec.dataset, path):
        return None
    schema = load_schema(schema_file)
    nothing = no_examples(schema)
    return Dataset(spec.dataset, nothing, nothing, schema)


def found_in(folder: str) -> list[str]:
    """Return the names of the data sets in a folder, judged by file names alone.

    Digits is not among them, because it needs no files.
    """
    path = Path(folder).expanduser()
    return [name for name in SOURCES if name != "digits" and _is_in(name, path)]


def _is_in(name: str, folder: Path) -> bool:
    try:
        SOURCES[name].find(folder)
    except (DataError, OSError):
        return False
    return True


def load(spec: DataSpec, say: Say) -> Loaded:
    """Load a data set as ``load_dataset`` does; return it with its key and cache."""
    folder = Path(spec.data_dir).expanduser()
    cache = Cache(cache_folder(spec.cache_dir))
    return _load(SOURCES[spec.dataset], folder, spec.download, spec.max_length, cache, say)


def _load(
    source: Source, folder: Path, download: bool, max_length: int, cache: Cache, say: Say
) -> Loaded:
    files = _find(source, folder, download, cache, say)
    length = max_length if source.sees_length else 0
    label: Label = (FORMAT, source.name, source.version, length)
    key = content_key(label, files, cache.folder / "keys", counting(say, f"Checking {source.name}"))
    dataset = cache.fetch(
        f"{source.name}-{key[:32]}",
        _CODEC,
        lambda: _prepare(source, files, max_length, say),
        say,
    )
    return Loaded(dataset, key, cache)


def _find(source: Source, folder: Path, download: bool, cache: Cache, say: Say) -> Files:
    try:
        return source.find(folder)
    except MissingError:
        if not download or source.download is None:
            raise
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}.") from error
    with cache.lock(f"{source.name}-download", say):
        try:
            # Another process may have downloaded it in the meantime.
            return source.find(folder)
        except MissingError:
            say(f"Downloading {source.name}")
            source.download(folder)
    return source.find(folder)


def _prepare(source: Source, files: Files, max_length: int, say: Say) -> Dataset:
    say(f"Preparing {source.name}")
    before = state_of(files)
    try:
        dataset = source.decode(files, max_length, counting(say, f"Preparing {source.name}"))
    except OSError as error:
        raise DataError(f"{files.root} cannot be read: {error}.") from error
    if state_of(files) != before:
        raise DataError(
            f"The files in {files.root} changed while they were read; start again when they are "
            "complete."
        )
    for part, what in ((dataset.train, "training"), (dataset.test, "test")):
        check_examples(part, dataset.schema, f"The {what} part in {files.root}")
        if not len(part) and source.name not in USER_FILES:
            raise DataError(f"The {what} part in {files.root} is empty; replace its files.")
    return dataset


def _encode(dataset: Dataset) -> Bundle:
    arrays: dict[str, Any] = {}
    for name, part in (("train", dataset.train), ("test", dataset.test)):
        arrays |= {f"{name}.x": part.x, f"{name}.y": part.y}
        if part.groups is not None:
            arrays[f"{name}.groups"] = part.groups
    return Bundle(arrays, {"name": dataset.name, "schema": dataset.schema.to_json()})


def _decode(bundle: Bundle) -> Dataset:
    def part(name: str) -> Examples:
        found = bundle.arrays
        return Examples(found[f"{name}.x"], found[f"{name}.y"], found.get(f"{name}.groups"))

    schema = Schema.from_json(bundle.meta["schema"])
    dataset = Dataset(bundle.meta["name"], part("train"), part("test"), schema)
    try:
        for examples in (dataset.train, dataset.test):
            check_examples(examples, schema, "The cache")
    except DataError as error:
        raise ValueError(str(error)) from error
    return dataset


_CODEC = Codec(_encode, _decode)
