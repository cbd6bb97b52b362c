"""The protocol of a method."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol


class Method(Protocol):
    """Who receives what each round, and what everybody ends with."""

    def receives(
        self, names: Iterable[str], contributions: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the width that each of ``names`` receives this round."""

    def follow(
        self, before: Mapping[str, float], now: Mapping[str, float], present: Iterable[str]
    ) -> dict[str, float]:
        """Return the contributions after a round in which ``present`` were trained."""

    def ends_with(
        self, contributions: Mapping[str, float], accuracies: Sequence[float] | None
    ) -> dict[str, int]:
        """Return the level of each participant's reward."""
