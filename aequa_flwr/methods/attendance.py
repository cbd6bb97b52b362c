"""Who takes part in a round."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aequa_flwr.options import Form, Spec, read_spec
from aequa_flwr.seeding import rng_for

PARTICIPATIONS: Mapping[str, Form] = {
    "all": Form("all"),
    "rates": Form(
        "rates:LOW,HIGH, e.g. rates:0.5,1",
        2,
        lambda low, high: 0 <= low <= 1 and 0 < high <= 1,
        "LOW and HIGH must be rates from 0 to 1, HIGH above 0",
    ),
    "sample": Form(
        "sample:FRACTION, e.g. sample:0.2",
        1,
        lambda fraction: 0 < fraction <= 1,
        "FRACTION must be above 0 and at most 1",
    ),
}


def read_participation(text: str) -> Spec:
    """Parse the setting ``participation``. Raises ValueError, which says what is allowed."""
    return read_spec("participation", text, PARTICIPATIONS)


@dataclass(frozen=True)
class Attendance:
    """Chooses who takes part in a round: everybody, a sample, or each at its own rate.

    "rates" (low, high): participant i of N takes part in ``low + (high - low) i / N`` of the
    rounds; the paper's ``0.5 (1 + i / N)`` is (0.5, 1). It is not a coin toss in each round: over
    50 rounds that strays by 7 points from a rate of one half, and a lucky participant would have
    contributed more. Instead rounds are as evenly spaced as the rate allows, from a random phase.
    After t rounds, the observed rate is within 1 / t of the true one.

    "sample" (fraction): that share of the participants, drawn again each round. At least one always
    takes part. With ``everybody_first`` all take part in the first round.
    """

    spec: Spec
    seed: int
    everybody_first: bool = False

    def present(self, names: Sequence[str], server_round: int) -> list[str]:
        """Return who takes part in ``server_round``, which counts from 1, in the given order."""
        if self.spec.kind == "all" or (self.everybody_first and server_round == 1):
            return list(names)
        if self.spec.kind == "sample":
            count = max(1, round(self.spec.numbers[0] * len(names)))
            rng = rng_for(self.seed, "attendance", server_round)
            return [names[k] for k in sorted(rng.choice(len(names), size=count, replace=False))]
        return self._by_rate(names, server_round)

    def _by_rate(self, names: Sequence[str], server_round: int) -> list[str]:
        low, high = self.spec.numbers
        turns: dict[str, tuple[float, float]] = {}
        for rank, name in enumerate(names, start=1):
            rate = low + (high - low) * rank / len(names)
            phase = float(rng_for(self.seed, "attendance", name).random())
            turns[name] = (phase + rate * (server_round - 1), phase + rate * server_round)
        present = [name for name, (a, b) in turns.items() if math.floor(b) > math.floor(a)]
        # If it is nobody's turn, the one nearest to it takes part.
        return present or [max(turns, key=lambda name: turns[name][1] % 1)]
