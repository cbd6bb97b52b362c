"""The only source of randomness: every draw names what it is for."""

import hashlib
import json

import numpy as np


def rng_for(seed: int, *scope: str | int) -> np.random.Generator:
    """Return the random generator for one purpose, e.g. ``rng_for(seed, "local", 3, name)``.

    Equal arguments give equal streams on every machine and in every process. Any other seed or
    scope gives an independent stream. So no draw depends on how many draws something else made
    before it, nor on where a participant is placed.
    """
    # JSON keeps the scope ("a", "bc") apart from ("ab", "c"), and 1 apart from "1".
    digest = hashlib.sha256(json.dumps([seed, *scope]).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype="<u4").astype(np.uint32))
