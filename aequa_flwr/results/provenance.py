"""The software of a run: the versions of its packages, and a digest of this project's code."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

from aequa_flwr import __version__

# Another release of one of these may round differently.
_PACKAGES = ("flwr", "numpy", "torch")


def versions() -> dict[str, str]:
    """Return the version of each package by name.

    "code" tells apart states of this project that have the same version. A sum in another order
    rounds differently, and training amplifies rounding differences.
    """
    return {
        "aequa-flwr": __version__,
        "code": code_digest(Path(__file__).parents[1]),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def code_digest(folder: Path) -> str:
    """Return a digest of 12 characters of the Python files below ``folder`` and nothing else.

    It is the same in a checkout and in Flower's bundle, which omits other files.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]
