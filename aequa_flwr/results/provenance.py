"""What a run is made with: the versions of packages, and which state of this project's code."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

from aequa_flwr import __version__

# Another release of one of these may round in another way.
_PACKAGES = ("flwr", "numpy", "torch")


def versions() -> dict[str, str]:
    """Return the version of each package by its name.

    "code" tells states of this project apart that have the same version: a sum in another order
    rounds differently, and training makes much of that.
    """
    return {
        "aequa-flwr": __version__,
        "code": code_digest(Path(__file__).parents[1]),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def code_digest(folder: Path) -> str:
    """Return 12 characters that depend on the Python files below ``folder`` and on nothing else.

    The same in a checkout and in Flower's bundle, which leaves other files out.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]
