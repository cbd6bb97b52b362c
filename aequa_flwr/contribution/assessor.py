"""From names and parameters to the arrays that an estimator receives, and back."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from aequa_flwr.contribution.estimator import (
    ContributionEstimator,
    Floats,
    Ledger,
    Opening,
    RoundEvidence,
    Score,
)
from aequa_flwr.slim import Layouts, NDArray, Params, extract, is_switchable, stack_updates

# From (received sub-model, stacked updates) to a function that measures mixtures of them.
Scorer = Callable[[Params, Mapping[str, NDArray]], Score]
# Progress is reported each time this many mixtures have been measured.
_TELL_EVERY = 64


@dataclass(frozen=True)
class Assessor:
    """An estimator applied to named participants.

    ``width`` is that of the assessed sub-model, the widest that every participant trains.
    ``scorer`` is None if the server has no validation data.
    """

    estimator: ContributionEstimator
    width: float
    layouts: Layouts
    classes: int
    seed: int
    scorer: Scorer | None = None

    @property
    def individual_width(self) -> float | None:
        """The width of the individual sub-models that the estimator needs; None if none."""
        return self.width if self.estimator.needs.updates else None

    def begin(self, num_examples: Mapping[str, int], standalone: Mapping[str, float]) -> Ledger:
        """Return the ledger before the first round; participants are those of ``num_examples``."""
        alone = [standalone.get(name, np.nan) for name in num_examples]
        return self.estimator.begin(Opening(_counts(num_examples), np.array(alone), self.seed))

    def evidence(
        self,
        server_round: int,
        received: Callable[[str], Params],
        trained: Mapping[str, Params],
        num_examples: Mapping[str, int],
        before: Mapping[str, float],
    ) -> RoundEvidence:
        """Return what the server knows after a round.

        ``received`` returns the full model that a participant started from. ``trained`` maps each
        trained participant to its parameters of the assessed sub-model, which are empty if nobody
        needs them. ``before`` are the contributions so far.
        """
        present = [k for k, name in enumerate(num_examples) if name in trained]
        names = tuple(num_examples)
        pairs = [(names[k], trained[names[k]]) for k in present]
        starts: dict[int, Params] = {}  # one extraction where all received the same model

        def start(name: str) -> Params:
            model = received(name)
            if id(model) not in starts:
                starts[id(model)] = extract(model, self.layouts, self.width)
            return starts[id(model)]

        wanted = all(params for _, params in pairs)
        updates = stack_updates([(start(n), params) for n, params in pairs]) if wanted else {}
        return RoundEvidence(
            server_round=server_round,
            present=np.array(present, dtype=np.int64),
            num_examples=_counts(num_examples),
            seed=self.seed,
            classes=self.classes,
            updates=updates,
            switchable=frozenset(n for n, layout in self.layouts.items() if is_switchable(layout)),
            names=names,
            before=before,
        )

    def assess(
        self,
        ledger: Ledger,
        seen: RoundEvidence,
        server: Params,
        on_scored: Callable[[int], None] = lambda _count: None,
    ) -> tuple[Ledger, int]:
        """Return the ledger after a round, and how many models were measured for it.

        ``server`` is the server's full model before the round, to which mixtures of updates are
        added. ``on_scored`` is called with the number of models measured so far.
        """
        scored = [0]
        if self.scorer is not None and self.individual_width is not None:
            start = extract(server, self.layouts, self.width)
            score = _counted(self.scorer(start, seen.updates), scored, on_scored)
            seen = replace(seen, score=score)
        return self.estimator.after_round(ledger, seen), scored[0]

    def contributions(
        self, ledger: Ledger, names: Collection[str], of: Collection[str]
    ) -> dict[str, float]:
        """Return the contributions of those in ``of`` for whom one is known."""
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
