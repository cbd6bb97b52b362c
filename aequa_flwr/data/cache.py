"""Prepared arrays on disk: written once, mapped by every process that needs them.

An entry is a folder of .npy files and a meta.json, named by the content it was made from. It
appears whole or not at all, and never changes. So readers need no lock, and the processes of one
machine share its pages in memory.
"""

import contextlib
import json
import logging
import os
import shutil
import time
import tokenize
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError
from aequa_flwr.data.saying import Say, quiet

if TYPE_CHECKING:
    from filelock import BaseFileLock

T = TypeVar("T")
logger = logging.getLogger(__name__)
# Part of every key: raised with every change of how an entry stores a data set.
FORMAT = 1
_META = "meta.json"
_PARTIAL = ".partial"
# Writing takes seconds once the arrays exist. If a partial entry is older, its process was killed.
_ABANDONED_S = 3600
# Everything that json, numpy (which parses a header as Python) and a codec raise for a damaged
# file.
DAMAGED = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError),
    *(SyntaxError, MemoryError, tokenize.TokenError),
)
_complained: set[Path] = set()


@dataclass(frozen=True)
class Bundle:
    """What an entry holds: arrays by name, and JSON values."""

    arrays: dict[str, npt.NDArray[Any]]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How a value becomes a bundle and back.

    ``decode`` raises ValueError, KeyError or TypeError for a bundle that ``encode`` did not make.
    """

    encode: Callable[[T], Bundle]
    decode: Callable[[Bundle], T]


def cache_folder(cache_dir: str = "") -> Path:
    """Return the folder of prepared data: ``cache_dir``, AEQUA_CACHE_DIR, or the user's cache."""
    asked = cache_dir or os.environ.get("AEQUA_CACHE_DIR", "")
    if asked:
        return Path(asked).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(shared) if shared else Path.home() / ".cache") / "aequa-flwr"
    except RuntimeError as error:
        raise DataError(
            "There is no home directory for prepared data; set AEQUA_CACHE_DIR or --cache-dir."
        ) from error


@dataclass(frozen=True)
class Cache:
    """A folder of entries. If it cannot be written, values stay in memory."""

    folder: Path

    def fetch(self, name: str, codec: Codec[T], make: Callable[[], T], say: Say = quiet) -> T:
        """Return the value of the entry ``name``; ``make`` and save it if there is none.

        If several processes ask at once, only one makes it. A damaged entry is made again. An
        exception of ``make`` passes through and leaves nothing behind.
        """
        entry = self.folder / name
        found = _load(entry, codec)
        if found is not None:
            return found
        with self.lock(name, say):
            # Another process may have made it while this one waited for the lock.
            found = _load(entry, codec)
            if found is not None:
                return found
            made = make()
            try:
                self._remove_abandoned()
                _save(entry, codec.encode(made))
            except OSError as error:
                self._complain(error)
                return made
        loaded = _load(entry, codec)
        return made if loaded is None else loaded

    @contextlib.contextmanager
    def lock(self, name: str, say: Say = quiet) -> Iterator[None]:
        """Keep other processes out while ``name`` is made; a killed process releases the lock."""
        held = self._acquire(name, say)
        try:
            yield
        finally:
            if held is not None:
                held.release()

    def _acquire(self, name: str, say: Say) -> "BaseFileLock | None":
        from filelock import FileLock, Timeout

        folder = self.folder / "locks"
        lock = FileLock(folder / f"{name}.lock")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                say("Waiting for another process that prepares the same data")
                lock.acquire()
        except (OSError, NotImplementedError) as error:  # The latter: a file system without locks.
            self._complain(error)
            return None
        return lock

    def _remove_abandoned(self) -> None:
        for partial in self.folder.glob(f".*{_PARTIAL}"):
            # The process that writes it may rename it at this moment.
            with contextlib.suppress(FileNotFoundError):
                if time.time() - partial.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(partial, ignore_errors=True)

    def _complain(self, error: Exception) -> None:
        # Once for each folder: the run continues, so one warning is enough.
        if self.folder not in _complained:
            _complained.add(self.folder)
            logger.warning(
                "Prepared data cannot be kept in %s (%s), so every process prepares it again and "
                "holds its own copy in memory; set another folder with cache-dir or "
                "AEQUA_CACHE_DIR.",
                self.folder,
                getattr(error, "strerror", None) or error,
            )


def _save(entry: Path, bundle: Bundle) -> None:
    partial = _hidden(entry)
    partial.mkdir()
    try:
        written = {}
        for name, array in bundle.arrays.items():
            path = partial / f"{name}.npy"
            # np.save writes a non-contiguous array in pieces, never as a second copy of all of it.
            np.save(path, array, allow_pickle=False)
            written[name] = {"bytes": path.stat().st_size, "empty": not array.size}
        content = json.dumps({"arrays": written, "meta": bundle.meta})
        (partial / _META).write_text(content, encoding="utf-8")
        _discard(entry)
        partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _load(entry: Path, codec: Codec[T]) -> T | None:
    """Return the entry's value, or None if it is missing or damaged."""
    try:
        content = json.loads((entry / _META).read_text(encoding="utf-8"))
        arrays = {name: _map(entry, name, facts) for name, facts in content["arrays"].items()}
        return codec.decode(Bundle(arrays, content["meta"]))
    except DAMAGED:
        return None


def _map(entry: Path, name: str, facts: dict[str, Any]) -> npt.NDArray[Any]:
    path = entry / f"{name}.npy"
    # A power cut may leave a file that is too short. Reading past the end of a mapped file kills
    # the process, so the size is checked here.
    if path.stat().st_size != facts["bytes"]:
        raise ValueError(f"{path} is not as it was written")
    # Copy-on-write, because PyTorch warns about read-only arrays. Empty arrays cannot be mapped.
    mode: Literal["c"] | None = None if facts["empty"] else "c"
    array: npt.NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    return array


def _discard(entry: Path) -> None:
    """Remove a damaged entry in one step, so that no process sees half of it."""
    if entry.exists():
        away = _hidden(entry)
        entry.rename(away)
        shutil.rmtree(away, ignore_errors=True)


def _hidden(entry: Path) -> Path:
    # Not tempfile.mkdtemp: its folders are closed to other users, who may share the cache.
    return entry.with_name(f".{entry.name}.{uuid.uuid4().hex}{_PARTIAL}")
