"""Files that are whole or not there, and which names they may have."""

import os
import re
from pathlib import Path

SAFE_CHARACTERS = "letters, digits, dots, hyphens and underscores"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_safe_name(name: str) -> bool:
    """Return whether ``name``, which another machine sent, stays in its folder.

    On every file system and in every shell.
    """
    return bool(_SAFE_NAME.fullmatch(name)) and ".." not in name


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` to ``path``: after a crash there is the old file or the new one, no half.

    The file and its name are on the disk when this returns.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not a name that nobody knows
        raise
    finally:
        temporary.unlink(missing_ok=True)  # only there if writing failed, on a full disk say


def _sync_folder(folder: Path) -> None:
    """Bring a folder's list of names to the disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
