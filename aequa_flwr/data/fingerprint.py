"""Content keys: what the files of a data set hold, wherever its folder is."""

import contextlib
import hashlib
import json
import time
import uuid
from pathlib import Path

from aequa_flwr.data.examples import DataError
from aequa_flwr.data.saying import Count
from aequa_flwr.data.sources.source import Files

Label = tuple[str | int, ...]
# A file written within the last tick of the clock may be written again without a change of its time
# (FAT counts in 2 s). So its time is not noted yet.
_TICK_NS = 2_000_000_000


def state_of(files: Files) -> str:
    """Return a digest of every file's name, size and times; cheap, as no content is read."""
    digest = hashlib.sha256()
    for name, path in files.by_name().items():
        try:
            status = path.stat()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        line = [name, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        digest.update(json.dumps(line).encode())
    return digest.hexdigest()


def content_key(label: Label, files: Files, notes: Path, count: Count) -> str:
    """Return the SHA-256 of ``label`` and of the names and contents of ``files``.

    ``notes`` is a folder where the key is noted together with the state of the files, so that the
    next start need not read them. If it cannot be written, every start reads them.
    """
    state = state_of(files)
    where = json.dumps([*label, str(files.root.resolve()), *files.by_name()])
    note = notes / f"{hashlib.sha256(where.encode()).hexdigest()[:32]}.json"
    noted = _read_note(note, state)
    if noted:
        return noted
    key = _digest(label, files, count)
    if state_of(files) == state and _settled(files):
        _write_note(note, state, key)
    return key


def _digest(label: Label, files: Files, count: Count) -> str:
    digest = hashlib.sha256(json.dumps(label).encode())
    named = files.by_name()
    for done, (name, path) in enumerate(named.items()):
        count(done, len(named))
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        digest.update(json.dumps([name, content]).encode())
    return digest.hexdigest()


def _settled(files: Files) -> bool:
    newest = max((path.stat().st_mtime_ns for path in files.paths), default=0)
    return newest < time.time_ns() - _TICK_NS


def _read_note(note: Path, state: str) -> str:
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        return str(content["key"]) if content["state"] == state else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _write_note(note: Path, state: str, key: str) -> None:
    partial = note.with_name(f".{note.name}.{uuid.uuid4().hex}")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"state": state, "key": key}), encoding="utf-8")
        partial.replace(note)
    except OSError:
        # The next start reads the files again; the cache itself warns about its folder.
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
