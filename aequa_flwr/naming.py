"""Which names may become file names: they come from other machines."""

import re

SAFE_CHARACTERS = "letters, digits, dots, hyphens and underscores"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_safe_name(name: str) -> bool:
    """Return whether ``name`` stays in its folder, on every file system and in every shell."""
    return bool(_SAFE_NAME.fullmatch(name)) and ".." not in name
