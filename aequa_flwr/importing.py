"""What a user brings along, found by ``package.module:name``."""

import importlib
import os
import sys

from aequa_flwr.config import IMPORT_PATH


class CannotImportError(Exception):
    """Nothing could be imported; its text is the reason, for a sentence."""


def import_named(name: str) -> object:
    """Return what ``package.module:name`` names; raises CannotImportError.

    It may be installed, or lie in the folder where `aequa` was started.
    """
    module, _, attribute = name.partition(":")
    folder = os.environ.get(IMPORT_PATH, "")
    if folder and folder not in sys.path:
        sys.path.append(folder)  # last, so that nothing there hides an installed package
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    # An import runs the user's code: anything can come out of it, sys.exit() too.
    except (Exception, SystemExit) as error:
        raise CannotImportError(in_short(error)) from error
    return found


def in_short(error: BaseException) -> str:
    """Return what a user's code raised, short enough for a sentence."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
