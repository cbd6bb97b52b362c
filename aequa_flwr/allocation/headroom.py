"""Whether the levels go low enough for everybody to gain the same (paper, section 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Headroom:
    """How accurate the least accurate level is, and how accurate it may be at most.

    Above ``needed``, the smallest contributor gains more than the largest one whatever it is given,
    and no allocation makes all gains equal.
    """

    lowest: float
    needed: float

    @property
    def is_enough(self) -> bool:
        """Whether all gains can be equal."""
        return self.lowest <= self.needed


def headroom(contributions: Sequence[float], levels: Sequence[float]) -> Headroom | None:
    """Return the paper's assumption ``l <= c_1 + (u - c_N)`` in numbers; None if nobody can gain.

    l and u are the least and the most accurate of ``levels``, c_1 and c_N the smallest and the
    largest of ``contributions``, in the same unit. A contribution above u, which no level can
    reward, does not count, as it does not in ``allocate``.
    """
    highest = max(levels, default=float("-inf"))
    within = [contribution for contribution in contributions if contribution <= highest]
    if not within:
        return None
    return Headroom(min(levels), min(within) + highest - max(within))
