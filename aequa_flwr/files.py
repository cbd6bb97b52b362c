"""Files that are whole or absent after a crash, and names that are safe as file names."""

import os
import re
import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp

SAFE_CHARACTERS = "letters, digits, dots, hyphens and underscores"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_safe_name(name: str) -> bool:
    """Return whether ``name`` is safe as a file name on every file system and in every shell.

    Names come from other machines. A safe one cannot point out of its folder.
    """
    return bool(_SAFE_NAME.fullmatch(name)) and ".." not in name


class TemporaryFolder:
    """A new folder that is removed with this object, at the latest when the process ends.

    Unlike tempfile's, it is removed without a warning: its owner may simply be garbage-collected.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` to ``path``; a crash leaves either the old file or the new one.

    When this returns, the file and its name are on the disk.
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
        error.filename, error.filename2 = str(path), None  # not the temporary name
        raise
    finally:
        temporary.unlink(missing_ok=True)  # exists only if writing failed, e.g. on a full disk


def _sync_folder(folder: Path) -> None:
    """Flush a folder's list of names to the disk, if the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
