"""A ladder, and rounds of participants that each have a model of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation import FairAllocation
from aequa_flwr.contribution import Cgsv, ContributionEstimator, RoundEvidence
from aequa_flwr.methods import Kind, Method, Models, Setup
from aequa_flwr.slim import Params

Rows = Sequence[Sequence[float]]
LADDER = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
ACCURACIES = (0.5, 0.6, 0.7, 0.78, 0.84, 0.9)
CGSV = Cgsv(scale=1.0)


def fair(*, comparable: bool = True) -> FairAllocation:
    return FairAllocation(LADDER, "accuracy", comparable, "exact", 1e-6, "none", 1)


@dataclass(frozen=True)
class Round:
    """The models before a round, and what the server knows after it."""

    models: Models
    evidence: RoundEvidence


def a_round(
    updates: Mapping[str, Rows],
    contributions: Sequence[float],
    *,
    before: Sequence[float] | None = None,
    server_round: int = 1,
    switchable: frozenset[str] = frozenset(),
    start: float = 0.0,
    absent: Mapping[str, tuple[float, float]] | None = None,
) -> Round:
    """A round of participants a, b, ... whose models were all ``start``.

    ``absent`` maps others, who did not take part, to their contribution and the only value of
    their model.
    """
    away = absent or {}
    present = [chr(ord("a") + k) for k in range(len(contributions))]
    stacked = {key: np.array(rows, dtype=np.float32) for key, rows in updates.items()}

    def model(value: float) -> Params:
        return {key: np.full(rows.shape[1:], value, np.float32) for key, rows in stacked.items()}

    own = dict.fromkeys(present, model(start))
    known = contributions if before is None else before
    evidence = RoundEvidence(
        server_round=server_round,
        present=np.arange(len(present)),
        num_examples=np.full(len(present) + len(away), 10.0),
        seed=1,
        classes=2,
        updates=stacked,
        switchable=switchable,
        names=(*present, *away),
        before=dict(zip(present, known, strict=False)),
        contributions=dict(zip(present, contributions, strict=True))
        | {name: contribution for name, (contribution, _) in away.items()},
    )
    others = {name: model(value) for name, (_, value) in away.items()}
    return Round(Models(model(start), own | others), evidence)


def built(kind: Kind, estimator: ContributionEstimator = CGSV) -> Method:
    """A method of full models, which need no widths but one."""
    return kind.build(Setup((1.0,), estimator))


def folded(kind: Kind, seen: Round) -> Models:
    """The models after a round of a method that does without the mean of its replies."""

    def never(_fallback: Params) -> Params:
        raise AssertionError("everybody has a model of its own; there is no mean")

    return built(kind).fold(seen.models, never, seen.evidence)


def values(model: Mapping[str, npt.NDArray[np.float32]]) -> list[float]:
    return [float(v) for v in np.concatenate([value.ravel() for value in model.values()])]
