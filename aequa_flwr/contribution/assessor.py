"""From names and parameters to what an estimator is told, and back."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from aequa_flwr.contribution.estimator import (
    ContributionEstimator,
    Floats,
    Ledger,
    Opening,
    RoundEvidence,
    Score,
)
from aequa_flwr.slim.subnet import NDArray, Params, extract, stack_updates
from aequa_flwr.slim.width import Layouts, is_switchable

# (received sub-model, stacked updates) to what measures mixtures of them.
Scorer = Callable[[Params, Mapping[str, NDArray]], Score]
# How many mixtures are measured before people are told.
_TELL_EVERY = 64


@dataclass(frozen=True)
class Assessor:
    """An estimator among named participants.

    ``width`` is that of the common sub-model, the widest that everybody trains. ``scorer`` is
    None where the server has no data.
    """

    estimator: ContributionEstimator
    width: float
    layouts: Layouts
    classes: int
    seed: int
    scorer: Scorer | None = None

    @property
    def common(self) -> float | None:
        """The width of which every participant's parameters are needed; None if of none."""
        return self.width if self.estimator.needs.updates else None

    def begin(self, num_examples: Mapping[str, int], standalone: Mapping[str, float]) -> Ledger:
        """Return the ledger before the first round; participants are those of ``num_examples``."""
        alone = [standalone.get(name, np.nan) for name in num_examples]
        return self.estimator.begin(Opening(_counts(num_examples), np.array(alone), self.seed))

    def after_round(
        self,
        ledger: Ledger,
        server_round: int,
        received: Params,
        trained: Mapping[str, Params],
        num_examples: Mapping[str, int],
        on_scored: Callable[[int], None] = lambda _count: None,
        *,
        personal: Mapping[str, Params] | None = None,
    ) -> tuple[Ledger, int]:
        """Return the ledger after a round, and how many models were measured for it.

        ``received`` is the full model before the round. ``trained`` maps everybody that was
        trained to its parameters of the common sub-model, which are empty where they are not
        needed. ``on_scored`` is told how many models have been measured so far. ``personal`` are
        the full models of those who received one of their own instead of ``received``.
        """
        present = [k for k, name in enumerate(num_examples) if name in trained]
        updates: dict[str, NDArray] = {}
        score, scored = None, [0]
        if self.common is not None:
            start = extract(received, self.layouts, self.common)
            own = {
                name: extract(model, self.layouts, self.common)
                for name, model in (personal or {}).items()
                if name in trained
            }
            names = [name for name in num_examples if name in trained]
            updates = stack_updates([(own.get(name, start), trained[name]) for name in names])
            if self.scorer is not None:
                score = _counted(self.scorer(start, updates), scored, on_scored)
        evidence = RoundEvidence(
            server_round=server_round,
            present=np.array(present, dtype=np.int64),
            num_examples=_counts(num_examples),
            seed=self.seed,
            classes=self.classes,
            updates=updates,
            switchable=frozenset(n for n, layout in self.layouts.items() if is_switchable(layout)),
            score=score,
        )
        return self.estimator.after_round(ledger, evidence), scored[0]

    def contributions(
        self, ledger: Ledger, names: Collection[str], of: Collection[str]
    ) -> dict[str, float]:
        """Return the contributions of those in ``of`` about whom something can be said."""
        values = self.estimator.contributions(ledger)
        return {
            name: float(value)
            for name, value in zip(names, values, strict=True)
            if name in of and np.isfinite(value)
        }


def _counts(num_examples: Mapping[str, int]) -> Floats:
    return np.array(list(num_examples.values()), dtype=np.float64)


def _counted(score: Score, scored: list[int], on_scored: Callable[[int], None]) -> Score:
    def counted(weights: Floats) -> tuple[Floats, Floats]:
        parts = []
        for start in range(0, len(weights), _TELL_EVERY):
            parts.append(score(weights[start : start + _TELL_EVERY]))
            scored[0] += len(parts[-1][0])
            on_scored(scored[0])
        accuracies, losses = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([*accuracies, []]), np.concatenate([*losses, []])

    return counted
